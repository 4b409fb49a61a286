import { closeSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { moneyIn } from '../../helpers/events.ts';

/**
 * What a process of the version before 0.1.0 does with a folder while Redis is away: it opens the first spool that is not locked,
 * looks at once and each 10 s into every spool, and gives up the lock on its own one by closing a descriptor of it. It spools so many
 * events, tells the id of each, and ends with SIGTERM.
 */
const [, , dataDir = '', client = '', count = '0'] = process.argv;
const ADOPT_EVERY_MS = 10_000;
const SQLITE_BUSY = 5;

function openExclusive(path: string): DatabaseSync | undefined {
  closeSync(openSync(path, 'a', 0o600));
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    database.exec('BEGIN EXCLUSIVE; COMMIT;');
    database.exec(`
      CREATE TABLE IF NOT EXISTS spool (
        number INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT NOT NULL, type TEXT NOT NULL, identity TEXT NOT NULL,
        contents TEXT NOT NULL, event TEXT NOT NULL, UNIQUE (client, type, identity)
      ) STRICT;
      CREATE INDEX IF NOT EXISTS spool_order ON spool (client, number);
      CREATE TABLE IF NOT EXISTS probe (written INTEGER NOT NULL) STRICT;`);
    return database;
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}

function openOwn(): DatabaseSync {
  for (let index = 0; ; index += 1) {
    const database = openExclusive(join(dataDir, `spool-${index}.sqlite`));
    if (database !== undefined) return database;
  }
}

const own = openOwn();
const adopted: DatabaseSync[] = [];
function adopt(): void {
  for (const name of readdirSync(dataDir)) {
    if (!/^spool-\d+\.sqlite$/.test(name)) continue;
    const database = openExclusive(join(dataDir, name));
    if (database === undefined) continue;
    if (Number(database.prepare('SELECT count(*) AS count FROM spool').get()?.['count']) > 0)
      adopted.push(database);
    else database.close();
  }
}
adopt();
setInterval(adopt, ADOPT_EVERY_MS);
process.on('SIGTERM', () => {
  for (const database of [own, ...adopted]) database.close();
  process.exit(0);
});

const add = own.prepare('INSERT INTO spool (client, type, identity, contents, event) VALUES (?, ?, ?, ?, ?)');
for (let spooled = 0; spooled < Number(count); spooled += 1) {
  const event = moneyIn();
  add.run(client, event.type, event.identity, event.contents, JSON.stringify(event));
  console.log(`spooled ${event.id}`);
  await pause(20);
}
console.log('done');
