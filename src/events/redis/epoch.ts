/**
 * Before events are trimmed, notes the time of receipt of the latest of them: `gone` of meta, and in `goneTo` up to which
 * event it holds. Takes the rows in the order of the log. For events without a noted time, the time of storing is used
 * instead.
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
 * The first lines of a script that only reads. They set `epoch`, and `last`: the id of the newest entry, or the epoch if
 * there is none. The script returns nothing if no log has begun. Keys: meta, log.
 */
export const READ_EPOCH = `
  local meta = redis.call('HMGET', KEYS[1], 'epoch', 'last')
  local epoch = meta[1]
  if not epoch then return {} end
  local last = meta[2] or epoch
`;

/**
 * The first lines of a script that writes. They set `epoch` and `last`, the id of the newest entry. Keys: meta, log.
 * Arguments: an epoch to begin with.
 *
 * If meta was lost and the log was not, both come from the log: its very first entry names the epoch as the one before it. If
 * that entry is no longer retained, a new epoch begins, with the entries that are there.
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
