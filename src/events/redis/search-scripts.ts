import { script } from '../../redis/script.ts';
import { BLOCK, MARK } from '../search.ts';
import { NOTE_GONE, READ_EPOCH } from './epoch.ts';

/** Events that are taken out of the index in one step at most, so that none holds up the others. */
const TRIMMED_AT_ONCE = 1_000;
/**
 * An append that has trimmed so many events for their bytes goes on only until they have freed twice the bytes that it added. So no append
 * takes long after the bound was lowered, and the log shrinks all the same.
 */
const TRIMMED_BY_BYTES = 16;
/** Events left by appends that a search, or a bound in bytes, enters by itself: some milliseconds of Redis. */
export const LEFT_AT_MOST = 300;

/**
 * What scripts do with the index, after `READ_EPOCH`. Keys 3 to 5:
 *
 * - `index`, a hash: the `epoch` of the log that it belongs to, the id of the `last` event in it, how many events were entered
 *   (`count`) and given up (`gone`), the `bytes` of those between; and for each 256 of them in a row a block `b<number>`, which
 *   says `<id of the first> <earliest received> <latest received>`.
 * - `names`, a sorted set without scores: `<digest><id, padded>`. A member `!` says that the set was not lost alone.
 * - `indexed`, a list: `<id> <bytes> <digests>` of each event in the index, in the order of the log, so that what is trimmed can be
 *   taken out of `names`.
 *
 * The index may end before the log does: an append leaves what it has to enter beside the event, as the fields `received` and
 * `names`. Those of an earlier version lack them, or the mark; `UNINDEXED` shows these to somebody who can tell their names.
 */
export const INDEX = `
  ${NOTE_GONE}
  local state = redis.call('HMGET', KEYS[3], 'epoch', 'last', 'count', 'gone', 'bytes')
  local upTo = state[2] or ''
  local count, gone, bytes = tonumber(state[3] or 0), tonumber(state[4] or 0), tonumber(state[5] or 0)
  if state[1] ~= epoch or redis.call('EXISTS', KEYS[4]) == 0
    or redis.call('LLEN', KEYS[5]) ~= count - gone then
    upTo, count, gone, bytes = '', 0, 0, 0
    -- Where Redis takes no writes at this moment, what is written next is refused as well.
    if state[1] then redis.pcall('DEL', KEYS[3], KEYS[4], KEYS[5]) end
  end

  local function isComplete()
    return upTo == last or (upTo == '' and last == epoch)
  end
  local function whole(value)
    return string.format('%.0f', value)
  end
  local function save()
    if upTo == '' then return end
    redis.call('HSET', KEYS[3], 'epoch', epoch, 'last', upTo, 'count', whole(count), 'gone', whole(gone), 'bytes', whole(bytes))
  end
  local function parts(id)
    return id:match('^(%d+)%-(%d+)$')
  end
  local function padded(id)
    local time, sequence = parts(id)
    return string.rep('0', 15 - #time) .. time .. string.rep('0', 15 - #sequence) .. sequence
  end
  local function unpadded(text)
    return (text:sub(1, 15):gsub('^0+(%d)', '%1')) .. '-' .. (text:sub(16):gsub('^0+(%d)', '%1'))
  end
  local function isBefore(id, other)
    return padded(id) < padded(other)
  end
  local function blockOf(number)
    return math.floor(number / ${BLOCK})
  end
  -- Lua puts no more than some thousand arguments into one call.
  local function add(command, key, values)
    for first = 1, #values, 1000 do
      redis.call(command, key, unpack(values, first, math.min(first + 999, #values)))
    end
  end

  -- Enters events in the order of the log, each as {id, bytes, received, digests}.
  local function enter(events)
    local members, items = {}, {}
    if count == 0 and #events > 0 then members = {0, '!'} end
    local field, first, earliest, latest
    local function keep()
      if field then redis.call('HSET', KEYS[3], field, first .. ' ' .. earliest .. ' ' .. latest) end
    end
    for _, event in ipairs(events) do
      local id, size, received, digests = unpack(event)
      local place = padded(id)
      digests = digests:gsub('^%${MARK} ?', '')
      for digest in digests:gmatch('%S+') do
        members[#members + 1] = 0
        members[#members + 1] = digest .. place
      end
      items[#items + 1] = id .. ' ' .. size .. ' ' .. digests
      local own = 'b' .. whole(blockOf(count))
      if own ~= field then
        keep()
        field = own
        first, earliest, latest = (redis.call('HGET', KEYS[3], own) or ''):match('^(%S+) (%S+) (%S+)$')
        if not first then first, earliest, latest = id, received, received end
      end
      if tonumber(received) < tonumber(earliest) then earliest = received end
      if tonumber(received) > tonumber(latest) then latest = received end
      count, bytes, upTo = count + 1, bytes + size, id
    end
    keep()
    add('RPUSH', KEYS[5], items)
    add('ZADD', KEYS[4], members)
  end
  -- Up to so many events after those in the index.
  local function lacking(most)
    return redis.call('XRANGE', KEYS[2], upTo == '' and '-' or '(' .. upTo, '+', 'COUNT', most)
  end
  -- What an append has left to enter: prev, event, received and names, each with its value.
  local function isLeft(row)
    return row[2][8] ~= nil and row[2][8]:sub(1, 1) == '${MARK}'
  end
  local function enterLeft(most)
    if isComplete() then return end
    local events = {}
    for _, row in ipairs(lacking(most)) do
      if not isLeft(row) then break end
      local fields = row[2]
      events[#events + 1] = {row[1], #fields[4], fields[6], fields[8]}
    end
    enter(events)
  end

  -- Takes the events out of the index that the log no longer holds. Where the log holds more bytes than it may (0: any number), takes its
  -- oldest events out of both. A call takes out a few; with more added bytes, more.
  local function trim(most, added)
    -- An index that holds the whole log and no more has nothing to give up: the oldest event, which may be long, is not read.
    if isComplete() and count - gone <= redis.call('XLEN', KEYS[2]) and not (most > 0 and bytes > most) then return end
    local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
    local from
    local freed = 0
    for trimmed = 0, ${TRIMMED_AT_ONCE - 1} do
      if most > 0 and trimmed >= ${TRIMMED_BY_BYTES} and freed >= 2 * added then break end
      local item = redis.call('LINDEX', KEYS[5], 0)
      if not item then break end
      local id, size, digests = item:match('^(%S+) (%S+) (.*)$')
      local isGone = not oldest or isBefore(id, oldest[1])
      if not isGone and not (most > 0 and bytes > most and id ~= last) then break end
      redis.call('LPOP', KEYS[5])
      for digest in digests:gmatch('%S+') do redis.call('ZREM', KEYS[4], digest .. padded(id)) end
      gone, bytes, freed = gone + 1, bytes - tonumber(size), freed + tonumber(size)
      if gone % ${BLOCK} == 0 then redis.call('HDEL', KEYS[3], 'b' .. whole(blockOf(gone) - 1)) end
      if not isGone then from = id end
    end
    if from then
      noteGone(redis.call('XRANGE', KEYS[2], '-', from))
      local time, sequence = parts(from)
      redis.call('XTRIM', KEYS[2], 'MINID', '=', time .. '-' .. whole(tonumber(sequence) + 1))
    end
  end

  -- Keeps what was entered. An index that lacks nothing of the log is complete, also where the newest event was lost.
  local function finish()
    if not isComplete() and #lacking(1) == 0 then
      if upTo == '' then redis.call('ZADD', KEYS[4], 0, '!') end
      upTo = last
    end
    trim(0, 0)
    save()
  end
`;

/**
 * Enters what appends have left, and shows what they have not. Keys as for `FIND`. Arguments: how many.
 * Returns `{epoch, whether the index is complete, id of the last event in it, entries after it of which somebody has to tell the names}`.
 */
export const UNINDEXED = script(`
  ${READ_EPOCH}
  ${INDEX}
  if not isComplete() then
    enterLeft(ARGV[1])
    finish()
  end
  local rows = isComplete() and {} or lacking(ARGV[1])
  if rows[1] and isLeft(rows[1]) then rows = {} end
  return {epoch, isComplete() and 1 or 0, upTo, rows}
`);

/** How long the index of an earlier version is kept: a process of that version may run beside, and makes a lost one once more. */
const EARLIER_FOR_MS = 24 * 60 * 60 * 1000;

/**
 * Keys as for `FIND`, then those of an earlier version's index. Arguments: the id after which the index is to
 * go on; and for each event its id, its bytes, when it was received and its digests. Does nothing where another process has been
 * faster. Returns `{whether the index is complete}`.
 */
export const CATCH_UP = script(`
  ${READ_EPOCH}
  ${INDEX}
  if upTo == ARGV[1] then
    for number = 6, upTo == '' and #KEYS or 0 do redis.call('PEXPIRE', KEYS[number], ${EARLIER_FOR_MS}) end
    local events = {}
    for first = 2, #ARGV, 4 do events[#events + 1] = {unpack(ARGV, first, first + 3)} end
    enter(events)
    finish()
  end
  return {isComplete() and 1 or 0}
`);
