import { setTimeout as pause } from 'node:timers/promises';
import type { Fleet, Member } from '../../helpers/fleet.ts';

export interface ChaosOptions {
  readonly fleet: Fleet;
  readonly random: () => number;
  /** Starts the gateway that has been ended anew. */
  readonly restart: () => Promise<Member>;
  /** The gateway that may be ended. */
  readonly victim: () => Member;
}

export interface Chaos {
  /** How often each thing has been done. */
  readonly done: Readonly<Record<string, number>>;
  /** Ends once everything is up again. Rejects when a process told to end has not ended well. */
  stop(): Promise<void>;
}

/** Milliseconds between two blows, and of an outage, at least and at most. */
const QUIET = [4_000, 10_000] as const;
const OUTAGE = [200, 3_000] as const;

/** Now and then ends or stops Redis or a gateway, and brings it back. One at a time: somebody is always there. */
export function startChaos({ fleet, random, restart, victim }: ChaosOptions): Chaos {
  const done: Record<string, number> = {};
  const stopping = new AbortController();
  const between = ([least, most]: readonly [number, number]) => least + random() * (most - least);
  const { redis } = fleet;

  const blows: Readonly<Record<string, () => Promise<void>>> = {
    async 'redis kill -9'() {
      await redis.kill();
      await pause(between(OUTAGE));
      await redis.start();
    },
    async 'redis stopped'() {
      redis.freeze();
      await pause(between(OUTAGE));
      redis.thaw();
    },
    async 'gateway kill -9'() {
      await victim().program.end('SIGKILL');
      await pause(between(OUTAGE));
      await restart();
    },
    async 'gateway SIGTERM'() {
      const { program } = victim();
      const code = await program.end('SIGTERM');
      if (code !== 0) throw new Error(`A gateway told to end ended with ${code}:\n${program.output()}`);
      await restart();
    },
  };

  const run = async (): Promise<void> => {
    for (;;) {
      await pause(between(QUIET), undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      const names = Object.keys(blows);
      const name = names[Math.floor(random() * names.length)] ?? '';
      await blows[name]?.();
      done[name] = (done[name] ?? 0) + 1;
    }
  };
  const running = run();
  // It is awaited at the end; a failure meanwhile is told then.
  running.catch(() => undefined);
  return {
    done,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
