import { isDeepStrictEqual } from 'node:util';
import type { MiddlewareHandler } from 'hono';
import { validate, version } from 'uuid';
import { ambient } from './ambient.ts';
import { conflict, dataError } from './errors.ts';
import { type Env, readText } from './http.ts';
import type { World } from './world.ts';

const KEPT_MS = 24 * 3_600_000;

interface Remembered {
  body: string;
  /** By the sandbox's clock, and by `ambient.monotonic()`. */
  until: { simulated: number; real: number };
  answer: { status: number; contentType: string; text: string } | undefined;
}

/**
 * `Idempotency-Key` of money out (docs/upstream-api.md, endpoint 11): the first answer, success or error, is the answer for 24 hours of
 * simulated time and of real time, whichever end later. Who repeats a payment counts the hours by a clock of their own: a key that a
 * step of the sandbox's clock could end would have their repeats pay twice.
 */
export function idempotency(world: World): MiddlewareHandler<Env> {
  const remembered = new Map<string, Remembered>();
  const isOver = ({ until }: Remembered) =>
    until.simulated <= world.clock.now() && until.real <= ambient.monotonic();
  return async (c, next) => {
    const key = c.req.header('idempotency-key');
    if (key === undefined) return next();
    if (!validate(key) || version(key) !== 5)
      throw dataError('The Idempotency-Key must be a UUID version 5.');
    const scope = world.choices.idempotencyScope === 'client' ? c.get('clientId') : '';
    const name = `${scope}:${key.toLowerCase()}`;
    const body = await readText(c);
    const first = remembered.get(name);
    if (first !== undefined && !isOver(first)) {
      if (!sameBody(world, first.body, body)) {
        throw conflict('idempotency_key_reused', 'The Idempotency-Key was used with a different body.');
      }
      if (first.answer === undefined) {
        throw conflict('idempotency_in_progress', 'The operation with this Idempotency-Key is in progress.');
      }
      const { status, contentType, text } = first.answer;
      return new Response(text, { status, headers: { 'content-type': contentType } });
    }
    const until = { simulated: world.clock.now() + KEPT_MS, real: ambient.monotonic() + KEPT_MS };
    const entry: Remembered = { body, until, answer: undefined };
    for (const [old, kept] of remembered) {
      if (!isOver(kept)) break;
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
