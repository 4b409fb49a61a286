import type { MiddlewareHandler } from 'hono';
import type { Clock } from './clock.ts';
import type { Env } from './http.ts';

/** A request that made, read or refunded a transaction. */
export interface Call {
  /** Simulated ms since the epoch. */
  at: number;
  method: string;
  path: string;
  /** Undefined where the caller got no answer. */
  status: number | undefined;
  transactionId: string;
}

/** How many are kept. */
const KEPT = 1_000;
const NAMED = /\/transactions\/([0-9a-f-]{36})/i;

/** The latest calls that had to do with a transaction, so that its page can show them. */
export class Calls {
  readonly #calls: Call[] = [];

  add(call: Call): void {
    this.#calls.push(call);
    if (this.#calls.length > KEPT) this.#calls.shift();
  }

  /** Oldest first. */
  of(transactionId: string): Call[] {
    return this.#calls.filter((call) => call.transactionId === transactionId);
  }
}

export function recordCalls(calls: Calls, clock: Clock): MiddlewareHandler<Env> {
  return async (c, next) => {
    const at = clock.now();
    await next();
    const transactionId = c.get('performed')?.id ?? NAMED.exec(c.req.path)?.[1]?.toLowerCase();
    if (transactionId === undefined) return;
    const isSent = !c.res.headers.has('x-hono-already-sent');
    const { method, path } = c.req;
    calls.add({ at, method, path, status: isSent ? c.res.status : undefined, transactionId });
  };
}
