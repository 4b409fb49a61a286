import type { Missed } from './documents.ts';
import { Pause } from './pause.ts';

export interface BacklogOptions {
  /** A page of what has arrived in the log after the last event received. */
  missedAfter(): Promise<Missed['events']>;
  /** Called with how many events are known to be still on their way. */
  onMissing(missing: number): void;
  onCaughtUp(): void;
}

/** How far a feed is behind the log, from the start of a connection until it has caught up. */
export class Backlog {
  readonly #options: BacklogOptions;
  readonly #pause = new Pause();
  /** Cursors of events that were missed and have not arrived yet. */
  readonly #awaited = new Set<string>();
  /** Those that have arrived while the missed ones are asked for. */
  #arrived: Set<string> | undefined;
  /** Whether more were missed than the last page told of. */
  #more = false;
  #over = false;

  constructor(options: BacklogOptions) {
    this.#options = options;
    void this.#measure();
  }

  arrive(cursor: string): void {
    this.#arrived?.add(cursor);
    if (this.#awaited.delete(cursor)) this.#settle();
  }

  /** The connection is gone: the next one measures for itself. */
  close(): void {
    this.#over = true;
    this.#pause.wake();
  }

  async #measure(): Promise<void> {
    while (!this.#over) {
      const arrived = new Set<string>();
      this.#arrived = arrived;
      const missed = await this.#options.missedAfter().catch(() => null);
      if (missed === null) {
        if (!this.#over) await this.#pause.next();
        continue;
      }
      for (const { cursor } of missed.nodes) if (!arrived.has(cursor)) this.#awaited.add(cursor);
      this.#more = missed.pageInfo.hasNextPage;
      this.#arrived = undefined;
      this.#settle();
      return;
    }
  }

  #settle(): void {
    if (this.#over || this.#arrived !== undefined) return;
    if (this.#awaited.size > 0) {
      this.#options.onMissing(this.#awaited.size);
    } else if (this.#more) {
      // What lies beyond a page is asked for once the page is here.
      void this.#measure();
    } else {
      this.#over = true;
      this.#options.onCaughtUp();
    }
  }
}
