import type { Message } from './deliveries.ts';
import { preconditionFailed } from './errors.ts';

/** How a pending thing ends. */
export type Outcome = 'done' | 'failed';

/** Has a webhook message sent. */
export type Tell = (message: Message) => void;

/** What an end does; `failed` is missing where the service knows no failure. */
export interface Ends {
  done(tell: Tell): Promise<void> | void;
  failed?(tell: Tell): Promise<void> | void;
}

type End = (outcome: Outcome, tell?: Tell) => Promise<void> | void;

/** What the clock or a webhook's answer will end, by the id of the transaction or customer. */
export class Pending {
  readonly #ends = new Map<string, Set<{ ends: Ends; end: End }>>();
  readonly #tell: Tell;

  /** @param tell sends what an end tells, where who ends it gives no other way. */
  constructor(tell: Tell) {
    this.#tell = tell;
  }

  /** Returns what ends the thing. The first end counts; later ones do nothing. */
  add(id: string, ends: Ends): End {
    const all = this.#ends.get(id) ?? new Set();
    const entry = {
      ends,
      end: (outcome: Outcome, tell = this.#tell) => {
        if (!all.delete(entry)) return;
        if (all.size === 0) this.#ends.delete(id);
        return ends[outcome]?.(tell);
      },
    };
    all.add(entry);
    this.#ends.set(id, all);
    return entry.end;
  }

  /**
   * Ends at once all that is pending of an id, in the order in which it began.
   *
   * @param tell sends what the ends tell.
   * @returns false where nothing is pending.
   * @throws ApiError FAILED_PRECONDITION where a part of it cannot fail.
   */
  async complete(id: string, outcome: Outcome, tell: Tell): Promise<boolean> {
    const all = [...(this.#ends.get(id) ?? [])];
    if (all.some(({ ends }) => ends[outcome] === undefined)) throw preconditionFailed('It cannot fail.');
    for (const { end } of all) await end(outcome, tell);
    return all.length > 0;
  }
}
