import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { EventSearch } from '../log.ts';
import { BLOCK, digestOf, INDEXED_AT_ONCE, type Indexed, MARK, type SearchFrom } from '../search.ts';
import { integer, text } from './file.ts';
import { adaptIndex, LACKS_NAMES } from './index-schema.ts';

type Row = Record<string, SQLOutputValue>;

/** Rows of `events`, in the order of the log. */
interface FoundRows {
  readonly rows: readonly Row[];
  readonly hasMore: boolean;
}

/** How much of the log is kept. */
export interface Retention {
  /** Events kept per client. */
  readonly events: number;
  /** Bytes of stored events kept per client; undefined for any number. The newest event is kept whatever it takes. */
  readonly bytes: number | undefined;
}

/** Adjacent blocks that are read in one step. */
const RUN = 4;
/**
 * An append that has trimmed so many events goes on only until they have freed twice the bytes that it added. So no append takes long
 * after a bound was lowered, nor do many in one transaction, and the log shrinks all the same.
 */
const TRIMMED_AT_ONCE = 16;
/** Events of a client that go into the index in one step. Each of its pages is then written once for all of them. */
const ENTERED_AT_ONCE = 64;
const NOTHING: FoundRows = { rows: [], hasMore: false };
/** SQL for when an event was received, in milliseconds since 1970. An earlier version has it in the event alone. */
const RECEIVED =
  "coalesce(received, CAST(1000 * unixepoch(json_extract(event, '$.receivedAt'), 'subsec') AS INTEGER), 0)";
const COLUMNS = 'events.position, run, prev_run, event';
/** SQL for events of the time, and for the one at the end of a run whatever its time: a search goes on from there. */
const inRun = (end: '$first' | '$last'): string => `SELECT ${COLUMNS} FROM events
  WHERE client = $client AND position BETWEEN $first AND $last AND (received >= $from AND received < $to OR position = ${end})`;

const blockOf = (number: number): number => Math.floor(number / BLOCK);

/** Finds events of the embedded log again, and trims those beyond the bounds. Writes run in the caller's transaction. */
export class SqliteIndex {
  readonly #statements;

  constructor(database: DatabaseSync) {
    adaptIndex(database);
    const overlaps = 'latest >= $from AND earliest < $to';
    const prepare = (sql: string): StatementSync => database.prepare(sql);
    this.#statements = {
      name: prepare('INSERT OR IGNORE INTO names (name, position) VALUES (?, ?)'),
      unname: prepare('DELETE FROM names WHERE name = ? AND position = ?'),
      widen: prepare(`
        INSERT INTO blocks (client, block, earliest, latest, bytes) VALUES ($client, $block, $at, $at, $bytes)
        ON CONFLICT DO UPDATE SET
          earliest = min(earliest, $at), latest = max(latest, $at), bytes = bytes + $bytes`),
      lighten: prepare('UPDATE blocks SET bytes = bytes - ? WHERE client = ? AND block = ?'),
      forget: prepare('DELETE FROM blocks WHERE client = ? AND block < ?'),
      weigh: prepare('SELECT coalesce(sum(bytes), 0) AS bytes FROM blocks WHERE client = ?'),
      oldest: prepare(
        `SELECT position, digests, octet_length(event) AS bytes, ${RECEIVED} AS received
         FROM events WHERE client = ? ORDER BY position LIMIT 1`,
      ),
      gone: prepare(`INSERT INTO gone (client, position, latest) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET
        position = excluded.position, latest = max(latest, excluded.latest)`),
      goneUpTo: prepare('SELECT latest FROM gone WHERE client = ? AND position = ?'),
      latest: prepare(`SELECT max(received) AS latest FROM
        (SELECT ${RECEIVED} AS received FROM events WHERE client = ? ORDER BY position LIMIT ${BLOCK})`),
      newest: prepare('SELECT max(position) AS position FROM events WHERE client = ?'),
      remove: prepare('DELETE FROM events WHERE client = ? AND position = ?'),
      lacking: prepare(
        `SELECT position, run, prev_run, received, digests, octet_length(event) AS bytes, iif(${LACKS_NAMES}, event, NULL) AS event
         FROM events WHERE client = ? AND position > ? ORDER BY position LIMIT ?`,
      ),
      entered: prepare('SELECT position FROM entered WHERE client = ?'),
      enter: prepare('INSERT OR REPLACE INTO entered (client, position) VALUES (?, ?)'),
      tell: prepare('UPDATE events SET received = ?, digests = ? WHERE client = ? AND position = ?'),
      next: prepare(`SELECT block FROM blocks WHERE client = $client AND block >= $block AND ${overlaps}
        ORDER BY block LIMIT 1`),
      nextOther: prepare(`SELECT block FROM blocks WHERE client = $client AND block > $block
        AND block < $block + ${RUN} AND NOT (${overlaps}) ORDER BY block LIMIT 1`),
      previous: prepare(`SELECT block FROM blocks WHERE client = $client AND block <= $block AND ${overlaps}
        ORDER BY block DESC LIMIT 1`),
      previousOther: prepare(`SELECT block FROM blocks WHERE client = $client AND block < $block
        AND block > $block - ${RUN} AND NOT (${overlaps}) ORDER BY block DESC LIMIT 1`),
      on: prepare(`${inRun('$last')} ORDER BY position LIMIT $limit`),
      back: prepare(`${inRun('$first')} ORDER BY position DESC LIMIT $limit`),
      namedOn:
        prepare(`SELECT ${COLUMNS} FROM names JOIN events ON client = ? AND events.position = names.position
        WHERE name = ? AND names.position BETWEEN ? AND ? ORDER BY names.position LIMIT ?`),
      namedBack:
        prepare(`SELECT ${COLUMNS} FROM names JOIN events ON client = ? AND events.position = names.position
        WHERE name = ? AND names.position BETWEEN ? AND ? ORDER BY names.position DESC LIMIT ?`),
    };
  }

  /**
   * Gives up the oldest events of a client where there are more than are to be kept, with all that the index holds of them; and
   * now and then enters what was appended.
   *
   * @param newest position of the event that has just been stored
   * @param added how many bytes it takes
   * @returns whether the index has to be completed by somebody who knows the names of events
   */
  appended(clientId: string, newest: number, added: number, retention: Retention): boolean {
    const isDue = retention.bytes !== undefined || newest % ENTERED_AT_ONCE === 0;
    if (isDue) this.enterLeft(clientId);
    this.#trim(clientId, newest, added, retention);
    return isDue && !this.isComplete(clientId);
  }

  #trim(clientId: string, newest: number, added: number, { events, bytes: most }: Retention): void {
    const { weigh, oldest, remove, unname, lighten, forget, gone } = this.#statements;
    let bytes = most === undefined ? 0 : integer(weigh.get(clientId)?.['bytes']);
    let entered: number | undefined;
    let latest = 0;
    let freed = 0;
    for (let trimmed = 0; ; trimmed += 1) {
      const row = oldest.get(clientId);
      const number = integer(row?.['position']);
      const isTooMuch = number <= newest - events || (most !== undefined && bytes > most && number < newest);
      const isEnough = trimmed >= TRIMMED_AT_ONCE && freed >= 2 * added;
      if (!isTooMuch || row === undefined || isEnough) {
        if (trimmed > 0) {
          forget.run(clientId, blockOf(number));
          gone.run(clientId, number - 1, Math.max(latest, this.#goneUnnoticed(clientId, number - trimmed)));
        }
        return;
      }
      const { digests } = row;
      latest = Math.max(latest, integer(row['received'] ?? 0));
      remove.run(clientId, number);
      freed += integer(row['bytes']);
      entered ??= this.#entered(clientId);
      if (number > entered) continue;
      for (const digest of wordsOf(text(digests))) unname.run(digest, number);
      bytes -= integer(row['bytes']);
      lighten.run(row['bytes'] ?? 0, clientId, blockOf(number));
    }
  }

  /**
   * When the latest of the events before a position was received, in milliseconds since 1970; undefined where the log begins there.
   *
   * @param first the position of the first event that is held
   */
  goneUpTo(clientId: string, first: number): number | undefined {
    if (first <= 1) return undefined;
    const noted = this.#statements.goneUpTo.get(clientId, first - 1);
    // An earlier version trimmed them. They were stored, and so received, at about the time of those that follow.
    return integer((noted ?? this.#statements.latest.get(clientId))?.['latest'] ?? 0);
  }

  /** Returns when the latest was received of earlier events that were trimmed without a note. */
  #goneUnnoticed(clientId: string, first: number): number {
    return this.#statements.goneUpTo.get(clientId, first - 1) === undefined
      ? (this.goneUpTo(clientId, first) ?? 0)
      : 0;
  }

  /** True if every event of the client is in the index. */
  isComplete(clientId: string): boolean {
    const newest = this.#statements.newest.get(clientId)?.['position'] ?? 0;
    return integer(newest) <= this.#entered(clientId);
  }

  /** Enters what appends have left: events up to one of which a version that knew nothing of the index has told no names. */
  enterLeft(clientId: string): void {
    this.#enter(clientId, ENTERED_AT_ONCE, () => undefined);
  }

  /**
   * Enters some of the events that are lacking, oldest first.
   *
   * @param tell what the index is to hold of an event of which the log does not say it
   */
  enterSome(clientId: string, tell: (row: Row) => Indexed): void {
    this.#enter(clientId, INDEXED_AT_ONCE, (row) => {
      const index = tell(row);
      this.#statements.tell.run(index.receivedAt, index.digests, clientId, integer(row['position']));
      return index;
    });
  }

  #enter(clientId: string, most: number, tell: (row: Row) => Indexed | undefined): void {
    const { lacking, name, widen, enter } = this.#statements;
    let last: number | undefined;
    for (const row of lacking.all(clientId, this.#entered(clientId), most)) {
      const index = indexIn(row) ?? tell(row);
      if (index === undefined) break;
      last = integer(row['position']);
      for (const digest of wordsOf(index.digests)) name.run(digest, last);
      widen.run({
        $client: clientId,
        $block: blockOf(last),
        $at: index.receivedAt,
        $bytes: integer(row['bytes']),
      });
    }
    if (last !== undefined) enter.run(clientId, last);
  }

  #entered(clientId: string): number {
    return integer(this.#statements.entered.get(clientId)?.['position'] ?? 0);
  }

  /** @param start the number of the position to search from, exclusive; undefined for the end of the log where the direction begins. */
  find(
    clientId: string,
    start: number | undefined,
    { direction, limit }: Pick<SearchFrom, 'direction' | 'limit'>,
    search: EventSearch,
  ): FoundRows {
    const isOn = direction === 'on';
    const low = isOn ? (start ?? 0) + 1 : 0;
    const high = isOn ? Number.MAX_SAFE_INTEGER : (start ?? Number.MAX_SAFE_INTEGER) - 1;
    const times = {
      $client: clientId,
      $from: search.receivedFrom ?? Number.MIN_SAFE_INTEGER,
      $to: search.receivedTo ?? Number.MAX_SAFE_INTEGER,
    };
    if (search.name !== undefined) return this.#named(clientId, search.name, times, low, high, isOn, limit);
    return isOn ? this.#on(times, low, limit) : this.#back(times, high, limit);
  }

  #named(
    clientId: string,
    name: string,
    times: Times,
    low: number,
    high: number,
    isOn: boolean,
    limit: number,
  ): FoundRows {
    const { namedOn, namedBack } = this.#statements;
    const [first, last] = [this.#next(times, blockOf(low)), this.#previous(times, blockOf(high))];
    if (first === undefined || last === undefined) return NOTHING;
    const bounds = [Math.max(low, first * BLOCK), Math.min(high, (last + 1) * BLOCK - 1)] as const;
    const rows = (isOn ? namedOn : namedBack).all(clientId, digestOf(clientId, name), ...bounds, limit + 1);
    return shown(rows, isOn, limit, false);
  }

  #on(times: Times, low: number, limit: number): FoundRows {
    for (let start = low; ; ) {
      const block = this.#next(times, blockOf(start));
      if (block === undefined) return NOTHING;
      const end = number(this.#statements.nextOther.get({ ...times, $block: block })) ?? block + RUN;
      const [$first, $last] = [Math.max(start, block * BLOCK), end * BLOCK - 1];
      const rows = this.#statements.on.all({ ...times, $first, $last, $limit: limit + 1 });
      if (rows.length > 0) return shown(rows, true, limit, this.#next(times, end) !== undefined);
      start = end * BLOCK;
    }
  }

  #back(times: Times, high: number, limit: number): FoundRows {
    for (let start = high; ; ) {
      const block = this.#previous(times, blockOf(start));
      if (block === undefined) return NOTHING;
      const end = number(this.#statements.previousOther.get({ ...times, $block: block })) ?? block - RUN;
      const [$first, $last] = [(end + 1) * BLOCK, Math.min(start, (block + 1) * BLOCK - 1)];
      const rows = this.#statements.back.all({ ...times, $first, $last, $limit: limit + 1 });
      if (rows.length > 0) return shown(rows, false, limit, this.#previous(times, end) !== undefined);
      start = (end + 1) * BLOCK - 1;
    }
  }

  /** Returns the first block from `block` on that has events of the time. */
  #next(times: Times, block: number): number | undefined {
    return number(this.#statements.next.get({ ...times, $block: block }));
  }

  /** Returns the last such block up to `block`. */
  #previous(times: Times, block: number): number | undefined {
    return number(this.#statements.previous.get({ ...times, $block: block }));
  }
}

interface Times extends Record<string, string | number> {
  readonly $client: string;
  readonly $from: number;
  readonly $to: number;
}

const number = (row: Row | undefined): number | undefined =>
  row === undefined ? undefined : integer(row['block']);

function shown(rows: readonly Row[], isOn: boolean, limit: number, goesOn: boolean): FoundRows {
  const some = rows.slice(0, limit);
  return { rows: isOn ? some : some.reverse(), hasMore: rows.length > limit || goesOn };
}

/** Returns what the append has left of an event for the index; undefined if that is nothing, or lacks names. */
function indexIn({ received, digests }: Row): Indexed | undefined {
  if (received === null || digests === null || !text(digests).startsWith(MARK)) return undefined;
  return { receivedAt: integer(received), digests: text(digests) };
}

const wordsOf = (digests: string): readonly string[] => digests.split(' ').filter((word) => word !== MARK);
