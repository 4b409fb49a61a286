import { ambient } from './ambient.ts';
import { Pause } from './pause.ts';

/** What a page has of the Web Locks API, which its other tabs respect as well. */
export interface Locks {
  request(name: string, work: () => Promise<void>): Promise<void>;
  query(): Promise<{ readonly held?: readonly { readonly name?: string }[] }>;
}

/** By object and key: what this process does with it, one thing after another. */
const turns = new WeakMap<object, Map<string, Promise<unknown>>>();

/** Does one thing at a time for each key of an object. */
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

/** For how long a tab says what it has written, in milliseconds: by then each other tab has been told of it. */
const SAID_MS = 10_000;
/** Between looks whether this tab has been told, in milliseconds. */
const LOOK_MS = 5;

/**
 * Does one thing at a time in all tabs. Chromium may give a tab the lock before it has told the tab what another has written
 * under it. So whoever has written holds a second lock for a while, whose name says what stands in the storage, and the next tab
 * waits until it reads just that.
 *
 * @param read what stands in the storage
 */
export function tabTurns(locks: Locks, name: string, read: () => string | null | Promise<string | null>) {
  const prefix = `${name}\n`;
  let stopSaying = (): void => {};
  /** What was said last, by whichever tab: when, and a digest of what stands. */
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
      // Where an app has cleared the storage itself, nobody says so.
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
