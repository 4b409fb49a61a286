import { create } from 'zustand';
import { codeOf, isObject, type Operation, type Result } from './net/result.ts';
import { connect, LostError, preferredTransport, type Transport } from './net/stream.ts';
import { refreshSession, untilReachable, useSession } from './session.ts';

/** How many events of a stream are kept. */
const KEPT = 200;
/** How long a connection that was cut on purpose stays cut, so that something can happen meanwhile. */
export const CUT_MS = 3_000;
/** An event that comes this soon after a stream was resumed was waiting for it. */
const CATCHING_UP_MS = 750;
const LONGEST_WAIT_MS = 2_000;

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

export interface Stream {
  readonly status: 'connecting' | 'live' | 'cut' | 'ended';
  readonly transport: Transport;
  /** Newest first. */
  readonly entries: readonly (StreamEvent | StreamNote)[];
  /** How many events there were in all. */
  readonly count: number;
  /** What is shown while the list is paused; undefined while it is not. */
  readonly frozen: readonly (StreamEvent | StreamNote)[] | undefined;
}

/** The stream of each tab, by the tab's id. */
export const useStreams = create<Readonly<Record<string, Stream>>>(() => ({}));

export const isLive = (stream: Stream | undefined): boolean =>
  stream !== undefined && stream.status !== 'ended';

const running = new Map<string, Runner>();
let keys = 0;

function change(tab: string, update: (stream: Stream) => Partial<Stream>): void {
  const stream = useStreams.getState()[tab];
  if (stream !== undefined) useStreams.setState({ [tab]: { ...stream, ...update(stream) } });
}

const add = (tab: string, entry: Omit<StreamEvent, 'key' | 'at'> | Omit<StreamNote, 'key' | 'at'>): void =>
  change(tab, ({ entries, count }) => {
    keys += 1;
    const kept = [{ ...entry, key: keys, at: new Date() }, ...entries].slice(0, KEPT);
    return { entries: kept, count: 'result' in entry ? count + 1 : count };
  });

/** Begins the stream of a tab; one that it has already is ended first. What it has shown stays. */
export function startStream(
  tab: string,
  operation: Operation,
  headers: Readonly<Record<string, string>>,
): void {
  running.get(tab)?.stop();
  const before = useStreams.getState()[tab];
  const transport = before?.transport ?? preferredTransport();
  useStreams.setState({
    [tab]: { status: 'connecting', transport, entries: [], count: 0, frozen: undefined },
  });
  const runner = new Runner(tab, operation, headers);
  running.set(tab, runner);
  void runner.run();
}

export function stopStream(tab: string): void {
  running.get(tab)?.stop();
  change(tab, () => ({ status: 'ended' }));
}

/** Forgets the stream of a tab, so that its results are shown again. */
export function dropStream(tab: string): void {
  running.get(tab)?.stop();
  running.delete(tab);
  const { [tab]: _dropped, ...others } = useStreams.getState();
  useStreams.setState(others, true);
}

export const clearStream = (tab: string): void =>
  change(tab, () => ({ entries: [], frozen: undefined, count: 0 }));

export const pauseStream = (tab: string, isPaused: boolean): void =>
  change(tab, ({ entries }) => ({ frozen: isPaused ? entries : undefined }));

export function setTransport(tab: string, transport: Transport): void {
  change(tab, () => ({ transport }));
  running.get(tab)?.reconnect();
}

/** Cuts every connection for a while. @returns how many there were. */
export function cutStreams(): number {
  const live = Object.entries(useStreams.getState()).filter(([, { status }]) => status === 'live');
  for (const [tab] of live) running.get(tab)?.cut();
  return live.length;
}

/** Errors after which a stream goes on from now, as what came before cannot be had. */
const WITHOUT_PAST: readonly unknown[] = ['EVENTS_GAP', 'CURSOR_INVALID'];

/** Keeps one subscription going over as many connections as it takes. */
class Runner {
  readonly #tab: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #stopped = new AbortController();
  #operation: Operation;
  #connection = new AbortController();
  #cursor: string | undefined;
  #openedAt = 0;
  #wasOpen = false;
  #isResuming = false;
  #isRefused = false;
  #caughtUp = 0;
  #pauseMs = 0;
  #isFinal = false;

  constructor(tab: string, operation: Operation, headers: Readonly<Record<string, string>>) {
    this.#tab = tab;
    this.#operation = operation;
    this.#headers = headers;
  }

  stop(): void {
    this.#stopped.abort();
    this.#connection.abort();
  }

  cut(): void {
    this.#pauseMs = CUT_MS;
    this.#connection.abort();
  }

  reconnect(): void {
    this.#connection.abort();
  }

  async run(): Promise<void> {
    for (let failures = 0; !this.#stopped.signal.aborted; failures += 1) {
      const { token } = useSession.getState();
      try {
        this.#connection = new AbortController();
        this.#isFinal = true;
        await connect(useStreams.getState()[this.#tab]?.transport ?? 'SSE', {
          operation: this.#operation,
          headers: this.#headers,
          lastCursor: this.#cursor,
          signal: this.#connection.signal,
          onOpen: () => {
            failures = 0;
            this.#opened();
          },
          onResult: (result, cursor) => this.#receive(result, cursor),
        });
        if (this.#stopped.signal.aborted) return;
        if (this.#isFinal && !(await this.#hasOtherToken(token))) {
          change(this.#tab, () => ({ status: 'ended' }));
          return;
        }
      } catch (error) {
        if (!(error instanceof LostError)) throw error;
        if (this.#stopped.signal.aborted) return;
        if (this.#wasOpen) this.#note('Cut.');
        this.#wasOpen = false;
        change(this.#tab, () => ({ status: 'cut' }));
        await sleep(this.#pauseMs);
        this.#pauseMs = 0;
        if (this.#stopped.signal.aborted) return;
        await untilReachable();
        if (failures > 0) await sleep(Math.min(250 * 2 ** failures, LONGEST_WAIT_MS));
      }
    }
  }

  /** Whether a refused token has been replaced meanwhile, so that asking again is worth it. */
  async #hasOtherToken(token: string | undefined): Promise<boolean> {
    if (!this.#isRefused) return false;
    this.#isRefused = false;
    await refreshSession();
    return useSession.getState().token !== token;
  }

  #opened(): void {
    this.#openedAt = performance.now();
    const isAgain = (useStreams.getState()[this.#tab]?.status ?? 'connecting') === 'cut';
    this.#wasOpen = true;
    this.#caughtUp = 0;
    change(this.#tab, () => ({ status: 'live' }));
    if (!isAgain) return;
    const from = this.#cursor === undefined ? '' : `, resumed from cursor ${shorten(this.#cursor)}`;
    this.#note(`Reconnected${from}.`);
    setTimeout(() => {
      if (!this.#stopped.signal.aborted && this.#wasOpen) {
        this.#note(
          this.#caughtUp === 0
            ? 'Caught up: nothing was missed.'
            : `${this.#caughtUp} caught up: the gap is closed.`,
        );
      }
    }, CATCHING_UP_MS);
    this.#isResuming = true;
  }

  #receive(result: Result, cursor: string | undefined): void {
    const code = codeOf(result);
    if (code === 'UNAUTHENTICATED') this.#isRefused = true;
    if (WITHOUT_PAST.includes(code) && this.#cursor !== undefined) {
      this.#cursor = undefined;
      this.#isFinal = false;
      const { variables } = this.#operation;
      if (variables !== undefined && 'after' in variables) {
        this.#operation = { ...this.#operation, variables: { ...variables, after: null } };
      }
      this.#note('The event log begins later than this stream left off: it goes on from now.');
      return;
    }
    this.#cursor = cursor ?? cursorOf(result) ?? this.#cursor;
    const wasMissed =
      this.#isResuming && performance.now() - this.#openedAt < CATCHING_UP_MS && !isSnapshot(result);
    if (wasMissed) this.#caughtUp += 1;
    add(this.#tab, { result, cursor: cursor ?? cursorOf(result), wasMissed });
  }

  #note(text: string): void {
    add(this.#tab, { text });
  }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const shorten = (cursor: string): string => (cursor.length > 16 ? `…${cursor.slice(-12)}` : cursor);

const payloadOf = ({ data }: Result): Readonly<Record<string, unknown>> => {
  const [payload] = Object.values(data ?? {});
  return isObject(payload) ? payload : {};
};

const cursorOf = (result: Result): string | undefined => {
  const { cursor } = payloadOf(result);
  return typeof cursor === 'string' ? cursor : undefined;
};

/** The state of a receipt at the start of its stream is no event that was missed. */
const isSnapshot = (result: Result): boolean => payloadOf(result)['kind'] === 'SNAPSHOT';
