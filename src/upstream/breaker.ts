/** Consecutive failures that open the circuit. */
const FAILURES_TO_OPEN = 20;
/** Milliseconds that it stays open before one call may try. */
const OPEN_MS = 2_000;

/** Keeps calls from an origin that keeps failing, so that callers get their error at once. */
export interface CircuitBreaker {
  /** Whether a call may be made now. While half-open it admits one call at a time; each admitted call must be recorded. */
  admits(): boolean;
  /** The outcome of an admitted call: false for no answer, 502, 503 and 504. */
  record(ok: boolean): void;
  /** An admitted call ended by its caller says nothing about the origin. */
  release(): void;
  isOpen(): boolean;
}

/**
 * A breaker that opens after 20 failures in a row and lets one call through 2 s later.
 *
 * @param now milliseconds of a monotonic clock.
 */
export function createBreaker(now: () => number): CircuitBreaker {
  let failures = 0;
  let openedAt = 0;
  let probing = false;
  return {
    admits() {
      if (failures < FAILURES_TO_OPEN) return true;
      if (probing || now() - openedAt < OPEN_MS) return false;
      probing = true;
      return true;
    },
    record(ok) {
      probing = false;
      failures = ok ? 0 : failures + 1;
      if (failures >= FAILURES_TO_OPEN) openedAt = now();
    },
    release() {
      probing = false;
    },
    isOpen: () => failures >= FAILURES_TO_OPEN,
  };
}
