/**
 * Notes when events that are about to be given up were received: of all of them the latest, `gone` of meta, and with `goneTo` how
 * far that goes. Takes the rows in the order of the log. Events that an earlier version gave up in between, or that it stored without
 * their time, count with the time at which they were stored at the latest.
 */
export const NOTE_GONE = `
  local function noteGone(rows)
    if #rows == 0 then return end
    local noted = redis.call('HMGET', KEYS[1], 'gone', 'goneTo')
    local latest = tonumber(noted[1] or 0)
    local function stored(row) return tonumber(row[1]:match('^%d+')) end
    local prev = rows[1][2][2]
    if prev ~= noted[2] and prev:find('-', 1, true) then latest = math.max(latest, stored(rows[1])) end
    for _, row in ipairs(rows) do
      latest = math.max(latest, row[2][5] == 'received' and tonumber(row[2][6]) or stored(row))
    end
    redis.call('HSET', KEYS[1], 'gone', string.format('%.0f', latest), 'goneTo', rows[#rows][1])
  end
`;

/**
 * The beginning of a script that does not begin a log: `epoch` and `last`, the id of the newest entry, or the epoch where there is
 * none. The script returns nothing where no log has begun. Keys: meta, log.
 */
export const READ_EPOCH = `
  local meta = redis.call('HMGET', KEYS[1], 'epoch', 'last')
  local epoch = meta[1]
  if not epoch then return {} end
  local last = meta[2] or epoch
`;

/**
 * The beginning of a script that writes: `epoch` and `last`, the id of the newest entry. Keys: meta, log. Arguments: an epoch to begin with.
 *
 * Where meta was lost and the log was not, they are what the log tells: the first entry of all names its epoch as the one
 * before it. Where that entry is no longer retained, a new epoch begins, with the entries that there are.
 */
export const BEGIN_EPOCH = `
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
