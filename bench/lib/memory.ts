import type { RunningServer } from './process.ts';
import { programFile } from './stub.ts';

/** Options of Node for a server whose memory is measured. */
export const COLLECTOR = ['--expose-gc', '--import', programFile('lib/collect-on-signal.ts')];

/** Resident memory once it no longer falls, with garbage collected. */
export async function settledRss(server: RunningServer): Promise<number> {
  let lowest = Number.POSITIVE_INFINITY;
  for (let steady = 0; steady < 4; ) {
    process.kill(server.pid, 'SIGUSR2');
    await new Promise((resolve) => setTimeout(resolve, 400));
    const rss = server.rssBytes();
    steady = rss < lowest * 0.99 ? 0 : steady + 1;
    lowest = Math.min(lowest, rss);
  }
  return lowest;
}
