import { durableScript } from '../../redis/durable-script.ts';
import { script } from '../../redis/script.ts';
import { BEGIN_EPOCH, NOTE_GONE, READ_EPOCH } from './epoch.ts';
import { INDEX, LEFT_AT_MOST } from './search-scripts.ts';

/** Number of appended events after which the index takes in what they have left for it. */
const LEFT = 100;

/**
 * If a lowered bound trims many events at once, the receipt times of the first so many are noted; for the rest the time of storing
 * stands in.
 */
const NOTED_AT_ONCE = 100;

/** What `APPEND` fails with where it would append to another history than the only one. */
export const OTHER_HISTORY = 'this Redis has another history';

/** Names a history of a log: that of the server's data, which a flush does not end, and that of the log, which it does. */
export const historyOf = (replid: string, epoch: string): string => `${replid} ${epoch}`;

/**
 * Appends any number of one client's events, all in this order or none. Keys: meta, log, the three of the index, and a `seen`
 * for each event. Arguments: an epoch to begin with, retention in events and in bytes (0 for any number), milliseconds to
 * remember, channel, command to publish with, the only history to append to (`historyOf`; empty for any); and for each event its contents digest, its
 * text, its answer, when it was received and the digests of its names. Returns the epoch, whether the index is to be completed (0 or 1), and for each event `{1, id}` or,
 * where it was there already, `{0, id, contents, answer, resent}` of the first; `resent` is 1 where the first is this very event, or 0.
 *
 * A recognised message has its memory prolonged: that is a write, so that WAIT after it proves that a replica has all
 * that was written before it too.
 *
 * XADD trims by number here; `trim` of search-scripts.ts by bytes.
 */
export const APPEND = durableScript(`
  if ARGV[7] ~= '' then
    local replid, known = ARGV[7]:match('^(%S+) (%S+)$')
    local isSame = redis.call('INFO', 'replication'):find('master_replid:' .. replid, 1, true)
    if not isSame or redis.call('HGET', KEYS[1], 'epoch') ~= known then error('${OTHER_HISTORY}') end
  end
  ${BEGIN_EPOCH}
  ${NOTE_GONE}
  local reply = {epoch, 0}
  local added, addedBytes = 0, 0
  local firstKey, firstArgument, argumentsEach = 6, 8, 5
  for number = firstKey, #KEYS do
    local first = firstArgument + (number - firstKey) * argumentsEach
    local contents, event, answer = ARGV[first], ARGV[first + 1], ARGV[first + 2]
    local seen = redis.call('HMGET', KEYS[number], 'id', 'contents', 'answer')
    if seen[1] then
      local entry = redis.call('XRANGE', KEYS[2], seen[1], seen[1])[1]
      reply[#reply + 1] = {0, seen[1], seen[2], seen[3], entry and entry[2][4] == event and 1 or 0}
    else
      local tooMany = redis.call('XLEN', KEYS[2]) + 1 - ARGV[2]
      if tooMany > 0 then noteGone(redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', math.min(tooMany, ${NOTED_AT_ONCE}))) end
      local id = redis.call('XADD', KEYS[2], 'MAXLEN', '=', ARGV[2], '*', 'prev', last, 'event', event,
        'received', ARGV[first + 3], 'names', ARGV[first + 4])
      redis.call('HSET', KEYS[1], 'epoch', epoch, 'last', id)
      redis.call('HSET', KEYS[number], 'id', id, 'contents', contents, 'answer', answer)
      redis.call(ARGV[6], ARGV[5], epoch .. '|' .. last .. '|' .. id .. '|' .. event)
      last = id
      added, addedBytes = added + 1, addedBytes + #event
      reply[#reply + 1] = {1, id}
    end
    redis.call('PEXPIRE', KEYS[number], ARGV[4])
  end
  if added > 0 then
    local left = redis.call('HINCRBY', KEYS[1], 'left', added)
    if left >= ${LEFT} then
      redis.call('HSET', KEYS[1], 'left', 0)
      reply[2] = 1
    end
    local most = tonumber(ARGV[3])
    if most > 0 then
      ${INDEX}
      enterLeft(${LEFT_AT_MOST})
      trim(most, addedBytes)
      save()
    end
  end
  return reply
`);

/**
 * Keys: meta, log, seen. Arguments: an epoch to begin with, milliseconds to remember. Returns `{epoch, id, contents, answer}` or
 * nothing.
 */
export const RECALL = durableScript(`
  local seen = redis.call('HMGET', KEYS[3], 'id', 'contents', 'answer')
  if not seen[1] then return {} end
  ${BEGIN_EPOCH}
  redis.call('PEXPIRE', KEYS[3], ARGV[2])
  return {epoch, seen[1], seen[2], seen[3]}
`);

/**
 * Writes a field of meta again as it is. Deleted first, it is also written where Redis is out of memory: that refuses a script at the first
 * command by which memory may grow, unless the script has written before.
 */
const writeAgain = (field: string, value: string): string => `redis.call('HDEL', KEYS[1], '${field}')
  redis.call('HSET', KEYS[1], '${field}', ${value})`;

/**
 * Keys: meta, log. Arguments: an epoch to begin with. Returns `{epoch}`.
 *
 * An epoch that is there is written again, so that WAIT after it proves that a replica has it.
 */
export const BEGIN = durableScript(`
  ${BEGIN_EPOCH}
  ${writeAgain('epoch', 'epoch')}
  return {epoch}
`);

/** Keys: meta, log. Returns `{epoch, last, prev of the oldest entry}`, or nothing. */
export const BOUNDS = script(`
  ${READ_EPOCH}
  local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
  return {epoch, last, first and first[2][2] or last}
`);

/**
 * Keys: meta, log. Returns `{epoch, last, up to which time of receipt events were given up, up to
 * which id that was noted, the oldest entry}`, or nothing; the latter three only where there are such.
 */
export const REACH = script(`
  ${READ_EPOCH}
  local noted = redis.call('HMGET', KEYS[1], 'gone', 'goneTo')
  return {epoch, last, noted[1] or '', noted[2] or '', redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)}
`);

/** Keys: meta, log. Returns `{epoch, last}`, or nothing. */
export const HEAD = script(`
  ${READ_EPOCH}
  return {epoch, last}
`);

/**
 * Keys: meta, log. Arguments: XRANGE or XREVRANGE, its two ends, its count. Returns `{epoch, last, entries}`, or nothing.
 */
export const READ = script(`
  ${READ_EPOCH}
  return {epoch, last, redis.call(ARGV[1], KEYS[2], ARGV[2], ARGV[3], 'COUNT', ARGV[4])}
`);

/**
 * Keys: meta. Arguments: a key to keep where there is none. Returns `{key}`. It stands beside the epoch, so that it ends with the
 * log.
 *
 * A key that is there is written again, so that WAIT after it proves that a replica has it.
 */
export const SEAL_KEY = durableScript(`
  local key = redis.call('HGET', KEYS[1], 'seal')
  if not key then
    key = ARGV[1]
    redis.call('HSET', KEYS[1], 'seal', key)
  else
    ${writeAgain('seal', 'key')}
  end
  return {key}
`);
