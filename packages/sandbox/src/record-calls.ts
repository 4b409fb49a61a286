import type { MiddlewareHandler } from 'hono';
import { type Calls, transactionIn } from './calls.ts';
import type { Clock } from './clock.ts';
import type { Env } from './http.ts';

/** Notes each request that had to do with a transaction. */
export function recordCalls(calls: Calls, clock: Clock): MiddlewareHandler<Env> {
  return async (c, next) => {
    const at = clock.now();
    await next();
    const transactionId = c.get('performed')?.id ?? transactionIn(c.req.path);
    if (transactionId === undefined) return;
    // Set by a fault that has answered in part or not at all.
    const isSent = !c.res.headers.has('x-hono-already-sent');
    const { method, path } = c.req;
    calls.add({ at, method, path, status: isSent ? c.res.status : undefined, transactionId });
  };
}
