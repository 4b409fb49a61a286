import type { World } from './world.ts';

/** One event of the log. */
export interface Logged {
  readonly position: string;
  readonly id: string;
  readonly type: string;
  /** Whose credit it is. */
  readonly ownerId: string | undefined;
}

interface Row extends Logged {
  readonly prev: string;
}

/** Of an event as it is stored: the ids that its payload names. */
function loggedOf(position: string, text: string): Logged {
  const { id, type } = JSON.parse(text) as { id: string; type: string };
  const ownerId = /"owner_id":\s*"([^"]+)"/.exec(text)?.[1];
  return { position, id, type, ownerId: ownerId?.toLowerCase() };
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
    const rows = this.#rows.get(key) ?? new Map<string, Row>();
    this.#rows.set(key, rows.set(position, rowOf(position, fields)));
  }

  /** Events that were appended at several places: what a failover has lost, and was delivered again. */
  again(clientId: string): ReadonlySet<string> {
    const ids = [...(this.#rows.get(logKey(clientId))?.values() ?? [])].map(({ id }) => id);
    return new Set(ids.filter((id, at) => ids.indexOf(id) !== at));
  }

  at(key: string, position: string): Row | undefined {
    return this.#rows.get(key)?.get(position);
  }
}

/** The log of a client as it has become, in whichever store, from its beginning on: with what is retained no more, and without what was lost. */
export function historyOf(world: World, clientId: string): readonly Logged[] {
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
