import { LRUCache } from 'lru-cache';
import { clock } from '../../common/clock.ts';
import type { Party } from '../../common/party.ts';
import { type Flight, SingleFlight } from '../../common/single-flight.ts';
import { CutShortError } from './errors.ts';
import { LateChanges } from './late-changes.ts';
import { type Asker, type Joinable, SharedWork } from './shared-work.ts';

/** How long a read waited in this process, in milliseconds: for seats before it left, and for its answers' turns to be read. */
export type ReadWaits = Record<'queuedMs' | 'unreadMs', number>;

/** Adds what one try of a read has waited. */
export function addWaits(waits: ReadWaits, queuedMs: number, unreadMs: number): void {
  waits.queuedMs += queuedMs;
  waits.unreadMs += unreadMs;
}

/** What a read has found. */
export interface ReadAnswer {
  /** The parsed JSON. */
  readonly body: unknown;
  /** The length of its text, in bytes. */
  readonly bytes: number;
  readonly waits: Readonly<ReadWaits>;
}

/** The read that gave the answer, and was begun for another operation. */
export interface JoinedRead {
  /** When it was asked for, in milliseconds of the coalescer's clock. */
  readonly startedAt: number;
  /** How long it took from then on, with its waits, in milliseconds. */
  readonly milliseconds: number;
  readonly waits: Readonly<ReadWaits>;
  /** True if it was over already, and its answer had been kept. */
  readonly isKept: boolean;
}

/** One read that may be shared. */
interface CoalescedRead {
  /** Whom the REST service takes the caller for: a credential, in service mode the client. Reads are shared within it alone. */
  readonly caller: string;
  readonly path: string;
  /** Who asks, and how long. */
  readonly asker: Asker;
  /** Makes the read, on behalf of all who wait for it. */
  readonly read: (party: Party) => Promise<ReadAnswer>;
  /** Called when the answer came of a read that was begun for another operation. */
  readonly joined: (read: JoinedRead) => void;
  /** How long after a read began its answer still serves others, in milliseconds; 0 for no longer than it is under way. */
  readonly keptMs: number;
  /** True for no answer that was kept: only that of a read under way may serve. This read's own answer is kept nevertheless. */
  readonly isFresh: boolean;
}

/** Reads under way. Equal reads of one caller share one answer. */
export interface Coalescer {
  /**
   * Returns the answer of a read. If the same read is under way, returns its answer. That read stands in the queue of each of
   * its waiters, and goes on while one of them is there. If it fails, those who joined it read once more, together, in the
   * time that each has left; they get the error of that second read. One that was cut short counts for none of the two: it had
   * the time of those who waited as it was sent, and whoever has more reads on.
   */
  read(asked: CoalescedRead): Promise<ReadAnswer>;
  /** Makes the caller's later reads fresh: what was read before is older than what is known. */
  forget(caller: string): void;
  /**
   * Makes the caller's later reads fresh: it has changed something, or has heard of a change. The answers of those that begin
   * within 5 s (late-changes.ts) are not kept, as they may not show the change yet.
   */
  noteChange(caller: string): void;
}

/** A read that began longer ago than this, in milliseconds, is not joined: what it saw may be that old. */
const JOINED_WITHIN_MS = 1_000;
/**
 * Text of the answers that are kept for others, in bytes, of all callers together. An answer that is longer is not kept. As each counts for
 * a part of this at least, 256 are kept at most.
 */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;
const COUNTED_BYTES = MAX_KEPT_BYTES / 256;
const LATE = 'The time of the operation was over before the answer had come.';

/** An answer that is kept for others. */
interface Kept {
  readonly caller: string;
  readonly path: string;
  readonly bytes: number;
  readonly flight: Flight<ReadAnswer, Joinable<ReadAnswer>>;
  /** How long the read took, with its waits, in milliseconds. */
  readonly milliseconds: number;
  readonly waits: Readonly<ReadWaits>;
}

/** The answers that are kept for others, the latest as long as there is room. */
class KeptAnswers {
  /** By caller: the paths of its kept answers, which are forgotten when it hears of an event. */
  readonly #paths = new Map<string, Set<string>>();
  readonly #kept = new LRUCache<string, Kept>({
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ bytes }) => Math.max(bytes, COUNTED_BYTES),
    dispose: ({ caller, path }) => {
      const paths = this.#paths.get(caller);
      paths?.delete(path);
      if (paths?.size === 0) this.#paths.delete(caller);
    },
  });

  /** The answer to a read, if it is no older than that may be. */
  find({ keptMs, isFresh, caller, path }: CoalescedRead, now: number): Kept | undefined {
    const answer = keptMs === 0 || isFresh ? undefined : this.#kept.get(keyOf(caller, path));
    return answer !== undefined && now - answer.flight.startedAt <= keptMs ? answer : undefined;
  }

  keep(answer: Kept): void {
    const { caller, path, bytes } = answer;
    // The cache keeps nothing that is larger, and would not tell.
    if (bytes > MAX_KEPT_BYTES) return;
    this.#kept.set(keyOf(caller, path), answer);
    this.#paths.set(caller, (this.#paths.get(caller) ?? new Set()).add(path));
  }

  forget(caller: string): void {
    for (const path of [...(this.#paths.get(caller) ?? [])]) this.#kept.delete(keyOf(caller, path));
  }
}

const keyOf = (caller: string, path: string): string => `${caller} ${path}`;

/** True unless the read was cut short, which says nothing to those who have more time. */
const hasFailed = (error: unknown): boolean => !(error instanceof CutShortError);

const isOver = ({ leaver, deadline }: Asker): boolean => leaver?.isGone === true || deadline <= clock.now();

/** @param now milliseconds of a monotonic clock. */
export function createCoalescer(now: () => number): Coalescer {
  const reads = new SingleFlight<ReadAnswer, Joinable<ReadAnswer>>({ now, joinedWithinMs: JOINED_WITHIN_MS });
  const kept = new KeptAnswers();
  const changes = new LateChanges();

  function begin({ caller, path, asker, read, keptMs }: CoalescedRead): Promise<ReadAnswer> {
    const work = new SharedWork<ReadAnswer>();
    const flight = reads.begin(caller, path, work.result, work);
    const answer = work.wait(asker, LATE);
    const mayMiss = changes.mayMiss(caller, flight.startedAt);
    work.begin(
      keptMs === 0
        ? read
        : async (party) => {
            const got = await read(party);
            // A read that was forgotten meanwhile is not kept.
            if (!mayMiss && reads.isCurrent(caller, path, flight)) {
              const { bytes, waits } = got;
              kept.keep({ caller, path, flight, bytes, waits, milliseconds: now() - flight.startedAt });
            }
            return got;
          },
    );
    return answer;
  }

  /** Returns the read that may be joined: not one that all have left, as it is about to be given up. */
  function underWay(caller: string, path: string): Kept['flight'] | undefined {
    const flight = reads.underWay(caller, path);
    return flight === undefined || flight.details.isGone ? undefined : flight;
  }

  function keptOrRead(asked: CoalescedRead): Promise<ReadAnswer> {
    const answer = kept.find(asked, now());
    if (answer === undefined) return begin(asked);
    const { flight, milliseconds, waits } = answer;
    asked.joined({ startedAt: flight.startedAt, milliseconds, waits, isKept: true });
    return flight.result;
  }

  /** @param isSecond true if a read that it joined has failed already, and was not cut short */
  async function join(asked: CoalescedRead, isSecond: boolean): Promise<ReadAnswer> {
    const { asker, joined } = asked;
    const flight = underWay(asked.caller, asked.path);
    if (flight === undefined) return keptOrRead(asked);
    const { startedAt } = flight;
    try {
      const got = await flight.details.wait(asker, LATE);
      joined({ startedAt, milliseconds: now() - startedAt, waits: got.waits, isKept: false });
      return got;
    } catch (error) {
      if ((isSecond && hasFailed(error)) || isOver(asker)) throw error;
      return join(asked, isSecond || hasFailed(error));
    }
  }

  function forget(caller: string): void {
    reads.forget(caller);
    kept.forget(caller);
  }

  return {
    read: (asked) => join(asked, false),
    forget,
    noteChange(caller) {
      forget(caller);
      changes.note(caller, now());
    },
  };
}
