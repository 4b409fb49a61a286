/** A line of the journal as a store keeps it. */
export interface JournalLine {
  /** `<ms since the epoch>-<number within it>`, by the clock of the store. Ids grow along the journal. */
  readonly id: string;
  /** `digestOf` it and the line before. */
  readonly digest: string;
  readonly text: string;
}

/** What a store keeps of a client's journal besides its lines. */
export interface JournalHead {
  /** How many lines have ever been written, and how many of them were cut off because of their age. */
  readonly written: number;
  readonly cut: number;
  /** The digest of the last line that was cut off; empty where none was. */
  readonly base: string;
  /** Id and digest of the last line; empty where there is none. */
  readonly last: string;
  readonly digest: string;
}

/**
 * The journal of payments. Lines are only ever added, each in one step with the change of the record that it describes. Each
 * client has one. Each line bears a digest over itself and the digest of the line before, so that a line that is changed or
 * removed later is noticed.
 *
 * An attacker who can write to the store can also rewrite the whole chain. The digest of an earlier line, kept elsewhere,
 * reveals that.
 *
 * Every method rejects with `RecordsUnavailableError` when the store cannot be reached.
 */
export interface JournalStore {
  /** Returns the clients that have a journal. */
  clients(): Promise<readonly string[]>;
  head(clientId: string): Promise<JournalHead>;
  /** Returns lines after an id, the oldest first; from the beginning if it is undefined. */
  read(clientId: string, after: string | undefined, limit: number): Promise<readonly JournalLine[]>;
  /** Returns the lines of these ids; undefined for ids without a line. */
  lines(clientId: string, ids: readonly string[]): Promise<readonly (JournalLine | undefined)[]>;
}
