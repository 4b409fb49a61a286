import { clock } from '../common/clock.ts';

/**
 * How long a primary must have been without a replica before a write on it counts without that replica, in milliseconds, where
 * nobody says how soon a failover begins. Sentinels may ask for longer.
 */
export const ALONE_FOR_MS = 30_000;

/** A replica that has said nothing for longer than this does not answer, in seconds. A healthy one speaks every second. */
const MOST_LAG_SECONDS = 2;
const STALLED_FOR_MS = (MOST_LAG_SECONDS + 1) * 1000;
/** A word of the Sentinels, or of a Cluster, is good for this time, in milliseconds. An older one is none. */
const WORD_LASTS_MS = 15_000;
/** More histories than any group of servers goes through in a while. */
const MOST_HISTORIES = 64;

/** What a primary says of its replicas. */
export interface Primary {
  /** Names the history of its data; a replica that is promoted begins another. */
  readonly replid: string;
  /** Replicas that are in step and still answer. One that is still copying, or has fallen silent, does not count. */
  readonly replicas: number;
  /** Those, and the ones in step that have fallen silent, but said something in the last {@link ALONE_FOR_MS}. */
  readonly lately: number;
  /** How often a replica has begun to follow. */
  readonly syncs: number;
  /** The history that this server followed until it was promoted; empty where it never was. */
  readonly former: string;
}

/** What the Sentinels, or the Cluster, say of a primary that is still theirs. */
export interface Failover {
  /**
   * Replicas that could be promoted: those that are not down, and those that went down so lately that they may be back
   * before anybody notices ({@link awayFor}).
   */
  readonly promotable: number;
  /** How long a primary must be silent before it is replaced, in milliseconds. */
  readonly noticedAfterMs: number;
}

/**
 * How long a replica must have been away before it counts no longer, in milliseconds, where a primary is replaced once it has
 * been silent for `noticedAfterMs`.
 */
export const awayFor = (noticedAfterMs: number): number => Math.max(ALONE_FOR_MS, 2 * noticedAfterMs);

/** What a primary lacks. */
interface Missing {
  readonly replicas: number;
  readonly required: number;
  /** True if those who watch might say that it needs fewer, and say nothing. */
  readonly isUnheard: boolean;
}

/** What is known of one history of data. */
interface History {
  last: Primary;
  /**
   * A write needs as many replicas as this has entries, as far as this process has seen. The first entry says when one replica may have been
   * there last, the second when two may have been, and so on: just before the first look that found fewer.
   */
  readonly thereAt: number[];
  word: (Failover & { readonly at: number }) | undefined;
  /** When a write waited in vain; undefined once one did not. */
  stalledAt: number | undefined;
}

/**
 * How many replicas have to acknowledge a write before it counts.
 *
 * A primary that was cut off, or stood still, while a replica took its place does not know it yet: it sees that its
 * replicas are gone, and takes writes that will be thrown away. It looks just like one whose replicas have died. And one
 * replica's acknowledgement says nothing of the other that is promoted. So every replica counts that was there lately, or
 * could be promoted; one that has gone counts until it has been gone for long, and the Sentinels or the Cluster agree
 * that it cannot be promoted. The primary that was replaced counts likewise: it comes back as a replica.
 */
export class Replication {
  readonly #now: () => number;
  readonly #isWatched: boolean;
  readonly #histories = new Map<string, History>();
  /** The most replicas that any primary had. */
  #most = 0;

  /**
   * @param isWatched whether somebody can be asked about failovers: Sentinels, or a Cluster. Without them, time alone decides.
   * @param now in milliseconds, by a clock that only goes forward
   */
  constructor(isWatched: boolean, now: () => number = () => clock.monotonic()) {
    this.#isWatched = isWatched;
    this.#now = now;
  }

  /** Whether every write counts at once, as far as is known. False also before anything is known. */
  get isDurable(): boolean {
    const histories = [...this.#histories.values()];
    return (
      histories.length > 0 &&
      histories.every(
        (history) => !this.#isStalled(history) && history.last.replicas >= this.#required(history),
      )
    );
  }

  /** A primary on which no write counts now for want of replicas; undefined where there is none. */
  get missing(): Missing | undefined {
    for (const history of this.#histories.values()) {
      const required = this.#required(history);
      const { replicas } = history.last;
      if (replicas < required) return { replicas, required, isUnheard: this.#isUnheard(history.word) };
    }
    return undefined;
  }

  /** How many replicas the primaries have that there are, together. */
  get replicas(): number {
    let count = 0;
    for (const { last } of this.#histories.values()) count += last.replicas;
    return count;
  }

  /** Takes in what a primary says of itself now. */
  observe(primary: Primary): void {
    const now = this.#now();
    this.#most = Math.max(this.#most, this.#seen(primary));
    const history = this.#histories.get(primary.replid) ?? this.#begin(primary, now);
    const { last, thereAt } = history;
    // Replicas that have come since may have gone again, unseen, with all that was written until then.
    const came = Math.max(primary.syncs - last.syncs, 0);
    const atOnce = came > 0 ? Math.min(last.replicas + came, Math.max(this.#most, 1)) : 0;
    // Those of the look before may have gone only now.
    const there = Math.max(primary.replicas, last.replicas, atOnce);
    for (let index = 0; index < there; index += 1) thereAt[index] = now;
    history.last = primary;
    this.#forgive(history, now);
  }

  /**
   * Takes in the word of those who decide about failovers; undefined when nobody would give it. `replaced` where they name another primary,
   * which takes back what they said before: nobody says any longer that this one may be alone.
   */
  told(replid: string, failover: Failover | 'replaced' | undefined): void {
    const history = this.#histories.get(replid);
    if (history === undefined || failover === undefined) return;
    if (failover === 'replaced') {
      history.word = undefined;
      return;
    }
    const now = this.#now();
    history.word = { ...failover, at: now };
    this.#forgive(history, now);
  }

  /** So many replicas have to acknowledge a write on this primary. More than it has: no write counts now. */
  required(replid: string): number {
    const history = this.#histories.get(replid);
    return history === undefined ? 1 : this.#required(history);
  }

  /** True if a write on this primary needs more replicas only because those who watch have said nothing of it lately. */
  needsWord(replid: string): boolean {
    const history = this.#histories.get(replid);
    return (
      history !== undefined &&
      history.last.replicas >= history.thereAt.length &&
      this.#isUnheard(history.word)
    );
  }

  /** So many acknowledgements can be awaited: all that are required, or none. `isStalled` when they did not come lately. */
  awaited(replid: string | undefined): { readonly replicas: number; readonly isStalled: boolean } {
    const history = replid === undefined ? undefined : this.#histories.get(replid);
    if (history === undefined) return { replicas: 0, isStalled: false };
    const required = this.#required(history);
    return {
      replicas: history.last.replicas >= required ? required : 0,
      isStalled: this.#isStalled(history),
    };
  }

  /** Notes whether the replicas acknowledged a write that they should have. */
  acknowledged(replid: string | undefined, inTime: boolean): void {
    const history = replid === undefined ? undefined : this.#histories.get(replid);
    if (history !== undefined) history.stalledAt = inTime ? undefined : this.#now();
  }

  /** Forgets every history but those of the primaries that there are. */
  keep(replids: readonly string[]): void {
    for (const replid of this.#histories.keys())
      if (!replids.includes(replid)) this.#histories.delete(replid);
  }

  #begin(primary: Primary, now: number): History {
    const wanted = Math.max(this.#seen(primary), this.#wantedAtFirst(primary));
    const thereAt = Array.from({ length: wanted }, () => now);
    const history = { last: primary, thereAt, word: undefined, stalledAt: undefined };
    if (this.#histories.size >= MOST_HISTORIES) this.#histories.clear();
    this.#histories.set(primary.replid, history);
    return history;
  }

  /** This process may be younger than the silence of a replica. Those who watch, where there are any, say which could be promoted. */
  #seen({ replicas, lately }: Primary): number {
    return this.#isWatched ? replicas : lately;
  }

  /**
   * A promoted replica begins alone. The server that it replaced may be back with its old data in a moment, and be promoted in
   * turn: what was written meanwhile counts only once it is there too, or has been away for long. Of a primary that has just
   * started again, those who watch say how many replicas it has; where nobody can be asked, they are taken to be on their way.
   */
  #wantedAtFirst({ former }: Primary): number {
    if (former === '') return this.#isWatched ? 0 : this.#most;
    const before = this.#histories.get(former)?.thereAt.length ?? this.#most;
    return Math.max(before, this.#isWatched ? Math.min(this.#most, 1) : 1);
  }

  #required({ last, thereAt, word }: History): number {
    const known = Math.max(last.replicas, thereAt.length, word?.promotable ?? 0);
    // Nobody says, or says it still, that it may be alone, or with fewer than before. A server that is back may be seen, and
    // promoted, by those alone who cannot be asked.
    return this.#isUnheard(word) ? Math.max(known, this.#most, 1) : known;
  }

  /** True if there are some who watch, and they have said nothing lately. */
  #isUnheard(word: History['word']): boolean {
    return this.#isWatched && (word === undefined || this.#now() - word.at > WORD_LASTS_MS);
  }

  /** For longer than that, the replicas' silence tells by itself. */
  #isStalled({ stalledAt }: History): boolean {
    return stalledAt !== undefined && this.#now() - stalledAt < STALLED_FOR_MS;
  }

  /** Of replicas that have gone one after the other, each counts for as long by itself. */
  #forgive({ last, thereAt, word }: History, now: number): void {
    const isSilent = this.#isUnheard(word);
    const awayMs = word === undefined ? ALONE_FOR_MS : awayFor(word.noticedAfterMs);
    while (thereAt.length > Math.max(last.replicas, word?.promotable ?? 0)) {
      if (isSilent || now - (thereAt.at(-1) ?? now) < awayMs) return;
      thereAt.pop();
    }
  }
}

/**
 * The end of a Lua function: what this server says of its replicas, as `{replid, replicas, lately, syncs, former}`. Where INFO is
 * forbidden it has none.
 */
export const REPLICATION_IN_LUA = `
  local replid, replicas, lately, syncs, former = '', 0, 0, 0, ''
  local info, stats = redis.pcall('INFO', 'replication'), redis.pcall('INFO', 'stats')
  if type(info) == 'string' and type(stats) == 'string' then
    if info:match('role:(%w+)') ~= 'master' then
      return redis.error_reply('READONLY this Redis is no longer the primary')
    end
    replid = info:match('master_replid:(%w+)') or ''
    former = (info:match('master_replid2:(%w+)') or ''):gsub('^0+$', '')
    for lag in info:gmatch('state=online,offset=%d+,lag=(%d+)') do
      if tonumber(lag) <= ${MOST_LAG_SECONDS} then replicas = replicas + 1 end
      if tonumber(lag) < ${ALONE_FOR_MS / 1000} then lately = lately + 1 end
    end
    syncs = (stats:match('sync_full:(%d+)') or 0) + (stats:match('sync_partial_ok:(%d+)') or 0)
  end`;

/** Reads the text of INFO, of its sections `replication` and `stats`. */
export function primaryIn(info: string): Primary {
  const counter = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const lags = [...info.matchAll(/^slave\d+:.*state=online,offset=\d+,lag=(\d+)/gm)].map(([, lag]) =>
    Number(lag),
  );
  return {
    replid: /^master_replid:(\w+)/m.exec(info)?.[1] ?? '',
    replicas: lags.filter((lag) => lag <= MOST_LAG_SECONDS).length,
    lately: lags.filter((lag) => lag * 1000 < ALONE_FOR_MS).length,
    syncs: counter('sync_full') + counter('sync_partial_ok'),
    former: (/^master_replid2:(\w+)/m.exec(info)?.[1] ?? '').replace(/^0+$/, ''),
  };
}
