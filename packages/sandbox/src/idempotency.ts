import { isDeepStrictEqual } from 'node:util';
import type { MiddlewareHandler } from 'hono';
import { validate, version } from 'uuid';
import { conflict, dataError } from './errors.ts';
import { type Env, readText } from './http.ts';
import type { World } from './world.ts';

const KEPT_MS = 24 * 3_600_000;

interface Remembered {
  body: string;
  until: number;
  answer: { status: number; contentType: string; text: string } | undefined;
}

/** `Idempotency-Key` of money out (docs/upstream-api.md, endpoint 11): the first answer, success or error, is the answer for 24 simulated hours. */
export function idempotency(world: World): MiddlewareHandler<Env> {
  const remembered = new Map<string, Remembered>();
  return async (c, next) => {
    const key = c.req.header('idempotency-key');
    if (key === undefined) return next();
    if (!validate(key) || version(key) !== 5)
      throw dataError('The Idempotency-Key must be a UUID version 5.');
    const scope = world.choices.idempotencyScope === 'client' ? c.get('clientId') : '';
    const name = `${scope}:${key.toLowerCase()}`;
    const body = await readText(c);
    const first = remembered.get(name);
    if (first !== undefined && world.clock.now() < first.until) {
      if (!sameBody(world, first.body, body)) {
        throw conflict('idempotency_key_reused', 'The Idempotency-Key was used with a different body.');
      }
      if (first.answer === undefined) {
        throw conflict('idempotency_in_progress', 'The operation with this Idempotency-Key is in progress.');
      }
      const { status, contentType, text } = first.answer;
      return new Response(text, { status, headers: { 'content-type': contentType } });
    }
    const entry: Remembered = { body, until: world.clock.now() + KEPT_MS, answer: undefined };
    for (const [old, { until }] of remembered) {
      if (until > world.clock.now()) break;
      remembered.delete(old);
    }
    // Deleted first, so that the map stays in the order of expiry.
    remembered.delete(name);
    remembered.set(name, entry);
    await next();
    const answer = c.res.clone();
    entry.answer = {
      status: answer.status,
      contentType: answer.headers.get('content-type') ?? 'application/json',
      text: await answer.text(),
    };
  };
}

function sameBody(world: World, first: string, second: string): boolean {
  if (first === second || world.choices.idempotencyBody === 'bytes') return first === second;
  try {
    return isDeepStrictEqual(JSON.parse(first), JSON.parse(second));
  } catch {
    return false;
  }
}
