import { ambient } from './ambient.ts';
import { Pause } from './pause.ts';

/** The part of the Web Locks API that is used. All tabs of an origin share its locks. */
export interface Locks {
  request(name: string, work: () => Promise<void>): Promise<void>;
  query(): Promise<{ readonly held?: readonly { readonly name?: string }[] }>;
}

/** By object and key: the last piece of work of this process, which the next one waits for. */
const turns = new WeakMap<object, Map<string, Promise<unknown>>>();

/** Runs one piece of work at a time for each key of an object. */
export function inTurn(of: object, key: string, work: () => Promise<void>): Promise<void> {
  const ours = turns.get(of) ?? new Map<string, Promise<unknown>>();
  turns.set(of, ours);
  const mine = (ours.get(key) ?? Promise.resolve()).then(work);
  ours.set(
    key,
    mine.catch(() => undefined),
  );
  return mine;
}

/** How long a tab announces what it has written, in milliseconds. By then every other tab sees it. */
const SAID_MS = 10_000;
/** How often this tab checks if it sees it, in milliseconds. */
const LOOK_MS = 5;

/**
 * Runs one piece of work at a time in all tabs. Chromium may give a tab the lock before that tab sees what another has
 * written under it. So a tab that has written holds a second lock for a while, whose name is a digest of the stored value,
 * and the next tab waits until it reads that value.
 *
 * @param read returns the stored value
 */
export function tabTurns(locks: Locks, name: string, read: () => string | null | Promise<string | null>) {
  const prefix = `${name}\n`;
  let stopSaying = (): void => {};
  /** Returns the latest announcement of any tab: its time, and a digest of the stored value. */
  const lastSaid = async (): Promise<readonly number[]> => {
    const { held = [] } = await locks.query();
    const said = held
      .filter((lock) => lock.name?.startsWith(prefix))
      .map((lock) => String(lock.name).slice(prefix.length).split(' ').map(Number));
    return said.sort(([one = 0], [other = 0]) => other - one)[0] ?? [0, 0];
  };
  const say = (what: string): Promise<void> =>
    new Promise((isSaid) => {
      void locks.request(prefix + what, () => {
        const said = new Pause();
        stopSaying();
        stopSaying = () => said.wake();
        isSaid();
        return said.wait(SAID_MS);
      });
    });
  return (work: () => Promise<void>): Promise<void> =>
    locks.request(name, async () => {
      const begun = ambient.now();
      const [saidAt = 0, said] = await lastSaid();
      // If an app has cleared the storage itself, no tab announces that.
      const until = Math.min(saidAt, begun) + SAID_MS;
      while (ambient.now() < until && digestOf(await read()) !== said) await new Pause().wait(LOOK_MS);
      await work();
      await say(`${Math.max(saidAt + 1, begun)} ${digestOf(await read())}`);
    });
}

function digestOf(text: string | null): number {
  let digest = 0;
  for (const sign of text ?? '') digest = (Math.imul(digest, 31) + sign.charCodeAt(0)) | 0;
  return digest;
}
