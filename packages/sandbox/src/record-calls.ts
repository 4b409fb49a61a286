import type { MiddlewareHandler } from 'hono';
import type { Calls } from './calls.ts';
import type { Clock } from './clock.ts';
import type { Env } from './http.ts';

const NAMED = /\/transactions\/([0-9a-f-]{36})/i;

/** Notes each request that had to do with a transaction. */
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
