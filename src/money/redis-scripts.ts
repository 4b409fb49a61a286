import { durableScript } from '../redis/durable-write.ts';
import { script } from '../redis/script.ts';

/** What time it is by this Redis, in ms since the epoch: one clock for all processes. */
const NOW = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * KEYS: record, twin. ARGV: owner, input hash, lease, retention (both in ms), owner of the key, hash of the record, whether it
 * is a customer's. Returns a state of `Claimed` and the fields that belong to it.
 *
 * A twin names the record of a customer. It is of the same client, and so in the same slot.
 */
export const CLAIM = script(`${NOW}
  local state, owner, lease, input, whose = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'lease', 'input', 'whose'))
  local free = owner == ARGV[1] or (lease and tonumber(lease) <= now)
  local untilThen = string.format('%.0f', now + ARGV[3])
  if whose and whose ~= ARGV[5] then return {'not-yours'} end
  if not state or (state == 'claimed' and free) then
    if ARGV[7] == '1' then
      redis.call('SET', KEYS[2], ARGV[6], 'PX', ARGV[4])
    else
      local other = redis.call('GET', KEYS[2])
      if other then
        local key = string.gsub(KEYS[2], 'twin:.*$', '') .. other
        local theirs, until_ = unpack(redis.call('HMGET', key, 'state', 'lease'))
        if theirs == 'answered' then
          return {'customers', unpack(redis.call('HMGET', key, 'kind', 'status', 'text'))}
        end
        if theirs and until_ and tonumber(until_) > now then return {'busy'} end
        if theirs == 'sent' then return {'customers'} end
      end
    end
    redis.call('HSET', KEYS[1], 'state', 'claimed', 'owner', ARGV[1], 'input', ARGV[2], 'lease', untilThen, 'whose', ARGV[5])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    return {'claimed'}
  end
  if input ~= ARGV[2] then return {'other-input'} end
  if state == 'answered' then
    return {'answered', unpack(redis.call('HMGET', KEYS[1], 'kind', 'status', 'text'))}
  end
  if state == 'claimed' or not free then return {'busy'} end
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'lease', untilThen)
  local body, sentAt, wall, bootId, bootMs =
    unpack(redis.call('HMGET', KEYS[1], 'body', 'sentAt', 'wall', 'bootId', 'bootMs'))
  return {'sent', body, sentAt, string.format('%.0f', now - sentAt), wall or '', bootId or '', bootMs or '0'}`);

/**
 * Compares the ledger of a client with what a process knows of it: `epoch` and `known`. Where the ledger is behind, it has been
 * put back to an earlier state, and payments are held from then on. Leaves `held`, `missing`, `epoch` and `sent`.
 */
const COMPARE = `
  local held, missing, epoch, sent = unpack(redis.call('HMGET', ledger, 'held', 'missing', 'epoch', 'sent'))
  epoch, sent = tonumber(epoch or 0), tonumber(sent or 0)
  if not held and (epoch < knownEpoch or (epoch == knownEpoch and sent < known)) then
    held, missing = now, epoch == knownEpoch and known - sent or known
    redis.call('HSET', ledger, 'held', string.format('%.0f', held), 'missing', missing, 'epoch', math.max(epoch, knownEpoch))
  end`;

/**
 * KEYS: record, ledger. ARGV: owner, body, retention, known epoch, known count, then wall, boot id and boot ms of the process.
 * Returns the epoch and the count with this payment; 0 when the record is not the owner's; `held`, since when, and how many
 * payments are missing.
 */
export const SENT = durableScript(`${NOW}
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner ~= ARGV[1] or state == 'answered' then return 0 end
  local ledger, knownEpoch, known = KEYS[2], tonumber(ARGV[4]), tonumber(ARGV[5])
  ${COMPARE}
  if held then return {'held', tostring(held), tostring(missing)} end
  if state ~= 'sent' then sent = redis.call('HINCRBY', ledger, 'sent', 1) end
  redis.call('HSET', KEYS[1], 'state', 'sent', 'body', ARGV[2], 'sentAt', string.format('%.0f', now),
    'wall', ARGV[6], 'bootId', ARGV[7], 'bootMs', ARGV[8])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return {'sent', epoch, sent}`);

/** KEYS: ledger. ARGV: known epoch, known count. Returns since when payments are held and how many are missing, or nothing. */
export const CHECK = script(`${NOW}
  local ledger, knownEpoch, known = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
  ${COMPARE}
  if held then return {tostring(held), tostring(missing)} end`);

/** KEYS: ledger. Lets the payments of a client go on. */
export const RESUME = script(`
  redis.call('HDEL', KEYS[1], 'held', 'missing')
  redis.call('HINCRBY', KEYS[1], 'epoch', 1)`);

/** KEYS: record. ARGV: owner, lease in ms. */
export const RENEW = script(`${NOW}
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner == ARGV[1] and state ~= 'answered' then
    redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', now + ARGV[2]))
  end`);

/** KEYS: record. ARGV: input hash, kind, status, text, retention. What is settled is only kept for longer. */
export const ANSWER = durableScript(`
  local state, input, kind = unpack(redis.call('HMGET', KEYS[1], 'state', 'input', 'kind'))
  if state and input ~= ARGV[1] then return end
  if not (state == 'answered' and kind ~= 'unknown') then
    redis.call('HSET', KEYS[1], 'state', 'answered', 'input', ARGV[1], 'kind', ARGV[2], 'status', ARGV[3], 'text', ARGV[4])
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[5])`);

/** KEYS: record. ARGV: owner. */
export const RELEASE = durableScript(`
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner == ARGV[1] and state ~= 'answered' then redis.call('DEL', KEYS[1]) end`);
