import { clock, type Timer } from '../../common/clock.ts';
import { Party, type Waiter } from '../../common/party.ts';
import type { Leaver } from '../../common/waiters.ts';
import { left, UpstreamError } from './errors.ts';

/** Work that another caller has begun, and that others may wait for. */
export type Joinable<T> = Pick<SharedWork<T>, 'wait' | 'isGone'>;

/** A waiter for something of the REST service. */
export interface Asker extends Waiter {
  /** Says when the waiter leaves, which ends its waiting; undefined if that is not known. */
  readonly leaver: Leaver | undefined;
}

/**
 * Work that several callers wait for. It goes on until the last of them leaves or has no time left, and is as urgent as the most
 * urgent of them. A caller that leaves does not end it for the others.
 */
export class SharedWork<T> {
  readonly #party = new Party();
  readonly #result: PromiseWithResolvers<T> = Promise.withResolvers();
  /**
   * Sets the timer of the only waiter. It is needed only once another joins: until then the work itself ends with its time.
   */
  #setTimer: (() => void) | undefined;
  readonly #endsInTime: boolean;

  /** @param endsInTime false for work that waits for what knows no time of its waiters: the only one sets its timer, too. */
  constructor(endsInTime = true) {
    this.#endsInTime = endsInTime;
    // Each waiter learns of a failure by itself. There may be none left, and then the failure must not count as unhandled.
    this.#result.promise.catch(() => undefined);
  }

  get result(): Promise<T> {
    return this.#result.promise;
  }

  /** True if nobody waits for it any more. It has ended then, or is about to. */
  get isGone(): boolean {
    return this.#party.isGone;
  }

  /** Begins the work; called once, after the first has joined. */
  begin(work: (party: Party) => Promise<T>): void {
    work(this.#party).then(this.#result.resolve, this.#result.reject);
  }

  /** Keeps it going although nobody waits, until the waiter's deadline. */
  keep(waiter: Waiter): void {
    const kept = this.#party.join(waiter);
    const leave = (): void => this.#party.leave(kept);
    this.result.then(leave, leave);
  }

  /**
   * Waits for the result.
   *
   * @param message of the error when the asker's time is over first.
   * @throws UpstreamError `UPSTREAM_TIMEOUT` then; `UPSTREAM_UNAVAILABLE` when the asker leaves.
   */
  wait({ leaver, ...waiter }: Asker, message: string): Promise<T> {
    return new Promise((resolve, reject) => {
      if (leaver?.isGone === true) {
        reject(left());
        return;
      }
      let timer: Timer | undefined;
      let isThere = true;
      const own = this.#party.join(waiter);
      const leave = (): void => {
        isThere = false;
        clock.clearTimeout(timer);
        unwatch?.();
        this.#party.leave(own);
      };
      const abort = (): void => {
        leave();
        reject(left());
      };
      const expire = (): void => {
        leave();
        reject(new UpstreamError('UPSTREAM_TIMEOUT', message, { dispatched: false }));
      };
      const setTimer = (): void => {
        if (isThere) timer = clock.setTimeout(expire, waiter.deadline - clock.now());
      };
      const unwatch = leaver?.whenGone(abort);
      if (this.#endsInTime && this.#party.waiters.size === 1) this.#setTimer = setTimer;
      else {
        setTimer();
        this.#setTimer?.();
        this.#setTimer = undefined;
      }
      this.result.then(
        (value) => {
          leave();
          resolve(value);
        },
        (error: unknown) => {
          leave();
          reject(error);
        },
      );
    });
  }
}

/** Makes calls for one asker, which may leave. */
export async function withParty<T>(
  { leaver, ...waiter }: Asker,
  calls: (party: Party) => Promise<T>,
): Promise<T> {
  const party = new Party();
  if (leaver?.isGone === true) return calls(party);
  const own = party.join(waiter);
  const unwatch = leaver?.whenGone(() => party.leave(own));
  try {
    return await calls(party);
  } finally {
    unwatch?.();
  }
}
