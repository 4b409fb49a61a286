import { ownToken } from './net/execute.ts';
import { codeOf, isObject, type Operation, type Result, refusesToken } from './net/result.ts';
import { answersOverEvents, connect, LostError, resumesAt } from './net/stream.ts';
import { confirmRefusal, refreshSession, untilGoodToken, untilReachable, useSession } from './session.ts';
import { addEntry, changeStream, type Stream, useStreams } from './stream-store.ts';
import { counted, t } from './words.ts';

const LONGEST_WAIT_MS = 2_000;
/** Of a stream that is refused under a token that is accepted: nobody knows when that passes. */
const LONGEST_REFUSED_WAIT_MS = 30_000;
/** A connection that was open so long, in milliseconds, or that brought a result, is no failure: the next one comes without a pause. */
const STEADY_MS = 5_000;

/** Errors after which a stream goes on from now, as what came before cannot be had. */
const WITHOUT_PAST: readonly unknown[] = ['EVENTS_GAP', 'CURSOR_INVALID'];

/** Refusals that say nothing of when the stream can begin, and pass. */
const PASSING: readonly unknown[] = ['UPSTREAM_UNAVAILABLE', 'UPSTREAM_TIMEOUT', 'STORE_UNAVAILABLE'];

/** The least pause in milliseconds, where the stream can begin later (PROTOCOL.md, "What ends a stream"); else undefined. */
function waitOf({ data, errors }: Result): number | undefined {
  const { code, retryable, retryAfterMs } = errors?.[0]?.extensions ?? {};
  if (data != null) return undefined;
  if (typeof retryAfterMs === 'number') return retryAfterMs;
  return retryable === true || PASSING.includes(code) ? 0 : undefined;
}

/** Keeps one subscription going over as many connections as it takes. */
export class Runner {
  readonly #tab: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #stopped = new AbortController();
  readonly #operation: Operation;
  #connection = new AbortController();
  #cursor: string | undefined;
  #wasOpen = false;
  /** From the opening of a connection that resumes until the gateway says that it is live. */
  #isResuming = false;
  /** Whether the token is refused by what came last over this connection. */
  #isRefused = false;
  /** Whether the last refusal has not been told before. */
  #isNews = false;
  #caughtUp = 0;
  #pauseMs = 0;
  #isFinal = false;
  /** How many sockets in a row did not open though the gateway answered at that moment. */
  #unopened = 0;
  /** What the gateway asks for, where it has refused this connection for now. */
  #waitMs: number | undefined;
  /**
   * Whether a refusal has been told, and nothing else has come since. It is told once, however often the next connection is refused. Until
   * something else comes, the stream is not live.
   */
  #isWaitTold = false;

  /** @param cursor where an earlier visit left off. */
  constructor(
    tab: string,
    operation: Operation,
    headers: Readonly<Record<string, string>>,
    cursor: string | undefined,
  ) {
    this.#tab = tab;
    this.#operation = operation;
    this.#headers = headers;
    this.#cursor = cursor;
  }

  stop(): void {
    this.#stopped.abort();
    this.#connection.abort();
  }

  /** Ends the connection, and waits so long before the next. */
  cut(pauseMs: number): void {
    this.#pauseMs = pauseMs;
    this.#connection.abort();
  }

  async run(): Promise<void> {
    for (let failures = 0; !this.#stopped.signal.aborted; failures += 1) {
      const { token } = useSession.getState();
      let openedAt = Number.POSITIVE_INFINITY;
      let isFirst = true;
      try {
        this.#connection = new AbortController();
        this.#isFinal = true;
        this.#waitMs = undefined;
        this.#isRefused = false;
        await connect(this.#transport, {
          operation: this.#operation,
          headers: this.#headers,
          lastCursor: this.#cursor,
          signal: this.#connection.signal,
          onOpen: () => {
            openedAt = performance.now();
            this.#opened();
          },
          onResult: (result, cursor) => {
            this.#waitMs = waitOf(result);
            // What comes with a cursor is an event.
            this.#isRefused = cursor === undefined && result.data == null && refusesToken(result);
            if (this.#waitMs === undefined && !this.#isRefused) failures = 0;
            this.#receive(result, cursor, isFirst);
            isFirst = false;
          },
          onLive: (cursor) => this.#live(cursor),
        });
        if (this.#stopped.signal.aborted) return;
        if (this.#waitMs !== undefined) throw new LostError('Refused for now.', { waitMs: this.#waitMs });
        // Where the headers name a token, the session's was not sent.
        if (this.#isRefused && ownToken(this.#headers) === undefined)
          await this.#afterRefusal(token, failures);
        else if (this.#isFinal) {
          this.#change({ status: 'ended' });
          return;
        }
      } catch (error) {
        if (!(error instanceof LostError)) throw error;
        if (this.#stopped.signal.aborted) return;
        if (openedAt === Number.POSITIVE_INFINITY) await this.#leaveSocket();
        if (performance.now() - openedAt >= STEADY_MS) failures = 0;
        if (error.refusal !== undefined) this.#tell(error.refusal);
        await this.#comeBack(failures, error.waitMs);
      }
    }
  }

  get #transport() {
    return useStreams.getState()[this.#tab]?.transport ?? 'SSE';
  }

  /**
   * Leaves a socket that the page chose by itself, where a proxy on the way passes none on: at the second in a row that did not open
   * though a stream over SSE begins. One alone may have met a gateway that was back a moment later.
   */
  async #leaveSocket(): Promise<void> {
    const { asked } = useStreams.getState()[this.#tab] ?? {};
    if (asked !== 'SSE' || this.#transport === asked) return;
    const answers = await answersOverEvents({
      operation: this.#operation,
      headers: this.#headers,
      signal: this.#connection.signal,
    });
    // A person has chosen meanwhile.
    if (this.#connection.signal.aborted) return;
    this.#unopened = answers ? this.#unopened + 1 : 0;
    if (this.#unopened >= 2) this.#change({ transport: 'SSE' });
  }

  async #comeBack(failures: number, waitMs: number): Promise<void> {
    if (this.#wasOpen && !this.#isWaitTold) this.#note(t('Cut.'));
    this.#wasOpen = false;
    this.#change({ status: 'cut' });
    await sleep(this.#pauseMs);
    this.#pauseMs = 0;
    if (this.#stopped.signal.aborted) return;
    await untilReachable();
    await sleep(
      Math.max(waitMs, pauseAfter(failures, this.#isRefused ? LONGEST_REFUSED_WAIT_MS : LONGEST_WAIT_MS)),
    );
  }

  /**
   * Resolves once there is a token to go on with: the sandbox's next, or a person's.
   *
   * @throws LostError where the gateway accepts the one that this stream was refused under, or does not say
   */
  async #afterRefusal(token: string | undefined, failures: number): Promise<void> {
    if (this.#wasOpen) this.#change({ status: 'cut' });
    this.#wasOpen = false;
    await refreshSession();
    if (useSession.getState().token !== token) await sleep(pauseAfter(failures, LONGEST_REFUSED_WAIT_MS));
    else {
      const isRefused = await confirmRefusal(token);
      if (isRefused === false && this.#isNews)
        this.#note(
          t('The gateway accepts the token, and refuses this subscription. The page asks for it again.'),
        );
      if (!isRefused) throw new LostError('The subscription was refused, and its token, so far, is not.');
      this.#change({ status: 'waiting' });
      await untilGoodToken(token, this.#stopped.signal);
      this.#change({ status: 'cut' });
    }
    this.#isWaitTold = false;
  }

  #opened(): void {
    this.#unopened = 0;
    const isAgain = useStreams.getState()[this.#tab]?.status === 'cut';
    this.#wasOpen = true;
    this.#caughtUp = 0;
    if (!this.#isWaitTold) this.#change({ status: 'live' });
    if (!isAgain) return;
    const from = resumesAt(this.#transport, this.#operation, this.#cursor);
    this.#isResuming = from !== undefined;
    if (this.#isWaitTold) return;
    this.#note(
      from === undefined
        ? t('Reconnected.')
        : t('Reconnected, resumed from cursor {cursor}.', { cursor: shorten(from) }),
    );
  }

  /** The gateway has sent everything old: what was missed is known now. */
  #live(cursor: string): void {
    this.#keep(cursor);
    this.#goesOn();
    if (!this.#isResuming) return;
    this.#isResuming = false;
    this.#note(
      this.#caughtUp === 0
        ? t('Caught up: nothing was missed.')
        : counted(
            this.#caughtUp,
            '{count} caught up: the gap is closed.',
            '{count} caught up: the gap is closed.',
          ),
    );
  }

  #receive(result: Result, cursor: string | undefined, isFirst: boolean): void {
    if (this.#isRefused) {
      this.#tell(result);
      return;
    }
    const code = codeOf(result);
    if (WITHOUT_PAST.includes(code) && this.#cursor !== undefined) {
      this.#isFinal = false;
      this.#isResuming = false;
      // No operation has to bear an `after` of null for it: its variable may be a `Cursor!`.
      const head = result.errors?.[0]?.extensions?.['head'];
      this.#keep(typeof head === 'string' ? head : undefined);
      this.#note(
        t(
          'There is a gap: the events after this cursor are no longer in the log. The stream goes on from now.',
        ),
      );
      return;
    }
    // What comes with a cursor is an event.
    if (this.#waitMs !== undefined && isFirst && cursor === undefined) {
      this.#tell(result);
      return;
    }
    this.#goesOn();
    const at = cursor ?? cursorOf(result);
    if (at !== undefined) this.#keep(at);
    if (this.#isResuming) this.#caughtUp += 1;
    this.#add({ result, cursor: at, wasMissed: this.#isResuming });
  }

  #goesOn(): void {
    if (this.#isWaitTold) this.#change({ status: 'live' });
    this.#isWaitTold = false;
  }

  #tell(refusal: Result): void {
    this.#isNews = !this.#isWaitTold;
    if (this.#isNews) this.#add({ result: refusal, cursor: undefined, wasMissed: false });
    this.#isWaitTold = true;
  }

  #keep(cursor: string | undefined): void {
    this.#cursor = cursor;
    this.#change({ cursor });
  }

  /** The tab may have another stream once this one was stopped. */
  #change(change: Partial<Stream>): void {
    if (!this.#stopped.signal.aborted) changeStream(this.#tab, () => change);
  }

  #add(entry: Parameters<typeof addEntry>[1]): void {
    if (!this.#stopped.signal.aborted) addEntry(this.#tab, entry);
  }

  #note(text: string): void {
    this.#add({ text });
  }
}

/** A timer that is set for longer ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS)));

const pauseAfter = (failures: number, longest: number): number =>
  failures > 0 ? Math.min(250 * 2 ** failures, longest) : 0;

const shorten = (cursor: string): string => (cursor.length > 24 ? `…${cursor.slice(-20)}` : cursor);

function cursorOf({ data }: Result): string | undefined {
  const [payload] = Object.values(data ?? {});
  return isObject(payload) && typeof payload['cursor'] === 'string' ? payload['cursor'] : undefined;
}
