import type { Caller } from './callers.ts';
import type { World } from './world.ts';

/** One event of the log. */
export interface Logged {
  readonly position: string;
  readonly id: string;
  readonly type: string;
  /** Whose credit it is. */
  readonly ownerId: string | undefined;
  /** As it is stored. */
  readonly text: string;
}

interface Row extends Logged {
  readonly prev: string;
}

/** Of an event as it is stored: the ids that its payload names. */
function loggedOf(position: string, text: string): Logged {
  const { id, type } = JSON.parse(text) as { id: string; type: string };
  const ownerId = /"owner_id":\s*"([^"]+)"/.exec(text)?.[1];
  return { position, id, type, ownerId: ownerId?.toLowerCase(), text };
}

function rowOf(position: string, fields: readonly string[]): Row {
  const field = (name: string): string => fields[fields.indexOf(name) + 1] ?? '';
  return { ...loggedOf(position, field('event')), prev: field('prev') };
}

const logKey = (clientId: string): string => `{${clientId}}:log`;

/** All that was ever appended to the log of a client, by where; what a failover has lost as well. */
export class Appends {
  readonly #rows = new Map<string, Map<string, Row>>();

  note(key: string, position: string, fields: readonly string[]): void {
    // The journal of payments is a stream as well.
    if (!key.endsWith(':log')) return;
    const rows = this.#rows.get(key) ?? new Map<string, Row>();
    this.#rows.set(key, rows.set(position, rowOf(position, fields)));
  }

  /** Events that were appended at several places: what a failover has lost, and was delivered again. */
  again(clientId: string): ReadonlySet<string> {
    const seen = new Set<string>();
    const again = new Set<string>();
    for (const { id } of this.#rows.get(logKey(clientId))?.values() ?? []) {
      if (seen.has(id)) again.add(id);
      seen.add(id);
    }
    return again;
  }

  at(key: string, position: string): Row | undefined {
    return this.#rows.get(key)?.get(position);
  }

  /** Where events stood that were appended in one life of a client's log, which its very first event names. */
  of(clientId: string, epoch: string): readonly string[] {
    const rows = this.#rows.get(logKey(clientId)) ?? new Map<string, Row>();
    const lives = new Map<string, string>();
    const positions: string[] = [];
    // What an event follows on was appended before it.
    for (const { position, prev } of rows.values()) {
      const life = lives.get(prev) ?? prev;
      lives.set(position, life);
      if (life === epoch) positions.push(position);
    }
    return positions;
  }
}

/** Where a cursor stands: `1|epoch|client|position`. A log in files adds the run of its process: `position.run`. */
const positionOf = (cursor: string): string =>
  Buffer.from(cursor, 'base64url').toString().split('|')[3]?.split('.', 1)[0] ?? '';

/** Which life of the log a cursor is of; undefined where its reader cannot know. */
export const lifeOf = ({ customerId }: Caller, cursor: string): string | undefined =>
  customerId === undefined ? Buffer.from(cursor, 'base64url').toString().split('|')[1] : undefined;

/** Which events of a log a reader is given. */
export interface Seeing {
  readonly caller: Caller;
  readonly kind: 'events' | 'moneyIn';
}

/** The log of a client as it has become, and where in it everything stands. It is read once, for all who are held to it. */
export class History {
  readonly log: readonly Logged[];
  /** Events that stood at several places. */
  readonly again: ReadonlySet<string>;
  readonly #byPosition: ReadonlyMap<string, number>;
  readonly #byId: ReadonlyMap<string, number>;
  /** By who sees it: of each place, the next one that is theirs. */
  readonly #next = new Map<string, readonly (number | undefined)[]>();

  constructor(world: World, clientId: string) {
    this.log = logOf(world, clientId);
    this.again = world.appends.again(clientId);
    this.#byPosition = new Map(this.log.map(({ position }, place) => [position, place]));
    this.#byId = new Map(this.log.map(({ id }, place) => [id, place]));
  }

  /** Where an event stands that a reader was given; undefined where the log lost it. A narrowed reader cannot read its cursors. */
  placeOf({ customerId }: Caller, { id, cursor }: { readonly id: string; readonly cursor: string }) {
    if (customerId !== undefined) return this.#byId.get(id);
    const place = this.#byPosition.get(positionOf(cursor));
    return place !== undefined && this.log[place]?.id === id ? place : undefined;
  }

  /** Where a cursor stands; undefined where its reader cannot know, and where the log lost it. */
  placeOfCursor({ customerId }: Caller, cursor: string): number | undefined {
    return customerId === undefined ? this.#byPosition.get(positionOf(cursor)) : undefined;
  }

  /** Whether an event at this place is nothing that somebody sees. */
  isOthers({ kind, caller: { customerId } }: Seeing, place: number): boolean {
    const { type, ownerId } = this.log[place] ?? {};
    return (
      (kind === 'moneyIn' && type !== 'MONEY_IN') ||
      (customerId !== undefined && (type !== 'MONEY_IN' || ownerId !== customerId))
    );
  }

  /** The first place behind another that somebody sees. */
  next(seeing: Seeing, place: number): number | undefined {
    return this.#nextOf(seeing)[place];
  }

  #nextOf(seeing: Seeing): readonly (number | undefined)[] {
    const key = `${seeing.kind} ${seeing.caller.customerId ?? ''}`;
    const known = this.#next.get(key);
    if (known !== undefined) return known;
    const next: (number | undefined)[] = [];
    let last: number | undefined;
    for (let place = this.log.length - 1; place >= 0; place -= 1) {
      next[place] = last;
      if (!this.isOthers(seeing, place)) last = place;
    }
    this.#next.set(key, next);
    return next;
  }
}

/** Whether the log of a client lacks something that was appended in its present life, and that it has not trimmed. */
export function hasLost(world: World, clientId: string): boolean {
  const epoch = world.redis.primary.keyspace.run('HGET', [`{${clientId}}:meta`, 'epoch']);
  if (typeof epoch !== 'string') return false;
  const there = new Set(logOf(world, clientId).map(({ position }) => position));
  return world.appends.of(clientId, epoch).some((position) => !there.has(position));
}

/** The log in whichever store, from its beginning on: with what is retained no more, and without what was lost. */
function logOf(world: World, clientId: string): readonly Logged[] {
  const embedded = world.gateways.flatMap((place) => place.embeddedLog(clientId));
  if (embedded.length > 0) return embedded.map(([position, event]) => loggedOf(position, event));
  const key = logKey(clientId);
  const rows = world.redis.primary.keyspace.run('XRANGE', [key, '-', '+']);
  // XRANGE lists ids, each with its fields.
  const retained = (rows as readonly [string, readonly string[]][]).map(([position, fields]) =>
    rowOf(position, fields),
  );
  const gone: Row[] = [];
  let prev = retained[0]?.prev;
  for (;;) {
    const row = prev === undefined ? undefined : world.appends.at(key, prev);
    if (row === undefined) break;
    gone.push(row);
    ({ prev } = row);
  }
  return [...gone.reverse(), ...retained];
}
