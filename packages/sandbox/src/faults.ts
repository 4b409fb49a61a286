import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { MiddlewareHandler } from 'hono';
import { z } from 'zod';
import { ambient } from './ambient.ts';
import type { Ctx, Env } from './http.ts';

/**
 * A misbehaviour of the service, for tests of its clients.
 *
 * - `delayMs`: the work is held up by so many real ms, after the credentials and the Idempotency-Key have been taken.
 * - `status`: this status and body instead of the answer; with `commit: true` the request has been performed all the same.
 * - `reset-before`: the connection is reset, nothing is performed.
 * - The others perform the request, then `reset-after-commit` resets the connection, `truncate` ends it in the middle of the
 *   body, `hang` never answers, and `garbage` answers 200 with bytes that are no JSON.
 */
const faultSchema = z.union([
  z.strictObject({ delayMs: z.number().int().min(0).max(600_000) }),
  z.strictObject({
    status: z.number().int().min(200).max(599),
    body: z.unknown().optional(),
    commit: z.boolean().optional(),
  }),
  z.enum(['reset-before', 'reset-after-commit', 'truncate', 'hang', 'garbage']),
]);

export const faultRule = z.strictObject({
  match: z.strictObject({ method: z.string().optional(), path: z.string().optional() }).default({}),
  fault: faultSchema,
  times: z.number().int().min(1).optional(),
});

export type FaultRule = z.infer<typeof faultRule>;
export type Fault = z.infer<typeof faultSchema>;

/** A fault that was added since the last clearing. */
export interface FaultView extends Pick<FaultRule, 'match' | 'fault'> {
  id: number;
  /** How often it may apply; null for any number of times. */
  times: number | null;
  /** How often it has applied. */
  used: number;
  /** Whether it can still apply. */
  inForce: boolean;
}

/** The rules in force. The oldest that matches a request applies, `times` times or until cleared. */
export class Faults {
  #rules: { id: number; rule: FaultRule; used: number }[] = [];
  #last = 0;

  add(rule: FaultRule): void {
    this.#last += 1;
    this.#rules.push({ id: this.#last, rule, used: 0 });
  }

  /** Takes one rule away. @returns false where there is none of this id. */
  remove(id: number): boolean {
    const before = this.#rules.length;
    this.#rules = this.#rules.filter((entry) => entry.id !== id);
    return this.#rules.length < before;
  }

  clear(): void {
    this.#rules = [];
  }

  /** Oldest first. */
  all(): FaultView[] {
    return this.#rules.map((entry) => ({
      id: entry.id,
      match: entry.rule.match,
      fault: entry.rule.fault,
      times: entry.rule.times ?? null,
      used: entry.used,
      inForce: isInForce(entry),
    }));
  }

  /** The fault for a request, which uses up one of its times. */
  take(method: string, path: string): Fault | undefined {
    const entry = this.#rules.find((each) => isInForce(each) && matches(each.rule, method, path));
    if (entry === undefined) return undefined;
    entry.used += 1;
    return entry.rule.fault;
  }
}

const isInForce = ({ rule, used }: { rule: FaultRule; used: number }): boolean =>
  used < (rule.times ?? Number.POSITIVE_INFINITY);

/** Applies faults around a request. */
export function injectFaults(faults: Faults): MiddlewareHandler<Env> {
  return async (c, next) => {
    const fault = faults.take(c.req.method, c.req.path);
    if (fault === undefined) return next();
    if (fault === 'reset-before') {
      c.env.incoming.socket.resetAndDestroy();
      return RESPONSE_ALREADY_SENT;
    }
    if (typeof fault === 'string') {
      await next();
      await spoil(c, fault);
      return;
    }
    if ('delayMs' in fault) {
      c.set('delayMs', fault.delayMs);
      return next();
    }
    if (fault.commit !== true) return statusResponse(fault.status, fault.body);
    await next();
    replace(c, statusResponse(fault.status, fault.body));
  };
}

/** The place where a `delayMs` fault holds the work up. */
export const delayWork: MiddlewareHandler<Env> = async (c, next) => {
  const delayMs = c.get('delayMs');
  if (delayMs !== undefined) await ambient.sleep(delayMs);
  return next();
};

/** Does to the answer to a request that has been performed what a fault says. */
export async function spoil(c: Ctx, fault: Exclude<Fault, object | 'reset-before'>): Promise<void> {
  if (fault === 'garbage') {
    replace(c, new Response('\u0000<<<{"id": ,]', { headers: { 'content-type': 'application/json' } }));
    return;
  }
  const answer = c.res;
  replace(c, RESPONSE_ALREADY_SENT);
  if (fault === 'reset-after-commit') c.env.incoming.socket.resetAndDestroy();
  if (fault !== 'truncate') return;
  const whole = Buffer.from(await answer.arrayBuffer());
  const { outgoing } = c.env;
  outgoing.writeHead(answer.status, {
    'content-type': answer.headers.get('content-type') ?? 'application/json',
    'content-length': whole.length + 1,
  });
  outgoing.write(whole.subarray(0, whole.length / 2), () => outgoing.destroy());
}

function replace(c: Ctx, response: Response): void {
  // Hono merges the headers of a response that is set over another.
  c.res = undefined;
  c.res = response;
}

function statusResponse(status: number, body: unknown): Response {
  const bodyless = status === 204 || status === 205 || status === 304;
  if (bodyless || body === undefined) return new Response(null, { status });
  return typeof body === 'string'
    ? new Response(body, { status, headers: { 'content-type': 'text/plain' } })
    : Response.json(body, { status });
}

/** `path`: a prefix, or a pattern for the whole path where it holds a `*`: any run without `/`, at the end any run at all. */
function matches({ match }: FaultRule, method: string, path: string): boolean {
  if (match.method !== undefined && match.method.toUpperCase() !== method) return false;
  if (match.path === undefined) return true;
  if (!match.path.includes('*')) return path.startsWith(match.path);
  const atEnd = match.path.endsWith('*');
  const wanted = (atEnd ? match.path.slice(0, -1) : match.path).split('/');
  const segments = path.split('/');
  if (segments.length < wanted.length || (!atEnd && segments.length > wanted.length)) return false;
  const last = wanted.length - 1;
  return wanted.every((pattern, index) =>
    matchesSegment(atEnd && index === last ? `${pattern}*` : pattern, segments[index] ?? ''),
  );
}

/**
 * Whether a segment is as a pattern says, in which `*` is any run. An expression made of the pattern would try every way
 * to spread the runs; here each part is taken where it comes first, which leaves the most for the others.
 */
function matchesSegment(pattern: string, segment: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined) return segment === first;
  if (!segment.startsWith(first) || !segment.endsWith(last)) return false;
  const end = segment.length - last.length;
  let place = first.length;
  for (const part of others) {
    const found = segment.indexOf(part, place);
    if (found === -1) return false;
    place = found + part.length;
  }
  return place <= end;
}
