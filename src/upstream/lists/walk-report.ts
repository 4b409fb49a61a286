import type { Logger } from '../../common/logger.ts';
import { UpstreamError } from '../call/errors.ts';

/** How often the process logs how far a walk is, in milliseconds. One that ends earlier is told at `debug` alone. */
const PROGRESS_MS = 5_000;

/**
 * Told of each walk through a list as it ends.
 *
 * @param outcome `error` if the walk made no index.
 * @param milliseconds since it began.
 */
export type WalkObserver = (route: string, outcome: 'ok' | 'error', milliseconds: number) => void;

export interface WalkReportOptions {
  readonly route: string;
  /** Whose list it is. */
  readonly clientId: string;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly logger: Logger;
  /** Undefined where nobody counts walks. */
  readonly onWalked: WalkObserver | undefined;
}

/** Tells the operator of one walk through a list, which begins as this is made. */
export class WalkReport {
  readonly #options: WalkReportOptions;
  readonly #start: number;
  #loggedAt: number;

  constructor(options: WalkReportOptions) {
    this.#options = options;
    this.#start = options.now();
    this.#loggedAt = this.#start;
  }

  /** Items have been read: `seen` of `total`. */
  progress(seen: number, total: number): void {
    const { now, logger, route, clientId } = this.#options;
    if (now() - this.#loggedAt < PROGRESS_MS) return;
    this.#loggedAt = now();
    logger.info({ route, clientId, seen, total }, 'A list is being read');
  }

  /** The walk has made an index of so many items. */
  read(items: number): void {
    const { logger, route, clientId } = this.#options;
    const milliseconds = this.#ended('ok');
    const level = milliseconds < PROGRESS_MS ? 'debug' : 'info';
    logger[level]({ route, clientId, items, milliseconds }, 'A list has been read');
  }

  /** The walk has ended without an index. */
  failed(error: unknown): void {
    const { logger, route, clientId } = this.#options;
    const { code, status } = error instanceof UpstreamError ? error : {};
    logger.debug(
      { route, clientId, milliseconds: this.#ended('error'), code, status },
      'A list could not be read to its end',
    );
  }

  #ended(outcome: 'ok' | 'error'): number {
    const { now, route, onWalked } = this.#options;
    const milliseconds = Math.round(now() - this.#start);
    onWalked?.(route, outcome, milliseconds);
    return milliseconds;
  }
}
