/**
 * Looks at `/readyz` of gateways, beside the proxies and in a process of its own, so that no figure holds the work of phones and payer.
 * Its arguments are the gateways' addresses; each answer is told to its parent.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

/** One answer of `/readyz`, or none. */
export interface Look {
  readonly url: string;
  /** Undefined where nobody listened. */
  readonly milliseconds: number | undefined;
  /** The status, or what is missing. */
  readonly state: string;
  /** By how much a timer of this process, which has nothing else to do, was late at most since it said so last, in milliseconds. */
  readonly lateMs: number;
}

const EVERY_MS = 250;
const GIVE_UP_MS = 10_000;
const TIMER_MS = 20;
const delays = monitorEventLoopDelay({ resolution: TIMER_MS });
delays.enable();

async function look(url: string): Promise<Omit<Look, 'lateMs'>> {
  const start = performance.now();
  const took = () => performance.now() - start;
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(GIVE_UP_MS) });
    // docs/monitoring.md, "Health".
    const { status, degraded = [] } = (await response.json()) as { status: string; degraded?: string[] };
    return { url, milliseconds: took(), state: degraded.length === 0 ? status : degraded.join(' + ') };
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    return { url, milliseconds: isLate ? took() : undefined, state: isLate ? 'no answer' : 'gone' };
  }
}

// The parent is gone.
process.on('disconnect', () => process.exit(0));
await Promise.all(
  process.argv.slice(2).map(async (url) => {
    for (;;) {
      const seen = await look(url);
      const lateMs = Math.max(0, delays.max / 1e6 - TIMER_MS);
      delays.reset();
      process.send?.({ ...seen, lateMs } satisfies Look);
      await pause(EVERY_MS);
    }
  }),
);
