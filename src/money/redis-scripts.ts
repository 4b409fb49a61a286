import { durableScript } from '../redis/durable-write.ts';
import { script } from '../redis/script.ts';
import { FILE } from './redis-payments.ts';
import { NOW } from './redis-time.ts';

/**
 * KEYS: record, twin. ARGV: owner, input hash, lease, retention (both in ms), owner of the key, hash of the record, whether it
 * is a customer's, what is asked for as JSON. Returns a state of `Claimed` and the fields that belong to it.
 *
 * A twin names the record of a customer. It is of the same client, and so in the same slot.
 */
export const CLAIM = script(`${NOW}
  local key = KEYS[1]
  ${FILE}
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
    redis.call('HSET', KEYS[1], 'state', 'claimed', 'owner', ARGV[1], 'input', ARGV[2], 'lease', untilThen, 'whose', ARGV[5],
      'asked', ARGV[8], 'askedAt', string.format('%013.0f', now))
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    return {'claimed'}
  end
  if input ~= ARGV[2] then return {'other-input'} end
  if state ~= 'claimed' and redis.call('HEXISTS', KEYS[1], 'asked') == 0 then
    local sentAt = redis.call('HGET', KEYS[1], 'sentAt')
    redis.call('HSET', KEYS[1], 'asked', ARGV[8], 'askedAt', string.format('%013.0f', tonumber(sentAt or now)))
    local kind = redis.call('HGET', KEYS[1], 'kind')
    file((kind == 'done' or kind == 'refused') and kind or 'open')
  end
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
  redis.call('HSETNX', KEYS[1], 'attempts', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  local key = KEYS[1]
  ${FILE}
  file('open')
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

/** KEYS: record. Counts that the same was sent once more. */
export const SENT_AGAIN = script(`
  if redis.call('EXISTS', KEYS[1]) == 1 then
    redis.call('HSETNX', KEYS[1], 'attempts', 1)
    redis.call('HINCRBY', KEYS[1], 'attempts', 1)
  end`);

/**
 * KEYS: record, its name by the transaction. ARGV: input hash, kind, status, text, retention, whether there is a transaction.
 * What is settled is only kept for longer.
 */
export const ANSWER = durableScript(`${NOW}
  local state, input, kind = unpack(redis.call('HMGET', KEYS[1], 'state', 'input', 'kind'))
  if state and input ~= ARGV[1] then return end
  local key = KEYS[1]
  ${FILE}
  if not (state == 'answered' and kind ~= 'unknown') then
    redis.call('HSET', KEYS[1], 'state', 'answered', 'input', ARGV[1], 'kind', ARGV[2], 'status', ARGV[3], 'text', ARGV[4])
    if ARGV[2] ~= 'unknown' then
      redis.call('HSET', KEYS[1], 'settledAt', string.format('%.0f', now))
      -- Nothing is sent any more, and nobody holds the key.
      redis.call('HDEL', KEYS[1], 'body', 'owner', 'lease', 'wall', 'bootId', 'bootMs')
      file(ARGV[2])
    end
    if ARGV[6] == '1' then redis.call('SET', KEYS[2], hash, 'PX', ARGV[5]) end
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[5])`);

/** KEYS: record. ARGV: owner. */
export const RELEASE = durableScript(`${NOW}
  local key = KEYS[1]
  ${FILE}
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner == ARGV[1] and state ~= 'answered' then
    file('none')
    redis.call('DEL', KEYS[1])
  end`);
