import { Lru } from '../../common/lru.ts';
import type { CallKind } from './exchange.ts';

/** Consecutive failures that open a circuit. */
const FAILURES_TO_OPEN = 20;
/** How long it stays open before one call may try, in milliseconds. */
const OPEN_MS = 2_000;
/**
 * How long after the last failure `isOpen` still says so if nobody has called since, in milliseconds. After that nothing is
 * known.
 */
const TOLD_MS = 30_000;
/** If calls of this many callers fail, the calls of all are suspended. */
const CALLERS_TO_OPEN = 3;
/** Callers whose failures are counted one by one. */
const MAX_CALLERS = 10_000;

/**
 * What a call shows of the service.
 *
 * - `answered`: it answered.
 * - `failed`: it failed for this caller, with 502, 503, 504, a connection that broke before the answer was whole, or no answer in the
 *   time that it was promised.
 * - `unreachable`: no connection could be made, which holds for every caller.
 */
export type ServiceSign = 'answered' | 'failed' | 'unreachable';

/**
 * Calls of which the failures count together. What a payment has to read first shares the connections of payments, and counts apart: each
 * answer would else hide that payments fail, and its failures would suspend payments that read nothing.
 */
export type CircuitKind = CallKind | 'look-ups';

/** A call that may be made now. */
export interface Permit {
  /**
   * Called once, when the call is over.
   *
   * @param sign undefined if the call shows nothing: its callers have left, it had less than its time, no header can hold its
   * credential, or its answer could not be read.
   */
  end(sign: ServiceSign | undefined): void;
}

/**
 * Stops calls to a service that keeps failing, so that callers get their error at once. Failures for one caller suspend that
 * caller's calls alone, and only calls of the same kind: failing reads refuse no payment. A failure that holds for every
 * caller suspends all calls of that kind.
 */
export interface CircuitBreaker {
  /**
   * Returns a permit for a call; undefined if none may be made now. While half-open it permits one call at a time (`trial`).
   *
   * @param caller whose call it is: the `failureDomain` of its requester, else the group (common/party.ts).
   */
  admit(kind: CircuitKind, caller: string): Permit | undefined;
  /**
   * Returns how long until a call may be made, in milliseconds; 0 if one may be made now. While a call tries whether the service is back,
   * that is how long the next try would wait if this one failed now.
   */
  waitMs(kind: CircuitKind, caller: string): number;
  /** Resolves at the end of the call that tries whether the service is back for a caller; undefined where none is under way. */
  trial(kind: CircuitKind, caller: string): Promise<void> | undefined;
  /**
   * True if any caller's calls are suspended, or if the next call would be a try. False again half a minute after the last
   * failure.
   */
  isOpen(): boolean;
  /** True if the calls of everybody are, of one kind at least. */
  isOpenForAll(): boolean;
}

/** Told when calls begin to be suspended, and when they are made again. */
export type SuspensionWatcher = (suspension: {
  readonly kind: CircuitKind;
  /** Whose calls they are; undefined for everybody's. */
  readonly caller: string | undefined;
  readonly isSuspended: boolean;
}) => void;

/** Opens after {@link FAILURES_TO_OPEN} failures in a row, and lets one call through 2 s later. */
class Circuit {
  #failures = 0;
  #openedAt = 0;
  /** The one call that tries whether the service is back. */
  #trial: { readonly permit: Permit; readonly over: PromiseWithResolvers<void> } | undefined;

  get trial(): Promise<void> | undefined {
    return this.#trial?.over.promise;
  }

  get isOpen(): boolean {
    return this.#failures >= FAILURES_TO_OPEN;
  }

  /** True if it is open, and the last failure is recent enough to say so. */
  isTold(now: number): boolean {
    return this.isOpen && now - this.#openedAt < TOLD_MS;
  }

  admits(now: number, permit: Permit): boolean {
    if (!this.isOpen) return true;
    if (this.#trial !== undefined || now - this.#openedAt < OPEN_MS) return false;
    this.#trial = { permit, over: Promise.withResolvers() };
    return true;
  }

  waitMs(now: number): number {
    if (!this.isOpen) return 0;
    return this.#trial === undefined ? Math.max(0, this.#openedAt + OPEN_MS - now) : OPEN_MS;
  }

  /** Returns true if it opens it. */
  fail(now: number, permit: Permit): boolean {
    const wasOpen = this.isOpen;
    // A call that began before the circuit opened shows nothing new.
    if (wasOpen && this.#trial?.permit !== permit) return false;
    this.#failures += 1;
    if (this.isOpen) this.#openedAt = now;
    this.#endTrial();
    return this.isOpen && !wasOpen;
  }

  /** Returns true if it closes it. */
  succeed(): boolean {
    const wasOpen = this.isOpen;
    this.#failures = 0;
    this.#endTrial();
    return wasOpen;
  }

  release(permit: Permit): void {
    if (this.#trial?.permit === permit) this.#endTrial();
  }

  #endTrial(): void {
    this.#trial?.over.resolve();
    this.#trial = undefined;
  }
}

/** The circuits of one kind of call. */
class Circuits {
  readonly #now: () => number;
  readonly #tell: (caller: string | undefined, isSuspended: boolean) => void;
  readonly #everybody = new Circuit();
  /** The circuits of callers whose last call failed. */
  readonly #own = new Lru<Circuit>(MAX_CALLERS);
  /** Callers that have failed since the service last answered anybody. */
  readonly #failing = new Set<string>();

  constructor(now: () => number, tell: (caller: string | undefined, isSuspended: boolean) => void) {
    this.#now = now;
    this.#tell = tell;
  }

  get isOpen(): boolean {
    const now = this.#now();
    return this.isOpenForAll || this.#own.values().some((circuit) => circuit.isTold(now));
  }

  get isOpenForAll(): boolean {
    return this.#everybody.isTold(this.#now());
  }

  admit(caller: string): Permit | undefined {
    const permit: Permit = { end: (sign) => this.#end(caller, permit, sign) };
    if (!this.#everybody.admits(this.#now(), permit)) return undefined;
    const circuit = this.#own.size === 0 ? undefined : this.#own.get(caller);
    if (circuit === undefined || circuit.admits(this.#now(), permit)) return permit;
    this.#everybody.release(permit);
    return undefined;
  }

  waitMs(caller: string): number {
    const now = this.#now();
    return Math.max(this.#everybody.waitMs(now), this.#own.peek(caller)?.waitMs(now) ?? 0);
  }

  trial(caller: string): Promise<void> | undefined {
    return this.#everybody.trial ?? this.#own.peek(caller)?.trial;
  }

  #end(caller: string, permit: Permit, sign: ServiceSign | undefined): void {
    if (sign === undefined) {
      this.#everybody.release(permit);
      this.#own.get(caller)?.release(permit);
      return;
    }
    if (sign === 'answered') {
      if (this.#everybody.succeed()) this.#tell(undefined, false);
      this.#failing.clear();
      if (this.#own.size === 0) return;
      if (this.#own.peek(caller)?.succeed()) this.#tell(caller, false);
      this.#own.delete(caller);
      return;
    }
    if (this.#failing.size < CALLERS_TO_OPEN) this.#failing.add(caller);
    const isEverybodys = sign === 'unreachable' || this.#failing.size >= CALLERS_TO_OPEN;
    if (!isEverybodys) this.#everybody.release(permit);
    else if (this.#everybody.fail(this.#now(), permit)) this.#tell(undefined, true);
    if (this.#circuitOf(caller).fail(this.#now(), permit)) this.#tell(caller, true);
  }

  #circuitOf(caller: string): Circuit {
    let circuit = this.#own.get(caller);
    if (circuit === undefined) {
      circuit = new Circuit();
      this.#own.set(caller, circuit);
    }
    return circuit;
  }
}

/**
 * @param now milliseconds of a monotonic clock.
 * @param watcher is told of everybody's calls, and of each caller's apart.
 */
export function createBreaker(
  now: () => number,
  watcher: SuspensionWatcher = () => undefined,
): CircuitBreaker {
  const open = (kind: CircuitKind): Circuits =>
    new Circuits(now, (caller, isSuspended) => watcher({ kind, caller, isSuspended }));
  const circuits: Readonly<Record<CircuitKind, Circuits>> = {
    reads: open('reads'),
    money: open('money'),
    probes: open('probes'),
    'look-ups': open('look-ups'),
  };
  return {
    admit: (kind, caller) => circuits[kind].admit(caller),
    waitMs: (kind, caller) => circuits[kind].waitMs(caller),
    trial: (kind, caller) => circuits[kind].trial(caller),
    isOpen: () => Object.values(circuits).some(({ isOpen }) => isOpen),
    isOpenForAll: () => Object.values(circuits).some(({ isOpenForAll }) => isOpenForAll),
  };
}
