import { Lru } from '../../common/lru.ts';
import type { CallKind } from './exchange.ts';

/** Consecutive failures that open a circuit. */
const FAILURES_TO_OPEN = 20;
/** Milliseconds that it stays open before one call may try. */
const OPEN_MS = 2_000;
/** How long it is told of after the last failure where nobody has called since, in milliseconds. Then nothing is known. */
const TOLD_MS = 30_000;
/** Failures of this many callers suspend the calls of everybody. */
const CALLERS_TO_OPEN = 3;
/** Callers whose failures are counted one by one. */
const MAX_CALLERS = 10_000;

/**
 * What a call says of the service: it answered; it failed for this caller (502, 503, 504, or no answer in the time that it was
 * promised); or it could not be reached, which is so for everybody.
 */
export type ServiceSign = 'answered' | 'failed' | 'unreachable';

/** A call that may be made now. */
interface Permit {
  /**
   * Called once, when it is over.
   *
   * @param sign undefined where it says nothing: its callers have left, it had less than its time, or its answer could not be
   * read.
   */
  end(sign: ServiceSign | undefined): void;
}

/**
 * Keeps calls from a service that keeps failing, so that callers get their error at once. What fails for one caller suspends that
 * caller's calls alone, and only calls of that kind: reads that fail refuse no payment. What is so for everybody suspends the calls
 * of that kind of all.
 */
export interface CircuitBreaker {
  /**
   * Whether a call may be made now; undefined where not. While half-open one call at a time may.
   *
   * @param caller whose call it is: all that stand for one client are one caller.
   */
  admit(kind: CallKind, caller: string): Permit | undefined;
  /** Whether anybody's calls are suspended, or the next one would be a try; no longer so half a minute after the last failure. */
  isOpen(): boolean;
}

/** Opens after so many failures in a row, and lets one call through 2 s later. */
class Circuit {
  #failures = 0;
  #openedAt = 0;
  /** The one call that tries whether the service is back. */
  #probe: Permit | undefined;

  get isOpen(): boolean {
    return this.#failures >= FAILURES_TO_OPEN;
  }

  /** Whether it is open, as far as that is still known. */
  isTold(now: number): boolean {
    return this.isOpen && now - this.#openedAt < TOLD_MS;
  }

  admits(now: number, permit: Permit): boolean {
    if (!this.isOpen) return true;
    if (this.#probe !== undefined || now - this.#openedAt < OPEN_MS) return false;
    this.#probe = permit;
    return true;
  }

  fail(now: number, permit: Permit): void {
    // A call that began before it opened says nothing new.
    if (this.isOpen && this.#probe !== permit) return;
    this.#probe = undefined;
    this.#failures += 1;
    if (this.isOpen) this.#openedAt = now;
  }

  succeed(): void {
    this.#probe = undefined;
    this.#failures = 0;
  }

  release(permit: Permit): void {
    if (this.#probe === permit) this.#probe = undefined;
  }
}

/** The circuits of one kind of call. */
class Circuits {
  readonly #now: () => number;
  readonly #everybody = new Circuit();
  /** Of callers whose last call failed. */
  readonly #own = new Lru<Circuit>(MAX_CALLERS);
  /** Callers that have failed since the service last answered anybody. */
  readonly #failing = new Set<string>();

  constructor(now: () => number) {
    this.#now = now;
  }

  get isOpen(): boolean {
    const now = this.#now();
    return this.#everybody.isTold(now) || this.#own.values().some((circuit) => circuit.isTold(now));
  }

  admit(caller: string): Permit | undefined {
    const permit: Permit = { end: (sign) => this.#end(caller, permit, sign) };
    if (!this.#everybody.admits(this.#now(), permit)) return undefined;
    const circuit = this.#own.size === 0 ? undefined : this.#own.get(caller);
    if (circuit === undefined || circuit.admits(this.#now(), permit)) return permit;
    this.#everybody.release(permit);
    return undefined;
  }

  #end(caller: string, permit: Permit, sign: ServiceSign | undefined): void {
    if (sign === undefined) {
      this.#everybody.release(permit);
      this.#own.get(caller)?.release(permit);
      return;
    }
    if (sign === 'answered') {
      this.#everybody.succeed();
      this.#failing.clear();
      if (this.#own.size > 0) this.#own.delete(caller);
      return;
    }
    if (this.#failing.size < CALLERS_TO_OPEN) this.#failing.add(caller);
    const isEverybodys = sign === 'unreachable' || this.#failing.size >= CALLERS_TO_OPEN;
    if (isEverybodys) this.#everybody.fail(this.#now(), permit);
    else this.#everybody.release(permit);
    this.#circuitOf(caller).fail(this.#now(), permit);
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

/** @param now milliseconds of a monotonic clock. */
export function createBreaker(now: () => number): CircuitBreaker {
  const circuits: Readonly<Record<CallKind, Circuits>> = {
    reads: new Circuits(now),
    money: new Circuits(now),
    probes: new Circuits(now),
  };
  return {
    admit: (kind, caller) => circuits[kind].admit(caller),
    isOpen: () => Object.values(circuits).some(({ isOpen }) => isOpen),
  };
}
