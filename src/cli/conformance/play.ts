import { isDeepStrictEqual } from 'node:util';
import { entropy } from '../../common/entropy.ts';
import type { Case, Step, Transport } from './case.ts';
import { type Connection, codeOf, type Heard, type Result } from './connection.ts';
import { connectByHttp } from './sse.ts';
import { connectBySocket } from './websocket.ts';

/** The result of a case. */
export type Verdict =
  | { readonly is: 'kept' }
  | { readonly is: 'broken'; readonly why: string }
  /** Something that the case needs is missing. */
  | { readonly is: 'untried'; readonly why: string };

/**
 * Tries one case on a gateway. It reads and follows, and changes nothing.
 *
 * @param url of the graph, such as `https://pay.example.mx/graphql`
 */
export async function play(one: Case, transport: Transport, url: string, token: string): Promise<Verdict> {
  const shown = one.token ?? token;
  try {
    await using connection =
      transport === 'websocket' ? await connectBySocket(url, shown, one.init) : connectByHttp(url, shown);
    const run = new Run(connection);
    for (const [index, step] of one.script.entries()) {
      const verdict = await run.take(step);
      if (verdict.is === 'broken')
        return { is: 'broken', why: `step ${index + 1}, ${JSON.stringify(step)}: ${verdict.why}` };
      if (verdict.is === 'untried') return verdict;
    }
    return KEPT;
  } catch (cause) {
    return broken(
      cause instanceof Error ? [cause.message, cause.cause].filter(Boolean).join(': ') : String(cause),
    );
  }
}

const KEPT: Verdict = { is: 'kept' };
const broken = (why: string): Verdict => ({ is: 'broken', why });
const orBroken = (why: string | undefined): Verdict => (why === undefined ? KEPT : broken(why));

type HearStep = Extract<Step, { hear: string }>;
type QueryStep = Extract<Step, { query: string }>;

class Run {
  readonly #connection: Connection;
  readonly #kept = new Map<string, unknown>([['unused', entropy.uuid()]]);
  /** The number of operations so far, by which they are named. */
  #operations = 0;
  /** The streams that were opened last. */
  #streams: ReadonlySet<string> = new Set();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async take(step: Step): Promise<Verdict> {
    if ('query' in step) return orBroken(await this.#query(step));
    if ('hear' in step) return orBroken(await this.#hear(step));
    if ('needs' in step) {
      const found = [this.#kept.get(step.needs)].flat().filter((value) => value != null);
      return found.length >= step.atLeast ? KEPT : { is: 'untried', why: step.otherwise };
    }
    if ('subscribe' in step) await this.#subscribe(step);
    else if ('send' in step) await this.#connection.send(JSON.stringify(step.send));
    else await this.#connection.send('x'.repeat(step.sendBytes));
    return KEPT;
  }

  async #query({ query, variables, keep, is, code }: QueryStep): Promise<string | undefined> {
    const stream = this.#name();
    await this.#connection.query(stream, { query, variables: this.#filled(variables) });
    const heard = await this.#connection.heard.next(
      (one) => ('stream' in one && one.stream === stream) || one.kind === 'closed',
      QUERY_MS,
    );
    if (heard?.kind !== 'next') return told(heard);
    const { result } = heard;
    if (codeOf(result) !== code) return told(heard);
    for (const [name, path] of Object.entries(keep)) {
      const found = at(result, path.split('.'));
      if (found === undefined) return `${path} is missing`;
      this.#kept.set(name, found);
    }
    const other = Object.entries(is).find(
      ([path, value]) => !isDeepStrictEqual(at(result, path.split('.')), value),
    );
    return other && `${other[0]} is ${JSON.stringify(at(result, other[0].split('.')))}`;
  }

  async #subscribe({
    subscribe,
    variables,
    lastEventId,
    streams,
  }: Extract<Step, { subscribe: string }>): Promise<void> {
    const names = Array.from({ length: streams }, () => this.#name());
    this.#streams = new Set(names);
    const operation = { query: subscribe, variables: this.#filled(variables) };
    const last = lastEventId === undefined ? undefined : String(this.#value(lastEventId));
    for (const name of names) await this.#connection.subscribe(name, operation, last);
  }

  /** @returns what is wrong with what was heard; undefined if nothing is. */
  async #hear(step: HearStep): Promise<string | undefined> {
    if (step.hear === 'events') return this.#hearEvents(step);
    if (step.hear === 'bookmark') return this.#hearBookmarks(step);
    const heard = await this.#next(step, [step.hear]);
    if (heard === undefined) return told(heard);
    if (step.hear === 'failure')
      return heard.kind === 'next' && isFailure(heard.result) && codeOf(heard.result) === step.code
        ? undefined
        : told(heard);
    if (heard.kind !== step.hear) return told(heard);
    if (step.hear === 'pong')
      return heard.kind === 'pong' && isDeepStrictEqual(heard.payload, step.payload)
        ? undefined
        : told(heard);
    return 'code' in step && 'code' in heard && step.code !== heard.code ? told(heard) : undefined;
  }

  async #hearEvents(step: Extract<HearStep, { hear: 'events' }>): Promise<string | undefined> {
    for (const id of [this.#kept.get(step.ids)].flat()) {
      const heard = await this.#next(step, ['next', 'bookmark']);
      if (heard?.kind !== 'next' || idOf(heard.result) !== id) return told(heard);
    }
    return undefined;
  }

  async #hearBookmarks(step: Extract<HearStep, { hear: 'bookmark' }>): Promise<string | undefined> {
    const waitFor = new Set<string>();
    while (waitFor.size < step.streams) {
      const heard = await this.#next(step, ['bookmark', 'next']);
      if (heard?.kind === 'bookmark') {
        waitFor.add(heard.stream);
        if (step.keep !== undefined) this.#kept.set(step.keep, heard.cursor);
      } else if (heard?.kind !== 'next' || isFailure(heard.result)) return told(heard);
    }
    return undefined;
  }

  /** Returns the next item of these kinds, or an end, of the streams that were opened last. */
  #next({ withinMs }: HearStep, kinds: readonly string[]): Promise<Heard | undefined> {
    // A client ignores streams that it does not know (B1).
    const concerns = (heard: Heard) =>
      'stream' in heard
        ? this.#streams.has(heard.stream) && (heard.kind !== 'bookmark' || kinds.includes('bookmark'))
        : heard.kind === 'closed' || kinds.includes(heard.kind);
    return this.#connection.heard.next(concerns, withinMs);
  }

  #name(): string {
    this.#operations += 1;
    return String(this.#operations);
  }

  #filled(variables: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, this.#value(value)]));
  }

  /** Replaces `$name` and `$name.0` by the kept values. */
  #value(value: unknown): unknown {
    if (typeof value !== 'string' || !value.startsWith('$')) return value;
    const [name = '', ...path] = value.slice(1).split('.');
    return at(this.#kept.get(name), path);
  }
}

/** How long a query may take, in milliseconds: longer than a gateway takes (P6). */
const QUERY_MS = 35_000;

const isFailure = ({ data, errors }: Result): boolean => data == null && errors !== undefined;

/** Returns the id of an event, which is in the only field. */
const idOf = ({ data }: Result): unknown => Object.values(data ?? {}).map((event) => at(event, ['id']))[0];

/** Returns the value at a path into JSON; `*` stands for every item. Undefined if there is none. */
function at(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  if (name === '*') return Object.values(value).map((item) => at(item, rest));
  return at(Reflect.get(value, name), rest);
}

const told = (heard: Heard | undefined): string =>
  heard === undefined ? 'nothing came in time' : `the gateway says ${JSON.stringify(heard)}`;
