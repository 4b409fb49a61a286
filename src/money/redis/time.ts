/** What time it is by this Redis, in ms since the epoch: one clock for all processes. */
export const NOW = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)`;
