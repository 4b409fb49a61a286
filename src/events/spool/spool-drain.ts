import { clock } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import { OtherHistoryError, StoreUnavailableError, UnreplicatedError } from '../errors.ts';
import type { Appended, NewEvent } from '../log.ts';
import type { EventMetrics } from '../metrics.ts';
import type { Quarantine } from '../quarantine.ts';
import type { RemoteLog } from './remote-log.ts';
import type { Spool, Spooled } from './spool.ts';

/**
 * After so many clients whose events the log refused, a pass ends: each of them may cost the whole time of a write. After so many whose
 * events it did not keep, a pass sends those that it has taken no second time.
 */
const MOST_FAILED = 8;
/** How many steps of one client's events a pass publishes at most, so that those of the others come next: each may cost the time of a write. */
const MOST_STEPS = 16;

/** The file of a spool cannot be read; the cause says why. */
export class DamagedSpoolError extends Error {
  override readonly name = 'DamagedSpoolError';
}

export interface SpoolDrainOptions {
  readonly log: RemoteLog;
  readonly quarantine: Quarantine;
  readonly logger: Logger;
  readonly metrics: EventMetrics;
  /** Aborted once the log is being stopped: a pass then begins nothing more. */
  readonly stopping: AbortSignal;
  /** Called when events have left a spool. */
  released(): void;
}

/** Moves the events of a spool into the log, each client's in order. What it moves stays in the spool until the log keeps it. */
export class SpoolDrain {
  readonly #options: SpoolDrainOptions;
  /** By spool: the client whose events the log refused last. The next pass begins with the client after it. */
  readonly #failedLast = new WeakMap<Spool, string>();
  #moved = 0;
  #longestMs = 0;

  constructor(options: SpoolDrainOptions) {
    this.#options = options;
  }

  /**
   * Makes one pass. If one client's events fail, because a node of a Cluster is away, those of other clients go on. Where the log
   * takes events that its replicas do not get, a pass has it take those of every client, up to `MOST_STEPS` steps of each.
   *
   * Resolves with true if every event of the spool went into the log.
   *
   * @throws {DamagedSpoolError}
   */
  async pass(spool: Spool): Promise<boolean> {
    let failed = 0;
    let refused = 0;
    for (const clientId of this.#inTurn(spool)) {
      if (this.#options.stopping.aborted) return false;
      try {
        await (failed < MOST_FAILED ? this.#drain(spool, clientId) : this.#publish(spool, clientId));
      } catch (error) {
        if (error instanceof DamagedSpoolError) throw error;
        this.#noteFailed(spool, clientId, error);
        failed += 1;
        if (!(error instanceof UnreplicatedError)) refused += 1;
        if (refused === MOST_FAILED) break;
      }
    }
    return failed === 0;
  }

  /** Says how many events the log keeps since the last call, and how long one of them waited for that. A short wait is not said. */
  tell(): void {
    const [events, seconds] = [this.#moved, Math.round(this.#longestMs / 1000)];
    this.#moved = 0;
    this.#longestMs = 0;
    if (seconds > 0) this.#options.logger.info({ events, seconds }, 'what waited in the spool is in the log');
  }

  /** Returns the clients of a spool, beginning after the one that failed last. */
  #inTurn(spool: Spool): readonly string[] {
    const clients = [...spool.clients];
    const next = clients.indexOf(this.#failedLast.get(spool) ?? '') + 1;
    return [...clients.slice(next), ...clients.slice(0, next)];
  }

  #noteFailed(spool: Spool, clientId: string, error: unknown): void {
    this.#failedLast.set(spool, clientId);
    if (error instanceof StoreUnavailableError) return;
    this.#options.logger.error({ spool: spool.name, error: String(error) }, 'the spool could not be drained');
  }

  /** Throws what the log throws, and `DamagedSpoolError`. */
  async #drain(spool: Spool, clientId: string): Promise<void> {
    for (;;) {
      const batch = read(() => spool.first(clientId));
      if (batch.length === 0) return;
      const results = await this.#append(spool, clientId, batch).catch(async (error: unknown) => {
        if (error instanceof UnreplicatedError) await this.#publish(spool, clientId);
        throw error;
      });
      for (const [index, { event }] of batch.entries()) this.#noteDrained(clientId, event, results[index]);
      await spool.release(clientId, batch).catch((error: unknown) => {
        this.#options.logger.warn({ error: String(error) }, 'the spool cannot be shortened');
      });
      this.#options.released();
    }
  }

  /**
   * Has the log take what it has not taken yet, so that its followers are told at once. All of it stays in the spool: a later pass
   * releases it, once the log keeps it. Where the log turns out to have another history, it is sent the queue from its head.
   */
  async #publish(spool: Spool, clientId: string): Promise<void> {
    const { stopping } = this.#options;
    for (let steps = 0; steps < MOST_STEPS && !stopping.aborted; steps += 1) {
      const batch = read(() => spool.unpublished(clientId));
      if (batch.length === 0) return;
      try {
        await this.#append(spool, clientId, batch, spool.history(clientId));
        return;
      } catch (error) {
        if (!(error instanceof UnreplicatedError || error instanceof OtherHistoryError)) throw error;
      }
    }
  }

  async #append(
    spool: Spool,
    clientId: string,
    batch: readonly Spooled[],
    history?: string,
  ): Promise<readonly Appended[]> {
    const events = batch.map(({ event }) => event);
    try {
      return await this.#options.log.appendAll(clientId, events, history);
    } catch (error) {
      // After any other failure the history that has been noted still has what came before.
      if (error instanceof UnreplicatedError) spool.published(clientId, batch, error.history);
      else if (error instanceof OtherHistoryError) spool.published(clientId, batch, undefined);
      throw error;
    }
  }

  #noteDrained(clientId: string, event: NewEvent, result: Appended | undefined): void {
    const { type, receivedAt, payload } = event;
    const { metrics, quarantine } = this.#options;
    metrics.drained(type);
    if (result?.duplicate === true && result.resent !== true) metrics.duplicate(type, result.conflict);
    else metrics.appended(type);
    this.#moved += 1;
    this.#longestMs = Math.max(this.#longestMs, clock.now() - Date.parse(receivedAt));
    // The provider got 201 for what waited here, so that a first answer of 422 contradicts it.
    if (type === 'MONEY_IN' && (result?.conflict === true || result?.answer.status === 422)) {
      quarantine.put({ receivedAt, clientId, type, reason: 'conflict', body: Buffer.from(payload) });
    }
  }
}

function read(events: () => readonly Spooled[]): readonly Spooled[] {
  try {
    return events();
  } catch (cause) {
    throw new DamagedSpoolError('The spool cannot be read.', { cause });
  }
}
