import { clock } from '../common/clock.ts';
import type { Full } from '../common/refusals.ts';
import type { CallRecord } from '../upstream/call/rest.ts';
import type { Executor, Transport, Way } from './way.ts';

/** Who counts the look-ups that each list's route has answered. */
interface CountsLookUps {
  lookUps(): Iterable<readonly [route: string, count: number]>;
}

/** What is reported of one operation: the way that it took, and the REST calls beneath its answer. */
export class Report {
  #transport: Transport | undefined;
  #document: Way['document'] = 'read';
  #executor: Executor | undefined;
  #because: string | undefined;
  #isShared = false;
  #full: Full | undefined;
  #cost: number | undefined;
  #seatMs: number | undefined;
  #walksAwaited = 0;
  #walkSince = 0;
  #walkMs: number | undefined;
  #calls: CallRecord[] = [];
  #sharedCalls: readonly CallRecord[] = [];
  /** Look-ups of sessions that have been let go of since. */
  #lookUps: Map<string, number> | undefined;
  #session: CountsLookUps | undefined;

  /** The way that the operation has taken so far. */
  get way(): Way {
    return {
      transport: this.#transport,
      document: this.#document,
      executor: this.#executor,
      because: this.#because,
      isShared: this.#isShared,
    };
  }

  /** It came over this transport, with a document that had been kept, or not. */
  cameBy(transport: Transport | undefined, document: Way['document']): void {
    this.#transport = transport;
    this.#document = document;
  }

  /** What executes it, or executes it again, and why that is no plan. */
  executedBy(executor: Executor, because: string | undefined): void {
    this.#executor = executor;
    this.#because = because;
  }

  /** It was refused, as this was full. */
  refusedFor(full: Full): void {
    this.#full = full;
  }

  /** What was full where it was refused a seat; undefined where it was not, or shares the refusal of another. */
  get full(): Full | undefined {
    return this.#full;
  }

  /** It had to wait for a seat, until it had one or was refused, for so many milliseconds. */
  waitedForSeat(milliseconds: number): void {
    this.#seatMs = milliseconds;
  }

  /** How long it waited for a seat, in milliseconds; undefined where it had one at once, or took none. */
  get seatMs(): number | undefined {
    return this.#seatMs;
  }

  /** It begins to wait for a list to be read to its end. @returns called as it waits for that no longer. */
  waitsForWalk(): () => void {
    if (this.#walksAwaited === 0) this.#walkSince = clock.monotonic();
    this.#walksAwaited += 1;
    return () => {
      this.#walksAwaited -= 1;
      if (this.#walksAwaited === 0) this.#walkMs = (this.#walkMs ?? 0) + clock.monotonic() - this.#walkSince;
    };
  }

  /** How long it waited for lists to be read to their ends, several at once counted once, in milliseconds; undefined where for none. */
  get walkMs(): number | undefined {
    return this.#walkMs;
  }

  /** By its document and the sizes of its pages it costs this. */
  noteCost(cost: number): void {
    this.#cost = cost;
  }

  /** What it costs; undefined where it was refused before that was counted. */
  get cost(): number | undefined {
    return this.#cost;
  }

  /** The REST calls made so far, in the order in which they were answered. */
  get calls(): readonly CallRecord[] {
    return this.#calls;
  }

  /** How many REST calls it has made so far, each try one, and how long these waited for seats and turns, added up, in milliseconds. */
  get ownCalls(): { readonly calls: number; readonly callWaitMs: number } {
    let calls = 0;
    let callWaitMs = 0;
    for (const { cached, queuedMs, unreadMs } of this.#calls) {
      if (cached) continue;
      calls += 1;
      callWaitMs += queuedMs + unreadMs;
    }
    return { calls, callWaitMs };
  }

  /** Calls of other operations whose answers this one shares. */
  get sharedCalls(): readonly CallRecord[] {
    return this.#sharedCalls;
  }

  /** When the first of the shared calls left, in milliseconds of the monotonic clock; undefined without any. */
  get oldestSharedAt(): number | undefined {
    return this.#sharedCalls.length === 0
      ? undefined
      : Math.min(...this.#sharedCalls.map(({ startedAt }) => startedAt));
  }

  /** A call was answered. */
  add(call: CallRecord): void {
    this.#calls.push(call);
  }

  /** A call that another operation had made answered this one too. */
  addShared(call: CallRecord): void {
    this.#sharedCalls = [...this.#sharedCalls, call];
  }

  /** The whole result is that of another operation, which made these calls. */
  share(calls: readonly CallRecord[]): void {
    this.#isShared = true;
    this.#sharedCalls = calls;
  }

  /** Counts the look-ups of a session from now on. Those of the session before stay counted. */
  count(session: CountsLookUps): void {
    this.#lookUps = this.#session === undefined ? this.#lookUps : this.#sum();
    this.#session = session;
  }

  /** How many look-ups each list's route has answered so far. */
  lookUps(): ReadonlyMap<string, number> {
    return this.#sum();
  }

  /** Begins anew: nothing that was made for the event before is reported of the next. */
  clear(): void {
    if (this.#calls.length > 0) this.#calls = [];
    if (this.#sharedCalls.length > 0) this.#sharedCalls = [];
    this.#lookUps = undefined;
    this.#session = undefined;
  }

  #sum(): Map<string, number> {
    const sum = new Map(this.#lookUps);
    for (const [route, count] of this.#session?.lookUps() ?? [])
      sum.set(route, (sum.get(route) ?? 0) + count);
    return sum;
  }
}
