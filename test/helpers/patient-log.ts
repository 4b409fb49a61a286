import { StoreUnavailableError } from '../../src/events/errors.ts';
import type { EventLog } from '../../src/events/log.ts';
import { WrappedLog } from '../../src/events/wrapped-log.ts';
import { until } from './until.ts';

/**
 * A log that is asked again where it was not read in time, and that appends until the store itself has the event, not the spool: beside
 * other work a store may take longer than the gateway waits for it. For tests of what a log answers, not of when.
 */
export class PatientLog extends WrappedLog {
  /** While events wait in the spool. */
  #draining: Promise<unknown> | undefined;

  override append(...args: Parameters<EventLog['append']>) {
    return until(async () => {
      const appended = await answered(() => this.log.append(...args));
      if (appended.cursor !== null) return appended;
      // Appended again before that, it would join the spool once more, and others that do so as well would never see it empty.
      this.#draining ??= until(async () => (await this.log.health()).spooled === 0).finally(() => {
        this.#draining = undefined;
      });
      await this.#draining;
      return undefined;
    });
  }

  override recall(...args: Parameters<EventLog['recall']>) {
    return answered(() => this.log.recall(...args));
  }

  override readAfter(...args: Parameters<EventLog['readAfter']>) {
    return answered(() => this.log.readAfter(...args));
  }

  override readBefore(...args: Parameters<EventLog['readBefore']>) {
    return answered(() => this.log.readBefore(...args));
  }

  override wholeSince(clientId: string) {
    return answered(() => this.log.wholeSince(clientId));
  }

  override givenUpTo(clientId: string) {
    return answered(() => this.log.givenUpTo(clientId));
  }

  override head(clientId: string) {
    return answered(() => this.log.head(clientId));
  }

  override bounds(clientId: string) {
    return answered(() => this.log.bounds(clientId));
  }

  override sealKey(clientId: string) {
    return answered(() => this.log.sealKey(clientId));
  }

  override follow(...args: Parameters<EventLog['follow']>) {
    return answered(() => this.log.follow(...args));
  }

  override watch(...args: Parameters<EventLog['watch']>) {
    return answered(() => this.log.watch(...args));
  }
}

async function answered<T>(ask: () => Promise<T>): Promise<T> {
  const { answer } = await until(() =>
    ask().then(
      (answer) => ({ answer }),
      (error: unknown) => {
        if (error instanceof StoreUnavailableError) return undefined;
        throw error;
      },
    ),
  );
  return answer;
}
