/**
 * A load in a process of its own, so that no other load's figures hold what it reads. Its parent sends a {@link Aside}; it sends the number of
 * answers after each round, and goes on until it is killed.
 */
import { setPriority } from 'node:os';
import { load, type Shot } from './load.ts';

/** What is sent again and again. */
export interface Aside {
  readonly url: string;
  /** In turn. */
  readonly shots: readonly Shot[];
  readonly connections: number;
}

/** By how much it comes after gateway and upstream where processors are short (nice): in production it runs elsewhere. */
const AFTER_OTHERS = 10;

setPriority(AFTER_OTHERS);
process.once('message', async (message) => {
  // aside.ts is started by `startAside` alone.
  const { url, shots, connections } = message as Aside;
  let sent = 0;
  const shot = (): Shot => {
    const next = shots[sent % shots.length];
    if (next === undefined) throw new Error('There is nothing to send.');
    sent += 1;
    return next;
  };
  for (;;) {
    await load({ url, requests: 2 * connections, connections, shot, check: () => {} });
    process.send?.(2 * connections);
  }
});
process.once('disconnect', () => process.exit());
