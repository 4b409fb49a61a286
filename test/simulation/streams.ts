import { App, type AppWorld } from './apps.ts';
import { type Caller, endOf } from './callers.ts';
import type { Chance } from './chance.ts';
import { Broken, type Process } from './core.ts';
import { codesOf, open, type RawStream, type Told } from './raw.ts';

/** What came over one connection, in order; a mark says that all up to its cursor has come. */
type Item = { readonly id: string; readonly cursor: string } | { readonly mark: string };

/** One stream of a raw reader, from its first message to its end. */
export interface Stream {
  readonly reader: string;
  readonly caller: Caller;
  readonly kind: 'events' | 'moneyIn';
  /** Where it began; undefined for one that began at its time. */
  readonly after: string | undefined;
  readonly items: Item[];
}

const DOCUMENTS = [
  { kind: 'events', query: 'subscription ($after: Cursor) { events(after: $after) { cursor id type } }' },
  {
    kind: 'events',
    query: `subscription ($after: Cursor) { events(after: $after) { cursor id type
      ... on MoneyInEvent { ownerId transaction { id } } } }`,
  },
  {
    kind: 'moneyIn',
    query:
      'subscription ($after: Cursor) { moneyIn(after: $after) { cursor id ownerId transaction { id } } }',
  },
] as const;

/** How a raw reader comes and goes; times are in milliseconds. */
interface Habits {
  readonly documents: readonly (typeof DOCUMENTS)[number][];
  /** How likely it is that it comes back where it stood, and not anew. */
  readonly resumes: number;
  readonly stays: readonly number[];
  readonly pauses: readonly number[];
}

/** Comes, stays a while, leaves, and comes back at once or much later. */
const EVERYDAY: Habits = {
  documents: DOCUMENTS,
  resumes: 0.6,
  stays: [500, 5_000, 30_000, 90_000],
  pauses: [0, 200, 5_000, 40_000],
};
/** An app that subscribes anew at each of its screens: the same document, for a moment, and the next one goes on where the last one stood. */
export const RESTLESS: Habits = {
  documents: DOCUMENTS.filter(({ kind }) => kind === 'moneyIn'),
  resumes: 0.9,
  stays: [200, 700, 3_000],
  pauses: [0],
};

/** Errors by which a stream says why it ends. */
const ENDS = new Set([
  'EVENTS_GAP',
  'CURSOR_INVALID',
  'SLOW_CONSUMER',
  'DRAINING',
  'STORE_UNAVAILABLE',
  'UNAUTHENTICATED',
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_INVALID',
  'RATE_LIMITED',
  'TOO_COMPLEX',
]);

/** How long a gateway may send on after a token has ended, in ms: clocks differ by some seconds. */
const TOKEN_GRACE_MS = 10_000;

/** When each event left the service, by its id, in simulated ms; undefined for one that was never acknowledged. */
export type SentAt = (id: string) => number | undefined;

/** What all raw readers know together: which events a gateway's process has told somebody of, and when. */
export type Known = Map<Process, Map<string, number>>;

/** A reader without the client: comes, stays a while, leaves, and comes back, where it stood or anew. */
export class RawReader extends App {
  readonly streams: Stream[] = [];
  /** Told of each event that it is sent, as it comes. */
  onEvent: (id: string) => void = () => {};
  readonly #chance: Chance;
  readonly #known: Known;
  readonly #processOf: (url: string) => Process | undefined;
  readonly #sentAt: SentAt;
  readonly #habits: Habits;
  #cursor: string | undefined;

  constructor(
    world: AppWorld,
    name: string,
    caller: Caller,
    known: Known,
    processOf: (url: string) => Process | undefined,
    sentAt: SentAt,
    habits = EVERYDAY,
  ) {
    super(world, name, caller);
    this.#chance = world.sim.chance(name);
    this.#known = known;
    this.#processOf = processOf;
    this.#sentAt = sentAt;
    this.#habits = habits;
  }

  protected live(process: Process): void {
    this.world.sim.after(this.#chance.between(0, 3_000), process, () => this.#come(process));
  }

  #come(process: Process): void {
    const { sim, network, pace } = this.world;
    const url = this.world.url();
    const { documents, resumes, stays, pauses } = this.#habits;
    const { kind, query } = this.#chance.pick(documents);
    const after = this.#chance.happens(resumes) ? this.#cursor : undefined;
    const stream: Stream = { reader: this.name, caller: this.caller, kind, after, items: [] };
    this.streams.push(stream);
    let began = Number.POSITIVE_INFINITY;
    let end: 'none' | 'said' | 'over' = 'none';
    let raw: RawStream;
    const over = (): void => {
      if (end === 'over') return;
      end = 'over';
      raw.leave();
      const pause = this.#chance.pick(pauses);
      sim.after(this.#chance.between(0.5, 1.5) * pause * pace + 100, process, () => this.#come(process));
    };
    const variables = after === undefined ? {} : { after };
    const token = this.caller.token();
    raw = open(
      network.socketClass(),
      url,
      token,
      { query, variables },
      {
        next: (told) => {
          if (this.#hear(stream, told, url, { began, endsAt: endOf(token) }))
            end = end === 'none' ? 'said' : end;
        },
        completed: () => {
          if (end === 'none') this.#broken(stream, 'has ended without a word');
          over();
        },
        closed: over,
        mark: (cursor) => {
          stream.items.push({ mark: cursor });
          this.#cursor = cursor;
        },
      },
      () => {
        began = sim.elapsed;
      },
    );
    // Nobody answers on a way that is cut: a raw client gives up by itself.
    sim.after(this.#chance.pick(stays) * this.#chance.between(0.5, 1.5) * pace, process, () => {
      if (end === 'over') return;
      if (this.#chance.happens(0.3)) raw.terminate();
      over();
    });
  }

  /** @returns whether the stream has said why it ends. */
  #hear(
    stream: Stream,
    told: Told,
    url: string,
    { began, endsAt }: { readonly began: number; readonly endsAt: number },
  ): boolean {
    const { data } = told;
    const codes = codesOf(told);
    if (data == null) {
      const odd = codes.find((code) => !ENDS.has(code));
      if (odd !== undefined || codes.length === 0)
        this.#broken(stream, `is told ${codes.join(', ') || 'nothing'} (${told.errors?.[0]?.message})`);
      if (codes.some((code) => code === 'EVENTS_GAP' || code === 'CURSOR_INVALID')) this.#cursor = undefined;
      return true;
    }
    const event = data[stream.kind] as { id: string; cursor: string; type?: string; ownerId?: string | null };
    const { id, cursor } = event;
    this.onEvent(id);
    const { customerId } = this.caller;
    if (customerId !== undefined && event.ownerId !== undefined && event.ownerId !== customerId)
      this.#broken(stream, `is shown ${id}, a credit of another`);
    if (customerId !== undefined && event.type !== undefined && event.type !== 'MONEY_IN')
      this.#broken(stream, `is shown ${id}, a ${event.type}: all that is paid here is the client’s own`);
    if (stream.items.some((item) => 'id' in item && item.id === id))
      this.#broken(stream, `is sent ${id} twice`);
    stream.items.push({ id, cursor });
    this.#cursor = cursor;
    const sentAt = this.#sentAt(id);
    const { sim } = this.world;
    if (sentAt !== undefined && sim.now - sim.elapsed + sentAt > endsAt + TOKEN_GRACE_MS)
      this.#broken(stream, `is sent ${id}, which came after its token had ended`);
    this.#checkAge(stream, cursor, url, began);
    return false;
  }

  /** What a gateway has told one of its readers of, it does not send another who begins after that. */
  #checkAge(stream: Stream, cursor: string, url: string, began: number): void {
    const process = this.#processOf(url);
    if (process === undefined || this.caller.customerId !== undefined) return;
    const known = this.#known.get(process) ?? new Map<string, number>();
    this.#known.set(process, known);
    const firstAt = known.get(cursor);
    if (firstAt === undefined) known.set(cursor, this.world.sim.elapsed);
    else if (stream.after === undefined && firstAt < began)
      this.#broken(stream, `began after ${began / 1000} s, and is sent an event that was known there before`);
  }

  #broken({ kind, after }: Stream, what: string): void {
    const from = after === undefined ? 'from now on' : 'from where it stood';
    this.world.sim.fail(new Broken(`${this.name} (${this.caller.name}), ${kind} ${from}: ${what}`));
  }
}
