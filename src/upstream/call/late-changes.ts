/**
 * For how long after a change the service may still tell what was before it, in milliseconds. It may make a credit available only once its
 * webhook is answered, which comes after the event was published, and its reads may lag behind: a followed transaction is read again
 * after 1 and 3 s (upstream/session/polls.ts). Source: docs/assumptions.md, "order of reads".
 */
const MAY_LAG_MS = 5_000;

/** The callers that have changed something, or have heard of a change, a short while ago. */
export class LateChanges {
  /** By caller: when that was last, the earliest first. */
  readonly #changedAt = new Map<string, number>();

  /** @param now milliseconds of a monotonic clock. */
  note(caller: string, now: number): void {
    for (const [other, at] of this.#changedAt) {
      if (now - at <= MAY_LAG_MS) break;
      this.#changedAt.delete(other);
    }
    this.#changedAt.delete(caller);
    this.#changedAt.set(caller, now);
  }

  /**
   * True if a read that begins now may not show the caller's latest change. It has to be asked as the read begins: what is noted
   * later, of another caller, drops the changes that are older than that.
   */
  mayMiss(caller: string, now: number): boolean {
    const at = this.#changedAt.get(caller);
    return at !== undefined && now - at <= MAY_LAG_MS;
  }
}
