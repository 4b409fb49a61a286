import { setTimeout as sleep } from 'node:timers/promises';
import { readRefusal, UpstreamError } from './errors.ts';
import type { Answered, Attempt, HttpRequest, UpstreamHttp } from './http.ts';
import { expandPath } from './path.ts';
import { retryDelay } from './retry.ts';

type Query = Readonly<Record<string, string | number | undefined>>;
type Params = Readonly<Record<string, string>>;

/** One REST call as it went, for `extensions.upstream` and for metrics. */
export interface CallRecord {
  readonly method: string;
  /** The route, with its parameters unfilled: no id is ever in it. */
  readonly route: string;
  /** Null when no answer came. */
  readonly status: number | null;
  readonly milliseconds: number;
}

/** The REST service as one caller reaches it, within one operation. Nouns are built on this alone. */
export interface Rest {
  readonly clientId: string;
  /**
   * A GET that is repeated, within the deadline, where that may help (retry.ts).
   *
   * @param route a path template; `{clientId}` is filled in by itself.
   * @returns the parsed body of a 2xx.
   * @throws UpstreamError for anything else; a 404 has the code `REFUSED` and `refusal.httpStatus` 404.
   */
  get(route: string, options?: { params?: Params; query?: Query }): Promise<unknown>;
  /** A POST, PATCH or DELETE, sent exactly once. Never throws but for a malformed id. */
  send(
    method: 'POST' | 'PATCH' | 'DELETE',
    route: string,
    options?: {
      params?: Params;
      body?: string;
      headers?: Readonly<Record<string, string>>;
      /** How the request may be given up; money is sent without one. */
      signal?: AbortSignal;
    },
  ): Promise<Attempt>;
}

export interface RestOptions {
  readonly http: UpstreamHttp;
  readonly clientId: string;
  /** `authorization` or `x-api-key`, and the request id. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Ends waiting for answers when the caller is gone. */
  readonly signal?: AbortSignal;
  readonly onCall?: (call: CallRecord) => void;
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

/** The error for an answer that is not a 2xx, by its status alone. */
export function errorOfAnswer(answer: Answered): UpstreamError {
  const { status } = answer;
  const refusal = readRefusal(status, answer.body);
  if (status === 401) {
    return new UpstreamError('UNAUTHENTICATED', 'The service does not accept this access token.', {
      refusal,
    });
  }
  if (status === 403) {
    return new UpstreamError('FORBIDDEN', 'The service does not allow this to the access token.', {
      refusal,
    });
  }
  if (status === 429) {
    return new UpstreamError('UPSTREAM_RATE_LIMITED', 'The service asks for fewer calls.', {
      refusal,
      ...(answer.retryAfterMs === undefined ? {} : { retryAfterMs: answer.retryAfterMs }),
    });
  }
  if (status >= 400 && status < 500) {
    return new UpstreamError('REFUSED', refusal.detail ?? `The service refused with status ${status}.`, {
      refusal,
    });
  }
  if (status >= 500) {
    return new UpstreamError('UPSTREAM_UNAVAILABLE', `The service failed with status ${status}.`);
  }
  return new UpstreamError('UPSTREAM_INVALID', `The service answered with the unexpected status ${status}.`);
}

/** Binds the pool to one caller and one operation. */
export function createRest(options: RestOptions): Rest {
  const { http, clientId, timeoutMs, deadline, onCall } = options;
  const timeLeft = () => deadline - Date.now();

  async function once(route: string, request: Omit<HttpRequest, 'timeoutMs'>): Promise<Attempt> {
    const left = timeLeft();
    if (left <= 0) {
      return {
        kind: 'failed',
        error: new UpstreamError('UPSTREAM_TIMEOUT', 'The time of the operation was over before the call.', {
          dispatched: false,
        }),
      };
    }
    const start = performance.now();
    const attempt = await http.send({ ...request, timeoutMs: Math.min(timeoutMs, left) });
    onCall?.({
      method: request.method,
      route,
      status: attempt.kind === 'answered' ? attempt.status : null,
      milliseconds: performance.now() - start,
    });
    return attempt;
  }

  return {
    clientId,
    async get(route, { params = {}, query = {} } = {}) {
      const path = expandPath(route, { clientId, ...params }, query);
      const request = {
        method: 'GET' as const,
        path,
        headers: options.headers,
        ...(options.signal ? { signal: options.signal } : {}),
      };
      for (let tries = 1; ; tries += 1) {
        const attempt = await once(route, request);
        if (attempt.kind === 'answered' && isSuccess(attempt.status)) {
          if (attempt.body === undefined) {
            throw new UpstreamError('UPSTREAM_INVALID', `The service's answer to GET ${route} is not JSON.`);
          }
          return attempt.body;
        }
        const delay = retryDelay(attempt, tries, timeLeft(), Math.random());
        if (delay === undefined || options.signal?.aborted) {
          throw attempt.kind === 'failed' ? attempt.error : errorOfAnswer(attempt);
        }
        await sleep(delay);
      }
    },
    send(method, route, { params = {}, body, headers = {}, signal } = {}) {
      const path = expandPath(route, { clientId, ...params });
      return once(route, {
        method,
        path,
        headers: {
          ...options.headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
        ...(signal ? { signal } : {}),
      });
    },
  };
}
