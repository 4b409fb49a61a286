import { ambient } from './ambient.ts';
import { Pause } from './pause.ts';

/** The part of the Web Locks API that is used. All tabs of an origin share its locks. */
interface Locks {
  request(name: string, work: () => Promise<void>): Promise<void>;
  query(): Promise<{ readonly held?: readonly { readonly name?: string }[] }>;
}

/** Returns what a page has, and a server or a phone lacks. */
export const browser = () =>
  globalThis as { readonly document?: object; readonly navigator?: { readonly locks?: Locks } };

/** By object: the last piece of work of this process, which the next one waits for. */
const turns = new WeakMap<object, Promise<unknown>>();

/** Runs one piece of work at a time for each object. */
export function inTurn(of: object, work: () => Promise<void>): Promise<void> {
  const mine = Promise.resolve(turns.get(of)).then(work);
  turns.set(
    of,
    mine.catch(() => undefined),
  );
  return mine;
}

/** How long a tab announces what it has written, in milliseconds. By then every other tab sees it. */
const SAID_MS = 10_000;
/** How often this tab checks if it sees it, in milliseconds. */
const LOOK_MS = 5;

/**
 * Runs one piece of work at a time: in all tabs if there are Web Locks, otherwise in this process. Chromium may give a tab the
 * lock before that tab sees what another has written under it. So a tab that has written holds a second lock for a while,
 * whose name is a digest of the stored value, and the next tab waits until it reads that value.
 *
 * @param read returns the stored value
 */
export function tabTurns(storage: object, name: string, read: () => string | null | Promise<string | null>) {
  const prefix = `${name}\n`;
  let stopSaying = (): void => {};
  return (work: () => Promise<void>): Promise<void> => {
    const { document, navigator } = browser();
    const locks = navigator?.locks;
    if (locks === undefined) return inTurn(storage, work);
    return locks.request(name, async () => {
      if (document === undefined) return work();
      const begun = ambient.now();
      const { held = [] } = await locks.query();
      // The latest announcement of any tab: its time, which has as many digits each time, and a digest.
      const names = held.map(({ name: of = '' }) => of).filter((of) => of.startsWith(prefix));
      const [saidAt = 0, said] = names.sort().at(-1)?.slice(prefix.length).split(' ').map(Number) ?? [];
      // If an app has cleared the storage itself, no tab announces that.
      const until = Math.min(saidAt, begun) + SAID_MS;
      while (ambient.now() < until && digestOf(await read()) !== said) await new Pause().wait(LOOK_MS);
      await work();
      const announcement = `${prefix}${Math.max(saidAt + 1, begun)} ${digestOf(await read())}`;
      await new Promise<void>((isSaid) => {
        void locks.request(announcement, () => {
          const saying = new Pause();
          stopSaying();
          stopSaying = () => saying.wake();
          isSaid();
          return saying.wait(SAID_MS);
        });
      });
    });
  };
}

function digestOf(text: string | null): number {
  let digest = 0;
  for (const sign of text ?? '') digest = (Math.imul(digest, 31) + sign.charCodeAt(0)) | 0;
  return digest;
}
