import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import { type Night, newTally, type Seen, takeSeen } from './night.ts';
import { openPhones } from './phones.ts';
import type { Stage } from './stage.ts';
import { pay, provide, read } from './work.ts';

/** Everything that goes on throughout the night. */
export interface Traffic {
  /** What was seen since it was asked last. */
  take(): Seen;
  /**
   * Begins no credit and no payment until all that were begun have come to their end, or so many milliseconds are over. Then both go on.
   *
   * @returns how many credits were acknowledged and have not reached their phone; each is told once
   */
  settle(ms: number): Promise<number>;
  /** Of all payments and queries since `take` that were answered with data. */
  traces(): readonly string[];
  /** Tags of the payments that callers were told of as done. */
  readonly paid: readonly string[];
  stop(): Promise<void>;
}

export async function startTraffic(stage: Stage, count: number, lifetimeSeconds: number): Promise<Traffic> {
  const agent = new Agent({ connect: { ca: await readFile(stage.authority, 'utf8') }, connections: 32 });
  const tally = newTally();
  const running = new AbortController();
  const night: Night = { stage, agent, tally, ended: running.signal };
  const phones = await openPhones(night, count, lifetimeSeconds);
  const paid: string[] = [];
  const working = [provide(night, phones.customerIds), pay(night, paid), read(night, lifetimeSeconds)];
  return {
    take: () => takeSeen(tally),
    async settle(ms) {
      tally.isHeld = true;
      const end = Date.now() + ms;
      while (Date.now() < end && (tally.acknowledged.size > 0 || tally.open > 0)) await pause(100);
      const lost = tally.acknowledged.size;
      tally.acknowledged.clear();
      tally.isHeld = false;
      return lost;
    },
    traces: () => [...tally.seen.traces],
    paid,
    async stop() {
      running.abort();
      phones.stop();
      await Promise.all(working);
      await agent.destroy();
    },
  };
}
