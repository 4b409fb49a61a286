/**
 * The beginning of a script: `epoch` and `last`, the id of the newest entry. Keys: meta, log. Arguments: an epoch to begin with.
 *
 * Where meta was lost and the log was not, they are what the log tells: the first entry of all names its epoch as the one
 * before it. Where that entry is no longer retained, another life begins, with what there is.
 */
export const LIFE = `
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
