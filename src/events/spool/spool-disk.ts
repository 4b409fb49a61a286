import { clock } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import { rootReason } from '../../common/root-reason.ts';
import type { EventMetrics } from '../metrics.ts';
import type { Spool } from './spool.ts';

/** While the log takes everything, nobody needs the spool: so often is its disk written to all the same, in milliseconds. */
const LOOK_EVERY_MS = 60_000;

/** What is known of the disk that a process keeps its spool on: a full one, or one that nobody may write to, is told of before the log is away. */
export class SpoolDisk {
  readonly #logger: Logger;
  readonly #metrics: EventMetrics;
  #reason: string | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor({ logger, metrics }: { readonly logger: Logger; readonly metrics: EventMetrics }) {
    this.#logger = logger;
    this.#metrics = metrics;
  }

  /** Why the spool takes no event, as a sentence for the operator; undefined where it took one at the last look. */
  get problem(): string | undefined {
    return this.#reason === undefined ? undefined : `The spool in DATA_DIR takes no event: ${this.#reason}.`;
  }

  /** Whether another look is due though nobody needs the spool: the last one is long ago, or found a problem. */
  get isDue(): boolean {
    return this.#reason !== undefined || clock.monotonic() - this.#lookedAt >= LOOK_EVERY_MS;
  }

  /**
   * Finds out whether an event of any size could be kept now, by writing as much. Where the spool turns out to be damaged that says
   * nothing of its disk, and nothing is noted.
   *
   * @param stopping aborts before the spool is closed: nothing is noted of a look that this has ended
   */
  async look(spool: Spool, stopping: AbortSignal): Promise<void> {
    this.#lookedAt = clock.monotonic();
    const problem = await spool.probe().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!stopping.aborted && spool.damage === undefined) this.note(problem);
  }

  /** Notes why the spool cannot be opened or written, or undefined where it can. When that changes the log has a line, and the metric follows. */
  note(error: unknown): void {
    const reason = error === undefined ? undefined : rootReason(error);
    if (reason === this.#reason) return;
    this.#reason = reason;
    this.#metrics.spoolUnwritable(reason !== undefined);
    if (reason === undefined) this.#logger.info({}, 'the spool takes events again');
    else this.#logger.error({ error: reason }, 'the spool takes no event');
  }
}
