import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { inputHash, MONEY_MUTATIONS, recordName } from '../../src/money/intent.ts';
import { digestOf } from '../../src/money/journal/journal.ts';
import { verifyJournal } from '../../src/money/journal/verify.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from './orders.ts';

const CLIENT = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
const INPUT = inputHash('createMoneyOut', {});
const ASKED = JSON.stringify([INPUT.slice(0, 8), 'o', '', '10.00', '', '', 'somebody']);
const CLASS = `CASE WHEN state <> 'answered' OR answer_kind = 'unknown' THEN 'open' ELSE answer_kind END`;

/** What 0.2.0 does at each start. */
const TABLES_0_2_0 = `
  CREATE TABLE IF NOT EXISTS intent (client_id TEXT NOT NULL, hash TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'answered')), owner TEXT NOT NULL, lease_until INTEGER NOT NULL,
    input_hash TEXT NOT NULL, body TEXT, sent_at INTEGER, answer_kind TEXT, status INTEGER, text TEXT,
    expires_at INTEGER NOT NULL, sent_clock INTEGER, key_owner TEXT, twin TEXT, boot_id TEXT, boot_ms INTEGER, asked TEXT,
    asked_at INTEGER, operation TEXT, customer_id TEXT, settled_at INTEGER, attempts INTEGER, transaction_id TEXT, line TEXT,
    upstream_key TEXT, original TEXT, epoch INTEGER, due_at INTEGER, tries INTEGER, seen TEXT,
    PRIMARY KEY (client_id, hash)) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS intent_expiry ON intent (expires_at);
  CREATE INDEX IF NOT EXISTS intent_twin ON intent (client_id, twin) WHERE twin IS NOT NULL;
  CREATE INDEX IF NOT EXISTS intent_payments ON intent (client_id, operation, ${CLASS}, asked_at, hash)
    WHERE sent_at IS NOT NULL AND asked IS NOT NULL;
  CREATE INDEX IF NOT EXISTS intent_transaction ON intent (client_id, transaction_id) WHERE transaction_id IS NOT NULL;
  CREATE TABLE IF NOT EXISTS journal (client_id TEXT NOT NULL, ms INTEGER NOT NULL, number INTEGER NOT NULL,
    digest TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (client_id, ms, number)) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS journal_head (client_id TEXT PRIMARY KEY, written INTEGER NOT NULL, cut INTEGER NOT NULL,
    base TEXT NOT NULL, last TEXT NOT NULL, digest TEXT NOT NULL) STRICT, WITHOUT ROWID;`;

let dataDir: string;
let path: string;
/** A process of 0.2.0, which has the file open all the time. */
let old: DatabaseSync;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-earlier-'));
  path = join(dataDir, 'money.sqlite');
  old = new DatabaseSync(path);
  old.exec(`PRAGMA journal_mode = WAL; ${TABLES_0_2_0}`);
});
afterEach(async () => {
  old.close();
  await rm(dataDir, { recursive: true });
});

const nameOf = (key: string) => recordName({ clientId: CLIENT, customerId: undefined, key });

/** A settled payment with a line of its journal, written as 0.2.0 does. */
function payByOld(key: string, at: number): void {
  const { hash } = nameOf(key);
  const head = old.prepare('SELECT written, digest FROM journal_head WHERE client_id = ?').get(CLIENT);
  const line = { id: `${at}-0`, text: `a${JSON.stringify([...JSON.parse(ASKED), hash, ''])}` };
  const digest = digestOf(String(head?.['digest'] ?? ''), line);
  old.prepare('INSERT INTO journal VALUES (?, ?, ?, ?, ?)').run(CLIENT, at, 0, digest, line.text);
  const written = Number(head?.['written'] ?? 0) + 1;
  old
    .prepare('INSERT OR REPLACE INTO journal_head VALUES (?, ?, 0, ?, ?, ?)')
    .run(CLIENT, written, '', line.id, digest);
  old
    .prepare(`
      INSERT INTO intent (client_id, hash, state, owner, lease_until, input_hash, sent_at, answer_kind, status, text, expires_at,
        key_owner, asked, asked_at, operation, settled_at, attempts, transaction_id, line)
      VALUES (?, ?, 'answered', 'a', ?, ?, ?, 'done', 201, 'its text', ?, '', ?, ?, 'createMoneyOut', ?, 1, ?, ?)
      ON CONFLICT DO UPDATE SET state = excluded.state`)
    .run(CLIENT, hash, at, INPUT, at, at + 1e9, ASKED, at, at, `transaction ${key}`, line.id);
}

/** The same now; resolves once what comes next is later. */
async function payNowByOld(key: string): Promise<void> {
  const at = Date.now() + 1;
  payByOld(key, at);
  await until(() => Date.now() > at);
}

async function payByNew(records: MoneyRecords, key: string): Promise<void> {
  const claim = { ...NOBODYS, owner: key, inputHash: INPUT, leaseMs: 0, twin: key };
  expect(await records.claim(nameOf(key), claim)).toEqual({ state: 'claimed' });
  await records.markSent(nameOf(key), key, '{}');
  const answer = { kind: 'done', status: 201, text: 'its text' } as const;
  await records.answer(nameOf(key), INPUT, answer, `transaction ${key}`);
}

/** What each version does to find payments and lines. */
function foundByOld() {
  const where = `client_id = ? AND operation = 'createMoneyOut' AND ${CLASS} = 'done' AND sent_at IS NOT NULL
    AND asked IS NOT NULL`;
  const listed = old.prepare(`SELECT hash FROM intent WHERE ${where} ORDER BY asked_at, hash`).all(CLIENT);
  const lines =
    old.prepare(`SELECT ms, number, digest, text FROM journal WHERE client_id = ? AND (ms, number) > (-1, 0)
    ORDER BY ms, number`);
  return { listed: listed.map(({ hash }) => String(hash)), lines: lines.all(CLIENT) };
}
async function foundByNew(records: MoneyRecords) {
  const search = { clientId: CLIENT, customerId: undefined, operations: MONEY_MUTATIONS, beyond: undefined };
  const range = { from: undefined, to: undefined, isBack: true, limit: 100, classes: ['done'] as const };
  const found = await records.search({ ...search, ...range });
  const verdict = await verifyJournal(records.journal, CLIENT, undefined, () => {});
  return { listed: found.records.map(({ hash }) => hash), ...verdict };
}

it('a file of 0.2.0 is taken over whole, also while a process of 0.2.0 pays on, and goes back to it', async () => {
  const keys = ['made before', 'made before too'];
  const began = Date.now() - 10_000;
  for (const [index, key] of keys.entries()) payByOld(key, began + index);
  for (let time = 1; time <= 2; time += 1) {
    const records = openSqliteRecords(path);
    const all = async () => {
      const listed = keys.map((key) => nameOf(key).hash);
      const { lines, ...found } = await foundByNew(records);
      expect(found).toMatchObject({ listed, problem: undefined });
      const byOld = foundByOld();
      expect(byOld.listed).toEqual(listed);
      expect(byOld.lines).toHaveLength(lines);
      let digest = '';
      for (const { ms, number, text, digest: told } of byOld.lines) {
        digest = digestOf(digest, { id: `${ms}-${number}`, text: String(text) });
        expect(told).toBe(digest);
      }
      for (const key of keys) {
        const [found] = await records.readByTransactions(CLIENT, [`transaction ${key}`]);
        expect(found).toMatchObject({ answer: { kind: 'done', status: 201, text: 'its text' } });
      }
    };
    await all();
    keys.push(`made by this version ${time}`);
    await payByNew(records, `made by this version ${time}`);
    await all();
    keys.push(`made beside it ${time}`);
    await payNowByOld(`made beside it ${time}`);
    await all();
    await records.stop();
    // 0.2.0 begins again with the file, and pays.
    old.exec(TABLES_0_2_0);
    keys.push(`made after it ${time}`);
    await payNowByOld(`made after it ${time}`);
  }
  expect(old.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
});

it('a file of 0.2.0 stays as it was where it cannot be taken over', () => {
  payByOld('made before', Date.now());
  old.exec('BEGIN IMMEDIATE');
  expect(() => openSqliteRecords(path)).toThrow('locked');
  old.exec('ROLLBACK');
  expect(foundByOld()).toMatchObject({ listed: [nameOf('made before').hash], lines: [{}] });
});

it('a file of 0.2.0 in whose journal a digest was spoiled is taken over, and its journal does not hold', async () => {
  const began = Date.now() - 10_000;
  for (const [index, key] of ['one', 'two', 'three'].entries()) payByOld(key, began + index);
  old.prepare("UPDATE journal SET digest = 'spoiled' WHERE ms = ?").run(began + 1);
  const records = openSqliteRecords(path);
  const { listed, problem } = await foundByNew(records);
  expect(listed).toHaveLength(3);
  expect(problem).toBeDefined();
  await records.stop();
});
