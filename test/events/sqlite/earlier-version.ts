import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { answerOf, encodeEvent, SEEN_FOR_MS } from '../../../src/events/entry.ts';
import type { NewEvent } from '../../../src/events/log.ts';

/** The embedded log as the version before 0.1.0 reads and writes it, statement by statement. */
export interface EarlierLog extends Disposable {
  /** @returns whether the message was known */
  append(client: string, event: NewEvent): boolean;
  /** Positions, oldest first. */
  read(client: string): readonly number[];
}

/** @throws whatever that version fails to start with */
export function openEarlierLog(dataDir: string, retention: number): EarlierLog {
  const database = new DatabaseSync(join(dataDir, 'events.sqlite'));
  database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  database.exec('BEGIN EXCLUSIVE; COMMIT;');
  database.exec(`
    CREATE TABLE IF NOT EXISTS life (epoch TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS events (
      client TEXT NOT NULL, position INTEGER NOT NULL, event TEXT NOT NULL, PRIMARY KEY (client, position)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS seen (
      client TEXT NOT NULL, type TEXT NOT NULL, identity TEXT NOT NULL, position INTEGER NOT NULL,
      contents TEXT NOT NULL, answer TEXT NOT NULL, expires INTEGER NOT NULL, PRIMARY KEY (client, type, identity)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS seen_expires ON seen (expires);`);
  const find = database.prepare(
    'SELECT position, contents, answer FROM seen WHERE client = ? AND type = ? AND identity = ? AND expires > ?',
  );
  const insert = database.prepare('INSERT INTO events (client, position, event) VALUES (?, ?, ?)');
  const remember = database.prepare('INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?, ?, ?)');
  const trim = database.prepare('DELETE FROM events WHERE client = ? AND position <= ?');
  const last = database.prepare('SELECT coalesce(max(position), 0) AS last FROM events WHERE client = ?');
  const after = database.prepare('SELECT position FROM events WHERE client = ? ORDER BY position');
  database.exec('UPDATE life SET epoch = epoch');
  return {
    append(client, event) {
      const { type, identity, contents } = event;
      const now = Date.now();
      if (find.get(client, type, identity, now) !== undefined) return true;
      const number = Number(last.get(client)?.['last']) + 1;
      insert.run(client, number, encodeEvent(event));
      trim.run(client, number - retention);
      const answer = JSON.stringify(answerOf(event));
      remember.run(client, type, identity, number, contents, answer, now + SEEN_FOR_MS);
      return false;
    },
    read: (client) => after.all(client).map((row) => Number(row['position'])),
    [Symbol.dispose]: () => database.close(),
  };
}
