import type { Dispatcher } from 'undici';
import type { Urgency } from '../common/turns.ts';
import { JsonReader, type ReadJson } from './json-reader.ts';

/**
 * What has connections that nothing else takes: reads, calls that move money, and probes, which ask whether a credential
 * holds that nobody has verified yet.
 */
export type Connections = 'reads' | 'money' | 'probes';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path and query, already expanded and checked. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Milliseconds from dispatch until the last byte of the answer. */
  readonly timeoutMs: number;
  /** When it must be over, waiting for its turn included, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Whose call it is: each has its share of what can be under way at once. */
  readonly caller: string;
  /** Whom the service takes it to come from: what it answers to one says nothing of another. */
  readonly identity: string;
  /** Over which connections; those for reads where nothing is said. */
  readonly over?: Connections | undefined;
  /** How pressing it is to go on once it has its answer; as operations are where nothing is said. */
  readonly urgency?: Urgency | undefined;
  /** Aborts the wait. Never given with a request that moves money. */
  readonly signal?: AbortSignal;
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

/** No whole answer came. */
export interface NoAnswer {
  readonly cause: Error;
  /** False when no byte of the request has left: there was no connection that could carry it, or not in time. */
  readonly dispatched: boolean;
}

/**
 * One HTTP request and its whole answer, on undici's own callbacks: its streams and abort signals cost more than the
 * rest of a call. Given up at its deadline or by its signal; a request that still waits for a connection then is never
 * sent. Never rejects.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Pick<HttpRequest, 'method' | 'path' | 'headers' | 'body' | 'signal'>,
  timeoutMs: number,
): Promise<RawAnswer | NoAnswer> {
  const { signal } = request;
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined;
    let givenUp: Error | undefined;
    let status = 0;
    let headers: RawAnswer['headers'] = {};
    const reader = new JsonReader();

    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const fail = (cause: Error): void => {
      settle();
      // undici starts a request right before it writes it to a connection that stands.
      resolve({ cause, dispatched: controller !== undefined });
    };
    const giveUp = (reason: Error): void => {
      givenUp = reason;
      controller?.abort(reason);
      fail(reason);
    };
    const onAbort = (): void => giveUp(asError(signal?.reason));
    const timer = setTimeout(() => giveUp(new CallTimeout()), timeoutMs);
    signal?.addEventListener('abort', onAbort, { once: true });

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        if (givenUp === undefined) controller = started;
        else started.abort(givenUp);
      },
      onResponseStart(_controller, statusCode, received) {
        status = statusCode;
        headers = received;
      },
      onResponseData(_controller, chunk) {
        reader.push(chunk);
      },
      onResponseEnd() {
        settle();
        resolve({ status, headers, read: () => reader.end() });
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
