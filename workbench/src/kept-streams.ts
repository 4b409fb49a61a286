import { tabStorage } from './browser-storage.ts';
import type { Transport } from './net/stream.ts';
import { type Entry, type Stream, useStreams } from './stream-store.ts';

/** For this tab of the browser, until it is closed: events name people and accounts. */
const KEY = 'pasarela:streams';
/** A burst of events is written once. */
const CALM_MS = 250;

type Streams = Readonly<Record<string, Stream>>;

/** Keeps the streams where a reload finds them. */
export function keepStreams(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const write = () => {
    clearTimeout(timer);
    timer = undefined;
    save(useStreams.getState());
  };
  useStreams.subscribe(() => {
    timer ??= setTimeout(write, CALM_MS);
  });
  window.addEventListener('pagehide', write);
}

/** Leaves out the oldest events where the browser has no room for all. */
function save(streams: Streams): void {
  for (let most = Number.POSITIVE_INFINITY; most >= 1; most = Math.min(most, 256) / 4) {
    const cut = Object.entries(streams).map(([tab, stream]) => [
      tab,
      { ...stream, frozen: undefined, entries: stream.entries.slice(0, most) },
    ]);
    try {
      tabStorage.setItem(KEY, JSON.stringify(Object.fromEntries(cut)));
      return;
    } catch {
      tabStorage.removeItem(KEY);
    }
  }
}

/** The streams of this page before it was loaded again. */
export function keptStreams(): Streams {
  try {
    return streamsOf(JSON.parse(tabStorage.getItem(KEY) ?? '{}'));
  } catch {
    return {};
  }
}

/** As JSON has it. An earlier version of the page kept no `asked`. */
type Written = Omit<Stream, 'entries' | 'asked'> & { entries: Entry[]; asked?: Transport };

/** What JSON has made of streams, with its dates again. */
export function streamsOf(written: Record<string, Written>): Streams {
  return Object.fromEntries(
    Object.entries(written).map(([tab, stream]) => [
      tab,
      {
        asked: stream.transport,
        ...stream,
        entries: stream.entries.map((entry) => ({ ...entry, at: new Date(entry.at) })),
      },
    ]),
  );
}

export const forgetStreams = (): void => tabStorage.removeItem(KEY);
