import { forgetStreams, keepStreams, keptStreams } from './kept-streams.ts';
import type { Operation } from './net/result.ts';
import { resumesOverSocket } from './net/resume.ts';
import { preferredTransport, sharesConnection, type Transport } from './net/stream.ts';
import { keptTabs } from './storage.ts';
import { Runner } from './stream-runner.ts';
import { addEntry, changeStream, isGoingOn, useStreams } from './stream-store.ts';
import { t } from './words.ts';

/** How long a connection that was cut on purpose stays cut, so that something can happen meanwhile. */
export const CUT_MS = 3_000;

/**
 * How many streams of this page may be over SSE at once. Over HTTP/1.1 each takes one of some six connections, which are those of all
 * windows: with two, another window and requests have theirs.
 */
const MOST_OVER_SSE = 2;

/** A socket sends no other header than the token. */
const fitsSocket = (operation: Operation, headers: Readonly<Record<string, string>>): boolean =>
  resumesOverSocket(operation) &&
  Object.keys(headers).every((name) => name.toLowerCase() === 'authorization');

/** Returns what is asked for, or a socket where another stream over SSE would leave too few connections and the socket loses nothing. */
function transportOf(
  tab: string,
  operation: Operation,
  headers: Readonly<Record<string, string>>,
  asked: Transport,
): Transport {
  const overEvents = Object.entries(useStreams.getState()).filter(
    ([other, stream]) => other !== tab && isGoingOn(stream) && stream.transport === 'SSE',
  );
  const hasRoom = overEvents.length < MOST_OVER_SSE || sharesConnection();
  return asked === 'WS' || hasRoom || !fitsSocket(operation, headers) ? asked : 'WS';
}

const running = new Map<string, Runner>();

function run(tab: string, runner: Runner): void {
  running.set(tab, runner);
  void runner.run();
}

/** Begins the stream of a tab; one that it has already is ended first. */
export function startStream(
  tab: string,
  operation: Operation,
  headers: Readonly<Record<string, string>>,
): void {
  running.get(tab)?.stop();
  const asked = useStreams.getState()[tab]?.asked ?? preferredTransport();
  const transport = transportOf(tab, operation, headers, asked);
  useStreams.setState({
    [tab]: {
      status: 'connecting',
      transport,
      asked,
      operation,
      hasHeaders: Object.keys(headers).length > 0,
      cursor: undefined,
      entries: [],
      count: 0,
      frozen: undefined,
    },
  });
  run(tab, new Runner(tab, operation, headers, undefined));
}

/**
 * Brings back the streams of this page before it was loaded again: those that were live go on behind the last event that
 * they had.
 */
export function restoreStreams(): void {
  const tabs = keptTabs();
  // One whose tab is gone would run on where nobody sees or stops it.
  const streams = Object.entries(keptStreams()).filter(([tab]) => tabs.includes(tab));
  useStreams.setState(Object.fromEntries(streams));
  keepStreams();
  for (const [tab, stream] of Object.entries(useStreams.getState())) {
    if (!isGoingOn(stream)) continue;
    if (stream.hasHeaders) {
      addEntry(tab, { text: t('The page was reloaded. Headers are not kept: press play to go on.') });
      changeStream(tab, () => ({ status: 'ended' }));
      continue;
    }
    addEntry(tab, { text: t('The page was reloaded.') });
    const transport = transportOf(tab, stream.operation, {}, stream.asked);
    changeStream(tab, () => ({ status: 'cut', transport }));
    run(tab, new Runner(tab, stream.operation, {}, stream.cursor));
  }
}

export function stopStream(tab: string): void {
  running.get(tab)?.stop();
  changeStream(tab, () => ({ status: 'ended' }));
}

/** Forgets the stream of a tab, so that its results are shown again. */
export function dropStream(tab: string): void {
  running.get(tab)?.stop();
  running.delete(tab);
  const { [tab]: _dropped, ...others } = useStreams.getState();
  useStreams.setState(others, true);
}

/** Forgets all of them, and what was kept for a reload. */
export function dropStreams(): void {
  for (const tab of Object.keys(useStreams.getState())) dropStream(tab);
  forgetStreams();
}

export const clearStream = (tab: string): void =>
  changeStream(tab, () => ({ entries: [], frozen: undefined, count: 0 }));

export const pauseStream = (tab: string, isPaused: boolean): void =>
  changeStream(tab, ({ entries }) => ({ frozen: isPaused ? entries : undefined }));

export function setTransport(tab: string, transport: Transport): void {
  changeStream(tab, () => ({ transport, asked: transport }));
  running.get(tab)?.cut(0);
}

/** Cuts every connection for a while. @returns how many there were. */
export function cutStreams(): number {
  const live = Object.entries(useStreams.getState()).filter(([, { status }]) => status === 'live');
  for (const [tab] of live) running.get(tab)?.cut(CUT_MS);
  return live.length;
}
