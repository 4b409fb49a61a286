import type { Appended, EventLog, NewEvent } from '../log.ts';

/** A log that can be away. */
export interface RemoteLog extends EventLog {
  /**
   * Like `append`, for several events of a client in one step: all in this order, or none.
   *
   * @throws {StoreUnavailableError}
   */
  appendAll(clientId: string, events: readonly NewEvent[]): Promise<readonly Appended[]>;
}
