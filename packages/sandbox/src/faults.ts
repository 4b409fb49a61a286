import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { MiddlewareHandler } from 'hono';
import { z } from 'zod';
import { ambient } from './ambient.ts';
import { transactionIn } from './calls.ts';
import { type Ctx, type Env, readText, uuid } from './http.ts';
import type { Instrument } from './state.ts';
import type { World } from './world.ts';

/** The faults that are a word; tests and pages take theirs from here. */
export const NAMED_FAULTS = ['reset-before', 'reset-after-commit', 'truncate', 'hang', 'garbage'] as const;
export type NamedFault = (typeof NAMED_FAULTS)[number];

/**
 * A misbehaviour of the service, for tests of its clients.
 *
 * - `delayMs`: the request is held up by so many real ms, after its credentials and its Idempotency-Key have been taken.
 * - `status`: this status and body are the answer; the request is performed with `commit: true` alone.
 * - `reset-before`: the connection is reset, and the request is not performed.
 * - `reset-after-commit`: the request is performed, and then the connection is reset.
 * - `truncate`: the request is performed, and its answer breaks off in the middle of the body.
 * - `hang`: the request is performed, and never answered.
 * - `garbage`: the request is performed, and answered with 200 and bytes that are no JSON.
 *
 * To be performed is to be treated as without the fault: a request without credentials is refused, and the fault befalls the refusal.
 */
const faultSchema = z.union([
  z.strictObject({ delayMs: z.number().int().min(0).max(600_000) }),
  z.strictObject({
    status: z.number().int().min(200).max(599),
    body: z.unknown().optional(),
    commit: z.boolean().optional(),
  }),
  z.enum(NAMED_FAULTS),
]);

export const faultRule = z.strictObject({
  match: z
    .strictObject({ method: z.string().optional(), path: z.string().optional(), account: uuid.optional() })
    .default({}),
  fault: faultSchema,
  times: z.number().int().min(1).optional(),
});

export type FaultRule = z.infer<typeof faultRule>;
export type Fault = z.infer<typeof faultSchema>;

/** A fault that was added, and not taken away since. */
export interface FaultView extends Pick<FaultRule, 'match' | 'fault'> {
  id: number;
  /** How often it may apply; null for any number of times. */
  times: number | null;
  /** How often it has applied. */
  used: number;
  /** Whether it can still apply. */
  inForce: boolean;
}

/** The rules that were added. The oldest in force that matches a request applies, `times` times or until it is taken away. */
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

  /** Whether it depends on the accounts of a request which fault it meets. */
  asksForAccounts(method: string, path: string): boolean {
    return this.#rules.some(
      (each) => each.rule.match.account !== undefined && isInForce(each) && matches(each.rule, method, path),
    );
  }

  /** The fault for a request that concerns these accounts; it uses up one of the fault's times. */
  take(method: string, path: string, accounts: readonly string[]): Fault | undefined {
    const concerns = ({ account }: FaultRule['match']) =>
      account === undefined || accounts.includes(account.toLowerCase());
    const entry = this.#rules.find(
      (each) => isInForce(each) && matches(each.rule, method, path) && concerns(each.rule.match),
    );
    if (entry === undefined) return undefined;
    entry.used += 1;
    return entry.rule.fault;
  }
}

const isInForce = ({ rule, used }: { rule: FaultRule; used: number }): boolean =>
  used < (rule.times ?? Number.POSITIVE_INFINITY);

/** Applies faults around a request. */
export function injectFaults(faults: Faults, world: World): MiddlewareHandler<Env> {
  return async (c, next) => {
    const { method, path } = c.req;
    const accounts = faults.asksForAccounts(method, path) ? await accountsOf(c, world) : [];
    const fault = faults.take(method, path, accounts);
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

const paying = z.object({ source_instrument_id: z.string() });

/**
 * The sandbox's own accounts that a request concerns: those of the transaction that its path names, or the one that its body pays from.
 * None where there is neither. What is wrong with the body is for the route to say.
 */
async function accountsOf(c: Ctx, { state }: World): Promise<string[]> {
  const named = state.transactions.get(transactionIn(c.req.path) ?? '');
  const found = named === undefined ? [await payerOf(c, state)] : [named.source, named.destination];
  return found.map((instrument) => instrument?.accountId).filter((id) => id !== undefined);
}

async function payerOf(c: Ctx, state: World['state']): Promise<Instrument | undefined> {
  try {
    const { source_instrument_id } = paying.parse(JSON.parse(await readText(c)));
    return state.instruments.get(source_instrument_id.toLowerCase());
  } catch {
    return undefined;
  }
}

/** The place where a `delayMs` fault holds the work up. */
export const delayWork: MiddlewareHandler<Env> = async (c, next) => {
  const delayMs = c.get('delayMs');
  if (delayMs !== undefined) await ambient.sleep(delayMs);
  return next();
};

/** Does to the answer what a fault says. */
export async function spoil(c: Ctx, fault: Exclude<NamedFault, 'reset-before'>): Promise<void> {
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
  // The Content-Length is one too large, so that the client misses something of an empty body too.
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
