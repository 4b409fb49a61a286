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
  /** Whether `done` may come now. While it may not, it does nothing, and the thing stays pending. */
  canBeDone?(): boolean;
  /** Brings back the money of a transfer that had arrived. */
  isReturn?: true;
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
        if (outcome === 'done' && ends.canBeDone?.() === false) return;
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
   * @param isMeant picks the parts that are to end; default all.
   * @returns false where nothing is pending.
   * @throws ApiError FAILED_PRECONDITION where no part of it can fail. A part that cannot is left where another can.
   */
  async complete(
    id: string,
    outcome: Outcome,
    tell: Tell,
    isMeant: (ends: Ends) => boolean = () => true,
  ): Promise<boolean> {
    const all = [...(this.#ends.get(id) ?? [])].filter(({ ends }) => isMeant(ends));
    const able = all.filter(({ ends }) => ends[outcome] !== undefined);
    if (all.length > 0 && able.length === 0) throw preconditionFailed('It cannot fail.');
    for (const { end } of able) await end(outcome, tell);
    return all.length > 0;
  }
}
