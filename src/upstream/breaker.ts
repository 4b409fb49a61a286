import { LRUCache } from 'lru-cache';

/** Consecutive failures that open a circuit. */
const FAILURES_TO_OPEN = 20;
/** Milliseconds that it stays open before one call may try. */
const OPEN_MS = 2_000;
/** Failures say something of the service for everybody once they are those of as many callers. */
const CALLERS_TO_OPEN = 3;
/** Callers whose failures are remembered. */
const MAX_CALLERS = 10_000;

/**
 * What a call says of the service: it answered; it failed for this caller (502, 503, 504, or no answer in time); or it
 * could not be reached, which is so for everybody.
 */
export type CallOutcome = 'answered' | 'failed' | 'unreachable';

/**
 * Keeps calls from a service that keeps failing, so that callers get their error at once. What fails for one caller
 * suspends that caller's calls alone; only what is so for everybody suspends those of all.
 */
export interface CircuitBreaker {
  /**
   * Whether a call may be made now. While half-open it admits one call at a time; each admitted call must be recorded.
   *
   * @param caller whom the service takes the call to come from.
   */
  admits(caller: string): boolean;
  /** The outcome of an admitted call. */
  record(caller: string, outcome: CallOutcome): void;
  /** An admitted call that was ended by its caller, or whose answer could not be read, says nothing. */
  release(caller: string): void;
  /** Whether anybody's calls are suspended. */
  isOpen(): boolean;
}

/** Opens after so many failures in a row, and lets one call through 2 s later. */
class Circuit {
  #failures = 0;
  #openedAt = 0;
  #probing = false;

  get isOpen(): boolean {
    return this.#failures >= FAILURES_TO_OPEN;
  }

  admits(now: number): boolean {
    if (!this.isOpen) return true;
    if (this.#probing || now - this.#openedAt < OPEN_MS) return false;
    this.#probing = true;
    return true;
  }

  fail(now: number): void {
    this.#probing = false;
    this.#failures += 1;
    if (this.isOpen) this.#openedAt = now;
  }

  succeed(): void {
    this.#probing = false;
    this.#failures = 0;
  }

  release(): void {
    this.#probing = false;
  }
}

/** @param now milliseconds of a monotonic clock. */
export function createBreaker(now: () => number): CircuitBreaker {
  const everybody = new Circuit();
  /** Of callers whose last call failed. */
  const own = new LRUCache<string, Circuit>({ max: MAX_CALLERS });
  /** Callers that have failed since the service last answered anybody. */
  const failing = new Set<string>();

  const circuitOf = (caller: string): Circuit => {
    let circuit = own.get(caller);
    if (circuit === undefined) {
      circuit = new Circuit();
      own.set(caller, circuit);
    }
    return circuit;
  };

  return {
    admits(caller) {
      if (!everybody.admits(now())) return false;
      const circuit = own.size === 0 ? undefined : own.get(caller);
      if (circuit === undefined || circuit.admits(now())) return true;
      everybody.release();
      return false;
    },
    record(caller, outcome) {
      if (outcome === 'answered') {
        everybody.succeed();
        failing.clear();
        if (own.size > 0) own.delete(caller);
        return;
      }
      if (failing.size < CALLERS_TO_OPEN) failing.add(caller);
      if (outcome === 'unreachable' || failing.size >= CALLERS_TO_OPEN) everybody.fail(now());
      circuitOf(caller).fail(now());
    },
    release(caller) {
      everybody.release();
      own.get(caller)?.release();
    },
    isOpen: () => everybody.isOpen || own.values().some((circuit) => circuit.isOpen),
  };
}
