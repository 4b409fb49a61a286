import type { Dispatcher } from 'undici';
import { clock } from '../../common/clock.ts';
import type { Party } from '../../common/party.ts';
import { afterLastPiece } from '../../common/time-limit.ts';
import { CutShortError, UpstreamError } from './errors.ts';
import { JsonReader, type ReadJson } from './json-reader.ts';

/**
 * Each kind of call has connections of its own: `reads`; `money` for calls that move it, and for what a payment has to read first;
 * `probes` for credentials that nobody has verified yet, and for the gateway's own token.
 */
export type CallKind = 'reads' | 'money' | 'probes';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path and query, already expanded and checked. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Milliseconds from dispatch until the last byte of the answer. The service gets fewer where the operation has fewer left. */
  readonly timeoutMs: number;
  /**
   * Who waits for the answer. Each waiter has a share of the calls that can be under way, waits for a seat until its
   * deadline, and says how urgent the answer is. The call is given up once all of them have left; nobody leaves a call that
   * moves money.
   */
  readonly party: Party;
  /** The kind of connection; `reads` if it is absent. */
  readonly over?: CallKind | undefined;
  /** Set by `send` if the request waited for a seat before it left: how long, in milliseconds. */
  queuedMs?: number;
  /** Set by `send` if the answer had come and waited for its turn to be read: how long, in milliseconds. */
  unreadMs?: number;
}

/** What came back over the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Parses the body; called once. */
  readonly read: () => ReadJson;
}

/** The time of a call was over before its answer was whole. */
export class CallTimeout extends Error {}

/** No complete answer came. */
export interface FailedExchange {
  readonly cause: Error;
  /** False if no byte of the request has left, because there was no connection for it in time. */
  readonly dispatched: boolean;
}

/**
 * Whether an answer is not HTTP, or has longer headers than undici reads, 16 KiB. One that breaks off is none of these: where it says
 * `Connection: close`, undici calls it an "Invalid EOF state" if it is in chunks, else `UND_ERR_RES_CONTENT_LENGTH_MISMATCH`, as it calls
 * headers that contradict each other.
 */
const isMalformed = ({ name, message }: Error): boolean =>
  name === 'HeadersOverflowError' || (name === 'HTTPParserError' && !message.includes('Invalid EOF state'));

/** True for the error of a call that was not made, because a header of it would hold what none may. */
export const isUnsendable = ({ cause }: Pick<Error, 'cause'>): boolean =>
  cause instanceof Error && Reflect.get(cause, 'code') === 'UND_ERR_INVALID_ARG';

/**
 * Returns the error of a call that no complete answer came of.
 *
 * @param isCut true if it had less than the time that the service is promised.
 */
export function describe(
  { cause, dispatched }: FailedExchange,
  timeoutMs: number,
  isCut: boolean,
  maxAnswerBytes: number,
): UpstreamError {
  if (cause instanceof CallTimeout) {
    if (isCut) return new CutShortError(timeoutMs, cause, dispatched);
    return new UpstreamError('UPSTREAM_TIMEOUT', `The service did not answer within ${timeoutMs} ms.`, {
      cause,
      dispatched,
    });
  }
  if (Reflect.get(cause, 'code') === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    return new UpstreamError(
      'UPSTREAM_INVALID',
      `The service's answer is longer than ${maxAnswerBytes} bytes (UPSTREAM_ANSWER_BYTES).`,
      { cause },
    );
  }
  if (isMalformed(cause)) {
    return new UpstreamError(
      'UPSTREAM_INVALID',
      "The service's answer is not well-formed HTTP, or its headers are too long.",
      { cause },
    );
  }
  if (isUnsendable({ cause })) {
    return new UpstreamError(
      'UPSTREAM_UNAVAILABLE',
      'The call cannot be sent: its credential holds a line break, or another character that no header may hold.',
      { cause, dispatched },
    );
  }
  return new UpstreamError(
    'UPSTREAM_UNAVAILABLE',
    dispatched
      ? 'The connection to the service broke before its answer was complete.'
      : 'The service cannot be reached.',
    { cause, dispatched },
  );
}

/**
 * Makes one HTTP request and reads its whole answer, by undici's own callbacks: its streams and abort signals cost more than
 * the rest of a call. The request is given up at its deadline, or when all who wait have left. If it still waits for a
 * connection then, it is never sent. Never rejects.
 */
export function exchange(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  request: Pick<HttpRequest, 'method' | 'path' | 'headers' | 'body' | 'party'>,
  timeoutMs: number,
): Promise<RawAnswer | FailedExchange> {
  const { party } = request;
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined;
    let givenUp: Error | undefined;
    let isOver = false;
    /** Of the answer, that have come. */
    let pieces = 0;
    let head: Pick<RawAnswer, 'status' | 'headers'> = { status: 0, headers: {} };
    const reader = new JsonReader();

    const stopWatching = (): void => {
      isOver = true;
      clock.clearTimeout(timer);
      unwatch();
    };
    const fail = (cause: Error): void => {
      stopWatching();
      // undici calls back right before it writes the request to a connection that stands. Until then nothing has left.
      resolve({ cause, dispatched: controller !== undefined });
    };
    const giveUp = (reason: Error): void => {
      if (isOver) return;
      givenUp = reason;
      controller?.abort(reason);
      fail(reason);
    };
    const tooLate = (): void => giveUp(new CallTimeout());
    // What has not left yet must not leave after its time.
    const timer = clock.setTimeout(
      () => (controller === undefined ? tooLate() : afterLastPiece(() => pieces, tooLate)),
      timeoutMs,
    );
    const unwatch = party.watch({ left: () => party.isGone && giveUp(new Error('The caller is gone.')) });

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        // Nothing is sent then, and the connection serves the next call: `abort` would end it.
        if (givenUp !== undefined) throw givenUp;
        controller = started;
      },
      onResponseStart(_controller, status, headers) {
        pieces += 1;
        head = { status, headers };
      },
      onResponseData(_controller, chunk) {
        pieces += 1;
        reader.push(chunk);
      },
      onResponseEnd() {
        stopWatching();
        resolve({ ...head, read: () => reader.end() });
      },
      onResponseError(_controller, error) {
        fail(error);
      },
    };
    const { method, path, body = null } = request;
    try {
      dispatcher.dispatch({ method, path, headers: request.headers, body }, handler);
    } catch (error) {
      fail(asError(error));
    }
  });
}

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));
