import { durableScript } from '../../redis/durable-script.ts';
import { script } from '../../redis/script.ts';
import { JOURNAL } from './redis-journal.ts';
import { FILE, HERE, OWNER } from './redis-payment-reads.ts';
import { ADD_REFUND, REFUNDS, TAKE_REFUND } from './refunds.ts';
import { NOW } from './time.ts';
import { NAMED } from './transaction-index.ts';

/**
 * Defines `nameTwin(twins, input, retention)`, which names this record among the twins under that key, and leaves out those that are gone
 * or were taken for another input. In front of it: HERE.
 */
const TWINS = `
  local function nameTwin(twins, input, retention)
    local names = {hash}
    for other in string.gmatch(redis.call('GET', twins) or '', '[^,]+') do
      if other ~= hash and redis.call('HGET', base .. other, 'input') == input then names[#names + 1] = other end
    end
    redis.call('SET', twins, table.concat(names, ','), 'PX', string.format('%.0f', 2 * retention))
  end`;

/**
 * KEYS: record, twins, the other record that this owner may have for the key (`recordName`). ARGV: owner, input hash, lease, retention
 * (both in ms), owner of the key, whether it is a customer's, the line that begins it in the journal, how long lines are kept, whether
 * what was sent may be sent again, whether the other name is the first owner's. Returns a state of `Claimed` and the fields that belong
 * to it.
 *
 * Twins are the hashes of customers' records, with commas between; of a version before, one hash. All are of the same client, and so in
 * the same slot; the journal is as well. They are kept for twice as long as a record after its claim, as its first sending and its
 * stored answer each prolong it. A record that is gone or free, or was taken for another input, stays named until the next customer's
 * claim, and is passed over.
 */
export const CLAIM = script(`${NOW} ${HERE} ${FILE} ${JOURNAL} ${OWNER} ${TWINS}
  local state, owner, lease, input, whose, line, past =
    unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'lease', 'input', 'whose', 'line', 'past'))
  whose = ownerOf(whose, past)
  local function begin()
    line = journal(ARGV[7])
    cut(ARGV[8])
    redis.call('HSET', KEYS[1], 'line', line)
  end
  -- Finds among these records the one that decides: done, held by a call, perhaps sent, refused. Where none has been sent, takes them
  -- from the calls that have let their leases end, so that none of those can send.
  local function decisive(hashes)
    local most, found, ended = 0, nil, {}
    for other in string.gmatch(hashes, '[^,]+') do
      local otherKey, rank = base .. other, 0
      local step, ending, what, kind = unpack(redis.call('HMGET', otherKey, 'state', 'lease', 'input', 'kind'))
      if step and what == ARGV[2] then
        if step == 'answered' then rank = kind == 'done' and 4 or kind == 'refused' and 1 or 2
        elseif ending and tonumber(ending) > now then rank = 3
        elseif step == 'sent' then rank = 2
        else ended[#ended + 1] = otherKey end
      end
      if rank > most then most, found = rank, otherKey end
    end
    if most == 0 then
      for _, otherKey in ipairs(ended) do redis.call('HSET', otherKey, 'owner', '', 'passedBy', hash) end
    end
    return most, found
  end
  local free = owner == ARGV[1] or (lease and tonumber(lease) <= now)
  local untilThen = string.format('%.0f', now + ARGV[3])
  if whose and whose ~= ARGV[5] then return {'not-yours'} end
  if not state or (state == 'claimed' and free) then
    -- The first owner may have given the first name up since this owner paid under its own.
    local otherState, otherWhose, otherPast = unpack(redis.call('HMGET', KEYS[3], 'state', 'whose', 'past'))
    if otherState and (ARGV[10] == '0' or (ownerOf(otherWhose, otherPast) or ARGV[5]) == ARGV[5]) then return {'not-yours'} end
    if ARGV[6] == '1' then
      -- A call for the whole client has passed this record over, and may have paid the same.
      local rank = input == ARGV[2] and decisive(redis.call('HGET', KEYS[1], 'passedBy') or '') or 0
      if rank == 3 then return {'busy'} end
      if rank > 1 then return {'passed-over'} end
      nameTwin(KEYS[2], ARGV[2], ARGV[4])
    else
      local rank, other = decisive(redis.call('GET', KEYS[2]) or '')
      if rank == 3 then return {'busy'} end
      if rank > 0 then
        local kind, status, text, otherPast = unpack(redis.call('HMGET', other, 'kind', 'status', 'text', 'past'))
        if not kind then return {'customers'} end
        return {'customers', kind, status, text, otherPast}
      end
    end
    -- A claim that is repeated by its owner has its line.
    if not line or owner ~= ARGV[1] or input ~= ARGV[2] then begin() end
    redis.call('HSET', KEYS[1], 'state', 'claimed', 'owner', ARGV[1], 'input', ARGV[2], 'lease', untilThen, 'whose', ARGV[5])
    redis.call('HDEL', KEYS[1], 'passedBy', 'twin')
    if ARGV[6] == '1' then redis.call('HSET', KEYS[1], 'twin', string.match(KEYS[2], '[^:]*$')) end
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    return {'claimed'}
  end
  if input ~= ARGV[2] then return {'other-input'} end
  if state ~= 'claimed' and not lineOf(line, past) then
    local sentAt = redis.call('HGET', KEYS[1], 'sentAt')
    begin()
    redis.call('HSET', KEYS[1], 'askedAt', string.format('%013.0f', tonumber(sentAt or now)))
    local kind = redis.call('HGET', KEYS[1], 'kind')
    file((kind == 'done' or kind == 'refused') and kind or 'open')
  end
  if state == 'answered' then
    return {'answered', unpack(redis.call('HMGET', KEYS[1], 'kind', 'status', 'text', 'past'))}
  end
  if state == 'claimed' or not free then return {'busy'} end
  if ARGV[6] == '1' then nameTwin(KEYS[2], ARGV[2], ARGV[4]) end
  if ARGV[9] == '1' then redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'lease', untilThen) end
  local body, sentAt, wall, bootId, bootMs =
    unpack(redis.call('HMGET', KEYS[1], 'body', 'sentAt', 'wall', 'bootId', 'bootMs'))
  return {'sent', body, sentAt, string.format('%.0f', now - sentAt), wall or '', bootId or '', bootMs or '0'}`);

/**
 * Compares the ledger of a client with what a process knows of it, and notes there what it finds where `isNoted`: `knownEpoch`, `known`, and `knownAt`, when that was counted. A ledger
 * that is behind has been put back to an earlier state, and payments are held from then on. An earlier state in which they were held already
 * gets the higher epoch too: an operator begins the next one, which has to be later than any that a process knows. Leaves `held`,
 * `missing`, `epoch`, `sent` and `copied`.
 *
 * `copied` is the time of the newest line of the journal that is older than the payment that the process knows. That payment is missing,
 * so the line was in the copy: a line that was added since is younger. It is 0 where there is none, or where `knownAt` is not known, and
 * of several the earliest counts.
 */
const compared = (isNoted: boolean): string => `
  local held, missing, epoch, sent, copied =
    unpack(redis.call('HMGET', ledger, 'held', 'missing', 'epoch', 'sent', 'copied'))
  epoch, sent = tonumber(epoch or 0), tonumber(sent or 0)
  if epoch < knownEpoch or (epoch == knownEpoch and sent < known) then
    local before = string.format('%.0f', math.max(knownAt - 1, 0))
    local newest = redis.call('XREVRANGE', string.match(ledger, '^.*:') .. 'journal', before, '-', 'COUNT', 1)[1]
    local last = newest and tonumber(string.match(newest[1], '^%d+')) or 0
    copied = string.format('%.0f', held and math.min(tonumber(copied or 0), last) or last)
    held, missing = tonumber(held or now), math.max(tonumber(missing or 0), known - sent)
    epoch = math.max(epoch, knownEpoch)
    ${isNoted ? "redis.call('HSET', ledger, 'held', string.format('%.0f', held), 'missing', missing, 'epoch', epoch, 'copied', copied)" : ''}
  end`;

/** For a script of a gateway, which notes what it finds. */
export const COMPARE = compared(true);

/**
 * KEYS: record, ledger, the list of the credit's refunds. ARGV: owner, body, retention, known epoch, known count, then wall, boot id and boot ms of the process, and
 * letter and rest of its line, then what is noted besides: the upstream's key and the original, empty where there is none; and how long
 * the refund of a credit is the only one, in ms, and when the known count was counted. Returns the epoch and the count with this payment,
 * and when it was counted; 0 when the record is not the owner's; `held`; `stopped`; `other-refund`.
 */
export const SENT = durableScript(`${NOW} ${HERE} ${FILE} ${JOURNAL} ${REFUNDS} ${ADD_REFUND}
  local state, owner, line = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner', 'line'))
  if owner ~= ARGV[1] or state == 'answered' then return 0 end
  local ledger, knownEpoch, known, knownAt = KEYS[2], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[14])
  ${COMPARE}
  if held then return {'held'} end
  if redis.call('HEXISTS', ledger, 'stopped') == 1 then return {'stopped'} end
  if ARGV[12] ~= '' and not addRefund(KEYS[3], ARGV[3], tonumber(ARGV[13])) then return {'other-refund'} end
  if state ~= 'sent' then
    sent = redis.call('HINCRBY', ledger, 'sent', 1)
    journal(ARGV[9] .. (line or (':' .. hash)) .. ARGV[10])
    -- A payment before, under the same key, may have ended while it was put off for ever.
    redis.call('ZREM', base .. 'due', hash)
  end
  redis.call('HSET', KEYS[1], 'state', 'sent', 'body', ARGV[2], 'sentAt', string.format('%.0f', now),
    'wall', ARGV[6], 'bootId', ARGV[7], 'bootMs', ARGV[8], 'epoch', epoch)
  if ARGV[11] ~= '' then redis.call('HSET', KEYS[1], 'upstreamKey', ARGV[11]) end
  if ARGV[12] ~= '' then redis.call('HSET', KEYS[1], 'original', ARGV[12]) end
  redis.call('HSETNX', KEYS[1], 'attempts', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  file('open')
  return {'sent', epoch, sent, string.format('%.0f', now)}`);

/**
 * KEYS: ledger. ARGV: known epoch, known count, when that was counted. Returns since when payments are held, how many are missing, and the
 * time of `copied`; nothing where they are not held.
 */
export const CHECK = script(`${NOW}
  local ledger, knownEpoch, known, knownAt = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
  ${COMPARE}
  if held then return {tostring(held), tostring(missing), copied or '0'} end`);

/** The same for a process that writes nothing, with whether payments were held before it looked, as `1`. */
export const LOOK = script(`${NOW}
  local ledger, knownEpoch, known, knownAt = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
  local isHeld = redis.call('HEXISTS', ledger, 'held')
  ${compared(false)}
  if held then return {tostring(held), tostring(missing), copied or '0', tostring(isHeld)} end`);

/** KEYS: since when payments are stopped. ARGV: now, in ms since the epoch. Written again where it is there, so that WAIT proves it. */
export const STOP = durableScript(`redis.call('SET', KEYS[1], redis.call('GET', KEYS[1]) or ARGV[1])`);

/** KEYS: ledger. Stops the payments of a client. */
export const STOP_CLIENT = durableScript(`redis.call('HSET', KEYS[1], 'stopped', 1)`);

/** KEYS: ledger. ARGV: whether it was put back, so that an epoch begins. Lets the payments of a client go on. */
export const RESUME = script(`
  redis.call('HDEL', KEYS[1], 'held', 'missing', 'copied', 'stopped')
  if ARGV[1] == '1' then redis.call('HINCRBY', KEYS[1], 'epoch', 1) end`);

/** KEYS: record. ARGV: owner, lease in ms. */
export const RENEW = script(`${NOW}
  local state, owner = unpack(redis.call('HMGET', KEYS[1], 'state', 'owner'))
  if owner == ARGV[1] and state ~= 'answered' then
    redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', now + ARGV[2]))
  end`);

/** KEYS: record. ARGV: letter and rest of its line. Counts that the same was sent once more. */
export const SENT_AGAIN = script(`${NOW} ${HERE} ${JOURNAL}
  local state, past, line = unpack(redis.call('HMGET', KEYS[1], 'state', 'past', 'line'))
  if state and not past then
    journal(ARGV[1] .. (line or (':' .. hash)) .. ARGV[2])
    redis.call('HSETNX', KEYS[1], 'attempts', 1)
    redis.call('HINCRBY', KEYS[1], 'attempts', 1)
  end`);

/**
 * KEYS: record, twins where it is a customer's (as CLAIM has them). ARGV: input hash, kind, status, text, retention, letter and rest of its line, the owner of the key and the line that
 * begins the payment where there is no record (empty where they are not known), the call whose alone the answer is (empty where it is
 * anybody's), then its transaction and the part that is in, where there is one. What is settled is written again as it stands, so that WAIT
 * proves it, and is kept no longer. Writes nothing, and returns `anothers`, where another record has the transaction, or `taken`, where
 * the payment was taken over from that call, or is settled otherwise.
 *
 * A record that is settled is deleted and written again, as a hash of Redis does not give back the room of fields that are deleted. It
 * keeps the fields that versions before read. A payment that is done has its HTTP status at the end of `past`, and not in `status`, where
 * versions up to 0.2.0 see none. It keeps a `whose` that is empty: a version up to 0.2.0 takes a record without that field for
 * everybody's, and would tell its answer to any owner. A payment whose record no longer says when it was sent counts as sent at its end.
 */
export const ANSWER = durableScript(`${NOW} ${HERE} ${FILE} ${JOURNAL} ${NAMED} ${TWINS}
  local state, input, kind, whose, line, askedAt, sentAt, attempts =
    unpack(redis.call('HMGET', key, 'state', 'input', 'kind', 'whose', 'line', 'askedAt', 'sentAt', 'attempts'))
  if state and input ~= ARGV[1] then return end
  if ARGV[10] ~= '' then
    local isSettledOtherwise = state == 'answered' and kind ~= 'unknown' and kind ~= ARGV[2]
    if isSettledOtherwise or (state == 'sent' and redis.call('HGET', key, 'owner') ~= ARGV[10]) then return 'taken' end
  end
  if not (state == 'answered' and kind ~= 'unknown') then
    if ARGV[11] and isAnothers(ARGV[11], ARGV[12]) then return 'anothers' end
    local isGone = not state and ARGV[9] ~= ''
    if isGone then line, whose = journal(ARGV[9]), ARGV[8] end
    if kind ~= ARGV[2] then journal(ARGV[6] .. (line or (':' .. hash)) .. ARGV[7]) end
    local fields = {'state', 'answered', 'input', ARGV[1], 'kind', ARGV[2], 'text', ARGV[4]}
    local status = ARGV[3]
    if ARGV[2] ~= 'unknown' then
      redis.call('DEL', key)
      local begunAt = line and string.match(line, '^%d+') or 0
      local function since(time) return string.format('%.0f', time - begunAt) end
      local past = (line or '') .. ',' .. since(sentAt or now) .. ',' .. since(now) .. ',' .. (attempts or '')
      if ARGV[2] == 'done' and whose then
        past, status = past .. ',' .. status, nil
      end
      for name, value in pairs({past = past, whose = whose, askedAt = askedAt}) do
        if value then fields[#fields + 1], fields[#fields + 2] = name, value end
      end
    elseif isGone then
      redis.call('HSET', key, 'line', line, 'whose', whose)
    end
    if status then fields[#fields + 1], fields[#fields + 2] = 'status', status end
    redis.call('HSET', key, unpack(fields))
    if ARGV[2] ~= 'unknown' then file(ARGV[2]) end
    if ARGV[11] then named(ARGV[11], ARGV[12]) end
    if isGone and KEYS[2] then nameTwin(KEYS[2], ARGV[1], ARGV[5]) end
    redis.call('PEXPIRE', key, ARGV[5])
  else
    redis.call('HSET', key, 'kind', kind)
  end`);

/**
 * KEYS: record. ARGV: owner, letter and rest of its line. Returns 1 where there is no such record now. Where there was none, writes something
 * that nobody needs, so that WAIT proves it: the record may have been deleted on a connection that has broken since, and WAIT counts the
 * writes of its own.
 */
export const RELEASE = durableScript(`${NOW} ${HERE} ${FILE} ${JOURNAL} ${REFUNDS}
  local state, owner, line = unpack(redis.call('HMGET', key, 'state', 'owner', 'line'))
  if not state then
    redis.call('SET', base .. ':probe', '', 'PX', 60000)
    return 1
  end
  if owner ~= ARGV[1] or state == 'answered' then return 0 end
  journal(ARGV[2] .. (line or (':' .. hash)) .. ARGV[3])
  file('none')
  ${TAKE_REFUND}
  redis.call('DEL', key)
  return 1`);
