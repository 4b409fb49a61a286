import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Loaded into a gateway before its own code: at SIGUSR2 it says what the process holds, after a collection. */

setFlagsFromString('--expose-gc');
// A context made after the flag has the function; it is this process' own collector.
const collect = runInNewContext('gc') as () => void;

process.on('SIGUSR2', () => {
  collect();
  const active: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) active[kind] = (active[kind] ?? 0) + 1;
  const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);
  process.stderr.write(
    `PROBE ${JSON.stringify({
      heap: process.memoryUsage().heapUsed,
      timers: active['Timeout'] ?? 0,
      sockets: active['TCPSocketWrap'] ?? 0,
      listeners,
    })}\n`,
  );
});
