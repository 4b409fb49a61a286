import { durableScript } from '../../redis/durable-write.ts';
import { script } from '../../redis/script.ts';

/**
 * The beginning of a script: `epoch` and `last`, the id of the newest entry. Keys: meta, log. Arguments: an epoch to begin with.
 *
 * Where meta was lost and the log was not, they are what the log tells: the first entry of all names its epoch as the one
 * before it. Where that entry is no longer retained, another life begins, with what there is.
 */
const LIFE = `
  local meta = redis.call('HMGET', KEYS[1], 'epoch', 'last')
  local epoch = meta[1]
  local last = meta[2] or epoch
  if not epoch then
    local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
    if oldest then
      local prev = oldest[2][2]
      epoch = prev:find('-', 1, true) and ARGV[1] or prev
      last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1][1]
      redis.call('HSET', KEYS[1], 'epoch', epoch, 'last', last)
    else
      epoch, last = ARGV[1], ARGV[1]
      redis.call('HSET', KEYS[1], 'epoch', epoch)
    end
  end
`;

/**
 * Appends any number of one client's events, all in this order or none. Keys: meta, log, and a `seen` for each event.
 * Arguments: an epoch to begin with, retention, milliseconds to remember, channel, command to publish with; and for each
 * event its contents digest, its text and its answer. Returns the epoch, and for each event `{1, id}` or, where it was
 * there already, `{0, id, contents, answer}` of the first.
 *
 * A recognised message has its memory prolonged: that is a write, so that WAIT after it proves that a replica has all
 * that was written before it too.
 */
export const APPEND = durableScript(`
  ${LIFE}
  local reply = {epoch}
  for index = 3, #KEYS do
    local first = 6 + (index - 3) * 3
    local contents, event, answer = ARGV[first], ARGV[first + 1], ARGV[first + 2]
    local seen = redis.call('HMGET', KEYS[index], 'id', 'contents', 'answer')
    if seen[1] then
      reply[#reply + 1] = {0, seen[1], seen[2], seen[3]}
    else
      local id = redis.call('XADD', KEYS[2], 'MAXLEN', '=', ARGV[2], '*', 'prev', last, 'event', event)
      redis.call('HSET', KEYS[1], 'epoch', epoch, 'last', id)
      redis.call('HSET', KEYS[index], 'id', id, 'contents', contents, 'answer', answer)
      redis.call(ARGV[5], ARGV[4], epoch .. '|' .. last .. '|' .. id .. '|' .. event)
      last = id
      reply[#reply + 1] = {1, id}
    end
    redis.call('PEXPIRE', KEYS[index], ARGV[3])
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
  ${LIFE}
  redis.call('PEXPIRE', KEYS[3], ARGV[2])
  return {epoch, seen[1], seen[2], seen[3]}
`);

/** Keys: meta, log. Arguments: an epoch to begin with. Returns `{epoch, last, prev of the oldest entry}`. */
export const BOUNDS = script(`
  ${LIFE}
  local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
  return {epoch, last, first and first[2][2] or last}
`);

/** Keys: meta, log. Arguments: an epoch to begin with. Returns `{epoch, last}`. */
export const HEAD = script(`
  ${LIFE}
  return {epoch, last}
`);

/**
 * Keys: meta, log. Arguments: an epoch to begin with, XRANGE or XREVRANGE, its two ends, its count. Returns
 * `{epoch, last, entries}`.
 */
export const READ = script(`
  ${LIFE}
  return {epoch, last, redis.call(ARGV[2], KEYS[2], ARGV[3], ARGV[4], 'COUNT', ARGV[5])}
`);

/**
 * Keys: meta. Arguments: a key to keep where there is none. Returns `{key}`. It stands beside the epoch, so that it ends with the
 * log.
 *
 * A key that is there is written again, so that WAIT after it proves that a replica has it.
 */
export const SEAL_KEY = durableScript(`
  local key = redis.call('HGET', KEYS[1], 'seal') or ARGV[1]
  redis.call('HSET', KEYS[1], 'seal', key)
  return {key}
`);
