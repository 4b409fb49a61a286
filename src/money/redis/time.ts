/** Sets `now`: the time by this Redis, in ms since the epoch. All processes use this clock. */
export const NOW = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)`;
