import { createHash } from 'node:crypto';
import type { RedisClient } from '../redis.ts';

/** A Lua function that Redis runs as one step. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
}

/**
 * Keys: meta, log, seen. Arguments: contents digest, an epoch to begin with, retention, event, answer, milliseconds to
 * remember, channel, command to publish with. Returns the first answer as `{0, epoch, id, contents, answer}`, or
 * `{1, epoch, id, prev}`.
 *
 * A recognised message has its memory prolonged: that is a write, so that WAIT after it proves that a replica has all
 * that was written before it too.
 */
export const APPEND = script(`
  local meta = redis.call('HMGET', KEYS[1], 'epoch', 'last')
  local seen = redis.call('HMGET', KEYS[3], 'id', 'contents', 'answer')
  if seen[1] then
    redis.call('PEXPIRE', KEYS[3], ARGV[6])
    return {0, meta[1] or '', seen[1], seen[2], seen[3]}
  end
  local epoch = meta[1] or ARGV[2]
  local prev = meta[2] or epoch
  local id = redis.call('XADD', KEYS[2], 'MAXLEN', '=', ARGV[3], '*', 'prev', prev, 'event', ARGV[4])
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'last', id)
  redis.call('HSET', KEYS[3], 'id', id, 'contents', ARGV[1], 'answer', ARGV[5])
  redis.call('PEXPIRE', KEYS[3], ARGV[6])
  redis.call(ARGV[8], ARGV[7], epoch .. '|' .. prev .. '|' .. id .. '|' .. ARGV[4])
  return {1, epoch, id, prev}
`);

/** Keys: meta, log, seen. Arguments: milliseconds to remember. Returns `{epoch, id, contents, answer}` or nothing. */
export const RECALL = script(`
  local seen = redis.call('HMGET', KEYS[3], 'id', 'contents', 'answer')
  if not seen[1] then return {} end
  redis.call('PEXPIRE', KEYS[3], ARGV[1])
  return {redis.call('HGET', KEYS[1], 'epoch') or '', seen[1], seen[2], seen[3]}
`);

const LIFE = `
  local meta = redis.call('HMGET', KEYS[1], 'epoch', 'last')
  local epoch = meta[1]
  if not epoch then
    epoch = ARGV[1]
    redis.call('HSET', KEYS[1], 'epoch', epoch)
  end
  local last = meta[2] or epoch
`;

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

/** Runs a script by its digest; sends its text where the server does not know it yet. */
export async function runScript(
  redis: RedisClient,
  { sha, lua }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return await redis.eval(lua, keys.length, ...keys, ...args);
  }
}

function script(lua: string): Script {
  return { lua, sha: createHash('sha1').update(lua).digest('hex') };
}
