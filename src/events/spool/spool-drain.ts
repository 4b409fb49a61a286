import { clock } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import { OtherHistoryError, StoreUnavailableError, UnreplicatedError } from '../errors.ts';
import type { Appended, NewEvent } from '../log.ts';
import type { EventMetrics } from '../metrics.ts';
import type { Quarantine } from '../quarantine.ts';
import type { RemoteLog } from './remote-log.ts';
import type { Spool, Spooled } from './spool.ts';

/**
 * So many clients may fail in a pass. A client whose events the log does not take may cost the whole time of a write: once the log has
 * refused so many clients, the turn ends, and the next one has those alone whose events the log took. A client whose events replicas lack
 * fails too: once so many have failed, for either reason, the first turn only publishes the events of the clients that are left.
 */
const MOST_FAILED = 8;
/**
 * How many steps of one client's events a pass makes at most. There is a bound because a queue may never end, and because clients that
 * failed in the pass, or came since, wait for its end. It is high because each pass waits for refusals once.
 */
const MOST_STEPS = 128;

/** Events of a spool cannot be read; the cause says why. */
class DamagedSpoolError extends Error {
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
  /** Called at once when a spool turns out to be damaged: no more may be added to it. */
  damaged(): void;
}

/** Moves the events of a spool into the log, each client's in order. What it moves stays in the spool until the log keeps it. */
export class SpoolDrain {
  readonly #options: SpoolDrainOptions;
  /** By spool: the client whose events failed last in the first turn of a pass. The next pass begins with the client after it. */
  readonly #failedLast = new WeakMap<Spool, string>();
  #moved = 0;
  #longestMs = 0;

  constructor(options: SpoolDrainOptions) {
    this.#options = options;
  }

  /**
   * Makes one pass, in turns: each moves one step of every client, so that no client waits for the whole queue of another. If one
   * client's events fail, because a node of a Cluster is away, those of other clients go on. What the log takes and its replicas do not
   * get, it is sent as well, so that followers are told.
   *
   * Resolves with true if nothing failed that could be read. Then events may wait that came meanwhile, or that are more than
   * `MOST_STEPS` steps.
   */
  async pass(spool: Spool): Promise<boolean> {
    let failed = 0;
    let refused = 0;
    /** Clients whose events stay in the spool for now: they are only published. */
    const staying = new Set<string>();
    let turn = this.#inTurn(spool);
    for (let steps = 0; steps < MOST_STEPS && turn.length > 0; steps += 1) {
      const next: string[] = [];
      for (const clientId of turn) {
        if (this.#options.stopping.aborted) return false;
        if (steps === 0 && failed >= MOST_FAILED) staying.add(clientId);
        try {
          const isStaying = staying.has(clientId);
          const goesOn = await (isStaying ? this.#publish(spool, clientId) : this.#drain(spool, clientId));
          if (goesOn) next.push(clientId);
        } catch (error) {
          if (error instanceof DamagedSpoolError) {
            spool.giveUp(clientId, error.cause);
            this.#options.damaged();
            continue;
          }
          // Later turns have only clients that came before those which this one did not reach.
          if (steps === 0) this.#failedLast.set(spool, clientId);
          this.#tellFailed(spool, error);
          failed += 1;
          if (error instanceof UnreplicatedError) {
            staying.add(clientId);
            next.push(clientId);
          } else refused += 1;
          if (refused >= MOST_FAILED) break;
        }
      }
      turn = next;
    }
    return failed === 0;
  }

  /**
   * Says how many events the log keeps since the last call, and the longest time from the receipt of one until the log kept it. Says nothing
   * where that is under half a second.
   */
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

  #tellFailed(spool: Spool, error: unknown): void {
    if (error instanceof StoreUnavailableError) return;
    this.#options.logger.error({ spool: spool.name, error: String(error) }, 'the spool could not be drained');
  }

  /** Moves one step. Resolves with whether more waits. Throws what the log throws, and `DamagedSpoolError`. */
  async #drain(spool: Spool, clientId: string): Promise<boolean> {
    const batch = read(() => spool.first(clientId));
    if (batch.length === 0) return false;
    const results = await this.#append(spool, clientId, batch);
    for (const [index, { event }] of batch.entries()) this.#noteDrained(clientId, event, results[index]);
    await spool.release(clientId, batch).catch((error: unknown) => {
      if (spool.damage !== undefined) this.#options.damaged();
      else this.#options.logger.warn({ error: String(error) }, 'the spool cannot be shortened');
    });
    this.#options.released();
    return spool.has(clientId);
  }

  /**
   * Has the log take a step that it has not taken yet, so that its followers are told at once. All of it stays in the spool: a later
   * pass releases it, once the log keeps it. Where the log turns out to have another history, it is sent the queue from its head.
   * Resolves with whether more may have to be published.
   */
  async #publish(spool: Spool, clientId: string): Promise<boolean> {
    const batch = read(() => spool.unpublished(clientId));
    if (batch.length === 0) return false;
    try {
      await this.#append(spool, clientId, batch, spool.history(clientId));
      return false;
    } catch (error) {
      if (error instanceof UnreplicatedError || error instanceof OtherHistoryError) return true;
      throw error;
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
