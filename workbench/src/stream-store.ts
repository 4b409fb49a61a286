import { create } from 'zustand';
import type { Operation, Result } from './net/result.ts';
import type { Transport } from './net/stream.ts';

/** How many events of a stream are kept. */
const KEPT = 200;

export interface StreamEvent {
  readonly key: number;
  readonly at: Date;
  readonly result: Result;
  readonly cursor: string | undefined;
  /** Whether it happened while the stream was cut. */
  readonly wasMissed: boolean;
}

/** Something that happened to the stream itself. */
export interface StreamNote {
  readonly key: number;
  readonly at: Date;
  readonly text: string;
}

export type Entry = StreamEvent | StreamNote;

export const isEvent = (entry: Entry): entry is StreamEvent => 'result' in entry;

export interface Stream {
  /** `waiting`: for a token that the gateway accepts. */
  readonly status: 'connecting' | 'live' | 'cut' | 'waiting' | 'ended';
  readonly transport: Transport;
  /** What a person has chosen, or the page's address. `transport` is another where the page saves a connection by it. */
  readonly asked: Transport;
  readonly operation: Operation;
  /** Whether headers were sent along, which are kept for nobody. */
  readonly hasHeaders: boolean;
  /** Everything up to here has been received; undefined where nothing is known. */
  readonly cursor: string | undefined;
  /** Newest first. */
  readonly entries: readonly Entry[];
  /** How many events there were in all. */
  readonly count: number;
  /** What is shown while the list is paused; undefined while it is not. */
  readonly frozen: readonly Entry[] | undefined;
}

/** The stream of each tab, by the tab's id. */
export const useStreams = create<Readonly<Record<string, Stream>>>(() => ({}));

/** Whether it may bring events yet: it may be cut or wait meanwhile. */
export const isGoingOn = (stream: Stream | undefined): boolean =>
  stream !== undefined && stream.status !== 'ended';

export function changeStream(tab: string, update: (stream: Stream) => Partial<Stream>): void {
  const stream = useStreams.getState()[tab];
  if (stream !== undefined) useStreams.setState({ [tab]: { ...stream, ...update(stream) } });
}

let keys = 0;

/** A key that no entry has yet: those of a visit before are known by now. */
const nextKey = (entries: readonly Entry[]): number => {
  keys = Math.max(keys, entries[0]?.key ?? 0) + 1;
  return keys;
};

export const addEntry = (
  tab: string,
  entry: Omit<StreamEvent, 'key' | 'at'> | Omit<StreamNote, 'key' | 'at'>,
): void =>
  changeStream(tab, ({ entries, count }) => {
    const kept = [{ ...entry, key: nextKey(entries), at: new Date() }, ...entries].slice(0, KEPT);
    return { entries: kept, count: 'result' in entry ? count + 1 : count };
  });
