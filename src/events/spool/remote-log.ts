import type { Appended, EventLog, NewEvent } from '../log.ts';

/** A log that can be away. */
export interface RemoteLog extends EventLog {
  /**
   * Like `append`, for several events of a client in one step: all in this order, or none. It counts none of them.
   *
   * @param history the only history of data that they may be added to, as an `UnreplicatedError` has named it: what was appended
   * before them is there
   * @throws {UnreplicatedError} when it has taken them, and they may still be lost
   * @throws {OtherHistoryError} when it has taken none, as its data have another history
   * @throws {StoreUnavailableError}
   */
  appendAll(clientId: string, events: readonly NewEvent[], history?: string): Promise<readonly Appended[]>;
}
