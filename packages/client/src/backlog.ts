import { MISSED, type MissedVariables } from './documents.ts';
import { Pause } from './pause.ts';
import { ask, type CatchingOptions } from './source.ts';

/** The filters of `Query.events` that select the same events as a subscription: all that `moneyIn` and `events` have. */
export type Asked = Omit<MissedVariables, 'after'>;

/** Counts how far a feed is behind the log, from the start of a connection until the feed has caught up. */
export class Backlog {
  readonly #options: CatchingOptions;
  readonly #asked: Asked;
  readonly #pause = new Pause();
  /** Cursors of events that were missed and have not arrived yet. */
  readonly #awaited = new Set<string>();
  /** Cursors of events that have arrived while the missed ones are being asked for. */
  #arrived: Set<string> | undefined;
  /** True if more events were missed than the last page showed. */
  #more = false;
  /** Where the last page ended, if it showed no event and none has arrived since. */
  #end: string | null | undefined;
  #over = false;

  constructor(options: CatchingOptions, asked: Asked) {
    this.#options = options;
    this.#asked = asked;
    void this.#measure();
  }

  arrive(cursor: string): void {
    this.#end = null;
    this.#arrived?.add(cursor);
    if (this.#awaited.delete(cursor)) this.#reportProgress();
  }

  /** Ends the counting, because the connection is gone. The next one counts for itself. */
  close(): void {
    this.#over = true;
    this.#pause.wake();
  }

  async #measure(): Promise<void> {
    while (!this.#over) {
      const arrived = new Set<string>();
      this.#arrived = arrived;
      const missed = await this.#missed().catch(() => null);
      if (missed === null) {
        if (!this.#over) await this.#pause.next();
        continue;
      }
      for (const { cursor } of missed.nodes) if (!arrived.has(cursor)) this.#awaited.add(cursor);
      this.#more = missed.pageInfo.hasNextPage;
      // Of a filter that seldom matches, a page may end before it has found anything.
      if (!(missed.nodes.length + arrived.size)) this.#end = missed.pageInfo.endCursor;
      this.#arrived = undefined;
      this.#reportProgress();
      return;
    }
  }

  /** Reads a page of the events that have arrived in the log after the last one received. */
  async #missed() {
    const { source, cursor } = this.#options;
    return (await ask(source, MISSED, { after: this.#end ?? cursor(), ...this.#asked })).events;
  }

  #reportProgress(): void {
    if (this.#over || this.#arrived !== undefined) return;
    if (this.#awaited.size > 0) {
      this.#options.onMissing(this.#awaited.size);
    } else if (this.#more) {
      // The next page is asked for once this one has been received.
      void this.#measure();
    } else {
      this.#over = true;
      this.#options.onCaughtUp();
    }
  }
}
