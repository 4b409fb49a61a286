import { script } from '../../redis/script.ts';
import { BLOCK } from '../search.ts';
import { READ_EPOCH } from './epoch.ts';
import { INDEX, LEFT_AT_MOST } from './search-scripts.ts';

/** Adjacent blocks whose events are read in one step. */
const RUN = 4;
/** Blocks whose times are read in one step. */
const READ_AT_ONCE = 64;

/**
 * Keys: meta, log, the three of the index. Arguments: `on` or `back`, a position to begin after or before
 * (or nothing), how many events, the times between which they were received (or nothing), the digest of a name (or nothing).
 * Returns `{epoch}` where the index lacks events, else `{epoch, 1, whether the position is held, whether more may follow, entries in the
 * direction of the search}`.
 */
export const FIND = script(`
  ${READ_EPOCH}
  ${INDEX}
  -- Where Redis takes no writes at this moment, the log has to be read.
  if not isComplete() and not pcall(function() enterLeft(${LEFT_AT_MOST}) finish() end) then return {epoch} end
  if not isComplete() then return {epoch} end
  local isOn, place, limit, digest = ARGV[1] == 'on', ARGV[2], tonumber(ARGV[3]), ARGV[6]
  local from, to = tonumber(ARGV[4]), tonumber(ARGV[5])
  local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
  -- The place before the first event of another life of the log is none.
  local isPosition = place:find('-', 1, true) ~= nil
  -- Of a log that holds no event and has had some, the reader of the log tells what is lost.
  local isHeld = (oldest ~= nil or last == epoch) and (place == '' or (place == epoch and not isOn)
    or (isOn and place == (oldest and oldest[2][2] or last))
    or (isPosition and redis.call('XRANGE', KEYS[2], place, place)[1] ~= nil))
  local nothing = {epoch, 1, isHeld and 1 or 0, 0, {}}
  if not isHeld or not oldest or (place == epoch and not isOn) then return nothing end

  local lowest, highest = blockOf(gone), blockOf(count - 1)
  local blocks = {}
  local function block(number)
    if not blocks[number] then
      -- Blocks are mostly asked for in a row.
      local start = math.max(lowest, number - number % ${READ_AT_ONCE})
      local fields = {}
      for other = start, math.min(highest, start + ${READ_AT_ONCE - 1}) do fields[#fields + 1] = 'b' .. whole(other) end
      for index, text in ipairs(redis.call('HMGET', KEYS[3], unpack(fields))) do
        blocks[start + index - 1] = {text:match('^(%S+) (%S+) (%S+)$')}
      end
    end
    return blocks[number][1]
  end
  local function isOfTime(number)
    block(number)
    local _, earliest, latest = unpack(blocks[number])
    return (not from or tonumber(latest) >= from) and (not to or tonumber(earliest) < to)
  end
  -- An earlier version does not say beside the event when it was received.
  local function isSought(row)
    local received = row[2][6] and tonumber(row[2][6])
    return not received or ((not from or received >= from) and (not to or received < to))
  end
  -- The first block of the time from one on, in the direction of the step; nothing past the ends.
  local function seek(number, step)
    while number >= lowest and number <= highest do
      if isOfTime(number) then return number end
      number = number + step
    end
  end
  -- The block that a position is in, or would be.
  local function blockAt(id)
    local low, high = lowest, highest
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if isBefore(id, block(middle)) then high = middle - 1 else low = middle end
    end
    return low
  end
  local function reply(entries, hasMore)
    return {epoch, 1, 1, (hasMore and #entries > 0) and 1 or 0, entries}
  end

  if digest ~= '' then
    local first, last = seek(lowest, 1), seek(highest, -1)
    if not first then return nothing end
    local start, opening = padded(oldest[1]), padded(block(first))
    local low = '[' .. digest .. (opening > start and opening or start)
    -- A z is after all digits by its byte and in every locale: Lua compares texts by that of Redis.
    local high = '(' .. digest .. (last < highest and padded(block(last + 1)) or 'z')
    if isPosition then
      local bound = '(' .. digest .. padded(place)
      if isOn and bound:sub(2) >= low:sub(2) then low = bound end
      if not isOn and bound:sub(2) < high:sub(2) then high = bound end
    end
    local members = isOn and redis.call('ZRANGE', KEYS[4], low, high, 'BYLEX', 'LIMIT', 0, limit + 1)
      or redis.call('ZRANGE', KEYS[4], high, low, 'BYLEX', 'REV', 'LIMIT', 0, limit + 1)
    local entries = {}
    for index = 1, math.min(#members, limit) do
      local id = unpadded(members[index]:sub(#digest + 1))
      entries[#entries + 1] = redis.call('XRANGE', KEYS[2], id, id)[1]
    end
    return reply(entries, #members > limit)
  end

  local step = isOn and 1 or -1
  local number = isPosition and blockAt(place) or (isOn and lowest or highest)
  while true do
    number = seek(number, step)
    if not number then return nothing end
    local stop = number + step
    while math.abs(stop - number) < ${RUN} and stop >= lowest and stop <= highest and isOfTime(stop) do
      stop = stop + step
    end
    local bottom, top = isOn and number or stop + 1, isOn and stop - 1 or number
    local low = block(bottom)
    local high = top < highest and '(' .. block(top + 1) or '+'
    if isPosition and isOn and not isBefore(place, low) then low = '(' .. place end
    if isPosition and not isOn and (high == '+' or isBefore(place, high:sub(2))) then high = '(' .. place end
    local rows, read, last, looked = {}, nil, nil, 0
    while true do
      read = isOn and redis.call('XRANGE', KEYS[2], low, high, 'COUNT', limit + 1)
        or redis.call('XREVRANGE', KEYS[2], high, low, 'COUNT', limit + 1)
      for _, row in ipairs(read) do
        if #rows <= limit and isSought(row) then rows[#rows + 1] = row end
      end
      last, looked = read[#read] or last, looked + #read
      if last then low, high = isOn and '(' .. last[1] or low, isOn and high or '(' .. last[1] end
      if #rows > limit or #read <= limit or looked >= ${BLOCK} then break end
    end
    if #rows > limit then
      table.remove(rows)
      return reply(rows, true)
    end
    -- A search goes on from the last event that was looked at, whatever its time.
    if #rows == 0 then rows = {last} end
    if #rows > 0 then return reply(rows, #read > limit or seek(stop, step) ~= nil) end
    number = stop
  end
`);
