import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { disk } from '../common/disk.ts';
import type { Logger } from '../common/logger.ts';
import { makePrivate } from '../common/private-file.ts';
import { transaction } from '../common/sqlite-transaction.ts';
import type { EventType } from './log.ts';
import type { EventMetrics } from './metrics.ts';

/** Why a delivery was put into quarantine. */
export type QuarantineReason =
  /** Not JSON in UTF-8, or nested too deep. */
  | 'unreadable'
  /** A field that its type needs is missing. */
  | 'incomplete'
  /** A CEP wrapper that names another client than its address. */
  | 'foreign-client'
  /** Its body says another type than its address. */
  | 'misnamed'
  /** A MONEY_IN that repeats a message with other contents, or that was accepted into a spool after it had been rejected. */
  | 'conflict'
  /** An SPEI credit on which the decider gave no verdict, or a refusal that does not count (judge.ts). */
  | 'undecided';

export interface Quarantined {
  readonly receivedAt: string;
  readonly clientId: string;
  readonly type: EventType;
  readonly reason: QuarantineReason;
  readonly body: Uint8Array;
}

/** Deliveries kept of one client for one reason. The oldest go first, so that junk displaces only junk of its own kind. */
const KEPT_OF_EACH = 200;
/** Deliveries kept in all: 128 MiB at most. The client and reason with the most lose their oldest first. */
const KEPT = 2_000;
/** How long a process waits for another one that is writing, in milliseconds. */
const BUSY_TIMEOUT_MS = 200;

/**
 * Keeps deliveries that could not become events, for a person to look at, in `quarantine.sqlite`. Several processes may share
 * the folder. Keeping one may fail; that never changes the answer to the provider.
 */
export class Quarantine {
  readonly #path: string;
  readonly #logger: Logger;
  readonly #metrics: EventMetrics;
  #database: DatabaseSync | undefined;
  #isUnsynced = false;
  #syncing: Promise<void> | undefined;

  constructor(options: { dataDir: string; logger: Logger; metrics: EventMetrics }) {
    this.#path = join(options.dataDir, 'quarantine.sqlite');
    this.#logger = options.logger;
    this.#metrics = options.metrics;
  }

  put(quarantined: Quarantined): void {
    const { clientId, type, reason } = quarantined;
    this.#metrics.quarantined(reason);
    this.#logger.error({ clientId, type, reason }, 'a webhook was put into quarantine');
    try {
      this.#database ??= this.#open();
      const database = this.#database;
      transaction(database, () => write(database, quarantined));
      this.#isUnsynced = true;
      this.#syncing ??= this.#sync();
    } catch (error) {
      this.#logger.error({ clientId, type, error: String(error) }, 'the quarantine could not be written');
    }
  }

  /** Has the disk take what was written, once for all that was written meanwhile. Nobody waits for it. */
  async #sync(): Promise<void> {
    try {
      while (this.#isUnsynced) {
        this.#isUnsynced = false;
        await disk.sync(`${this.#path}-wal`);
      }
    } catch (error) {
      // Where the database was closed meanwhile, SQLite has synced it, and removed its log.
      if (this.#database !== undefined)
        this.#logger.error({ error: String(error) }, 'the quarantine could not be written');
    } finally {
      this.#syncing = undefined;
    }
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }

  #open(): DatabaseSync {
    makePrivate(this.#path);
    const database = disk.open(this.#path, BUSY_TIMEOUT_MS);
    // A write waits for no disk, which would keep everybody else waiting at each of a burst: #sync has the disk take it right afterwards.
    database.exec(`
      PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
      CREATE TABLE IF NOT EXISTS quarantine (
        number INTEGER PRIMARY KEY AUTOINCREMENT, received_at TEXT NOT NULL, client_id TEXT NOT NULL,
        type TEXT NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL
      ) STRICT;
      CREATE INDEX IF NOT EXISTS quarantine_kinds ON quarantine (client_id, reason, number);
    `);
    return database;
  }
}

/** Keeps one, and takes out what is too much. */
function write(database: DatabaseSync, { receivedAt, clientId, type, reason, body }: Quarantined): void {
  // A delivery that comes again and again takes one place, and no other's.
  database
    .prepare('DELETE FROM quarantine WHERE client_id = ? AND reason = ? AND type = ? AND body = ?')
    .run(clientId, reason, type, body);
  database
    .prepare('INSERT INTO quarantine (received_at, client_id, type, reason, body) VALUES (?, ?, ?, ?, ?)')
    .run(receivedAt, clientId, type, reason, body);
  database
    .prepare(
      `DELETE FROM quarantine WHERE client_id = :clientId AND reason = :reason AND number <= (
        SELECT number FROM quarantine WHERE client_id = :clientId AND reason = :reason
        ORDER BY number DESC LIMIT 1 OFFSET :kept
      )`,
    )
    .run({ clientId, reason, kept: KEPT_OF_EACH });
  database
    .prepare(
      `DELETE FROM quarantine WHERE (SELECT count(*) FROM quarantine) > :kept AND number = (
        SELECT min(number) FROM quarantine GROUP BY client_id, reason ORDER BY count(*) DESC LIMIT 1
      )`,
    )
    .run({ kept: KEPT });
}
