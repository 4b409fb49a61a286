import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { JournalEntries } from '../../src/money/journal/entries.ts';
import { digestOf, partsOf } from '../../src/money/journal/journal.ts';
import type { JournalStore } from '../../src/money/journal/store.ts';
import { type Anchor, JOURNAL_PAGE, verifyJournal } from '../../src/money/journal/verify.ts';
import { openMoney, openMoneyRecords } from '../../src/money/open-money.ts';
import { createPayments } from '../../src/money/payment-reads.ts';
import { type MoneyRecords, RETENTION_DAYS } from '../../src/money/record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { startRedis } from '../helpers/redis.ts';
import { NOBODYS, order, SHOWN } from './orders.ts';
import { patient, STORES, type Store } from './stores.ts';

const DONE = { kind: 'done', status: 201, text: '{}' } as const;
const REFUSED = { kind: 'refused', status: 400, text: '{}' } as const;
const UNKNOWN = { kind: 'unknown', status: 409, text: '{}' } as const;
/** 31 days. */
const KEPT_MS = 31 * 24 * 60 * 60 * 1000;

/** The steps of one payment, each made as often as it is named. */
async function make(
  records: MoneyRecords,
  clientId: string,
  steps: readonly string[],
  key: string = randomUUID(),
) {
  const name = recordName({ clientId, customerId: undefined, key });
  const hash = inputHash('createMoneyOut', key);
  const asked = { operation: 'createMoneyOut', customerId: null, ...SHOWN } as const;
  const claim = { ...NOBODYS, owner: 'a', inputHash: hash, leaseMs: 0, asked, requestId: `request-${key}` };
  for (const step of steps) {
    if (step === 'claim') await records.claim(name, claim);
    if (step === 'sent') await records.markSent(name, 'a', '{}');
    if (step === 'again') await records.sentAgain(name, 'another-request');
    // Written in either case, and another for each payment.
    if (step === 'done') await records.answer(name, hash, DONE, key.toUpperCase());
    if (step === 'refused') await records.answer(name, hash, REFUSED, undefined, 'INSUFFICIENT_FUNDS');
    if (step === 'unknown') await records.answer(name, hash, UNKNOWN);
    if (step === 'release') await records.release(name, 'a');
  }
  return name;
}

const linesOf = (records: MoneyRecords, clientId: string) =>
  records.journal.read(clientId, undefined, 10_000);
const entriesOf = async (records: MoneyRecords, clientId: string) =>
  new JournalEntries(records, clientId).of(await linesOf(records, clientId));
const verify = (records: MoneyRecords, clientId: string, anchor?: Anchor) =>
  verifyJournal(records.journal, clientId, anchor, () => {});

describe.each(STORES)('the journal of payments, over %s', (_kind, makeStore) => {
  let store: Store;
  let one: MoneyRecords;
  let other: MoneyRecords;
  beforeAll(async () => {
    store = await makeStore();
    one = await store.open();
    other = await store.open();
  });
  afterAll(async () => {
    await one.stop();
    await other.stop();
    await store.close();
  });

  it.each([
    [
      ['claim', 'sent', 'done'],
      ['asked', 'sent', 'done'],
    ],
    [
      ['claim', 'sent', 'again', 'again', 'refused'],
      ['asked', 'sent', 'retried', 'retried', 'refused'],
    ],
    [
      ['claim', 'sent', 'unknown', 'done'],
      ['asked', 'sent', 'unknown', 'done'],
    ],
    [
      ['claim', 'release'],
      ['asked', 'nothing_moved'],
    ],
    [
      ['claim', 'sent', 'release', 'claim', 'sent', 'done'],
      ['asked', 'sent', 'nothing_moved', 'asked', 'sent', 'done'],
    ],
    // What is repeated, and what changes nothing, has no line.
    [
      [
        'claim',
        'claim',
        'sent',
        'sent',
        'claim',
        'unknown',
        'unknown',
        'done',
        'done',
        'refused',
        'release',
        'again',
      ],
      ['asked', 'sent', 'unknown', 'done'],
    ],
    [['release', 'again', 'sent'], []],
  ])('has one line for each of %j', async (steps, wanted) => {
    const clientId = randomUUID();
    const name = await make(one, clientId, steps);
    const entries = await entriesOf(other, clientId);
    expect(entries.map(({ step }) => step)).toEqual(wanted);
    const paymentId = wanted.length === 0 ? null : await createPayments(one).idOf(name);
    for (const entry of entries) {
      expect(entry).toMatchObject({ clientId, paymentId, asked: { operation: 'createMoneyOut', ...SHOWN } });
    }
    expect(await verify(other, clientId)).toMatchObject({ lines: wanted.length, problem: undefined });
  });

  it('tells who asked, what was refused, and what was made', async () => {
    const clientId = randomUUID();
    await make(one, clientId, ['claim', 'sent', 'again', 'refused'], 'k-refused');
    const made = randomUUID();
    await make(one, clientId, ['claim', 'sent', 'done'], made);
    const [asked, sent, retried, refused, , , done] = await entriesOf(other, clientId);
    expect(asked).toMatchObject({ requestId: 'request-k-refused', status: null });
    expect(sent).toMatchObject({ requestId: null });
    expect(retried).toMatchObject({ requestId: 'another-request' });
    expect(refused).toMatchObject({ code: 'INSUFFICIENT_FUNDS', status: 400, transactionId: null });
    expect(done).toMatchObject({ code: null, status: 201 });
    expect(done?.transactionId?.toLowerCase()).toBe(made);
    expect(done?.at).toBeGreaterThanOrEqual(asked?.at ?? Number.POSITIVE_INFINITY);
  });

  it('is told page by page, and of a line alone what its payment was', async () => {
    const clientId = randomUUID();
    await make(one, clientId, ['claim', 'sent', 'done']);
    const [begun, ...later] = await linesOf(one, clientId);
    expect(await one.journal.read(clientId, begun?.id, 1)).toEqual(later.slice(0, 1));
    expect(await one.journal.lines(clientId, [begun?.id ?? '', '1-0'])).toEqual([begun, undefined]);
    const [entry] = await new JournalEntries(one, clientId).of(later.slice(1));
    expect(entry).toMatchObject({ step: 'done', asked: SHOWN });
    expect(await one.journal.clients()).toContain(clientId);
  });

  it('is one chain, however many write at once, also while it is followed', async () => {
    const clientId = randomUUID();
    const many = Array.from({ length: 40 }, (_, index) =>
      make(index % 2 === 0 ? one : other, clientId, ['claim', 'sent', 'done']),
    );
    expect((await verify(one, clientId)).problem).toBeUndefined();
    await Promise.all(many);
    const verdict = await verify(one, clientId);
    expect(verdict).toMatchObject({ lines: 120, problem: undefined });
    // Whoever has noted a line finds it.
    const anchor = { id: verdict.last, digest: verdict.digest };
    expect((await verify(one, clientId, anchor)).problem).toBeUndefined();
    const forged = { ...anchor, digest: '0'.repeat(24) };
    expect((await verify(one, clientId, forged)).problem).toEqual({ kind: 'unknown-anchor' });
  });

  it('holds also where its first line is written in the moment in which it is verified', async () => {
    const clientId = randomUUID();
    const { journal } = one;
    let isEmpty = true;
    const busy = {
      ...journal,
      async read(...args: Parameters<typeof journal.read>) {
        if (isEmpty) await make(other, clientId, ['claim']);
        isEmpty = false;
        return journal.read(...args);
      },
    };
    expect(await verifyJournal(busy, clientId, undefined, () => {})).toMatchObject({
      lines: 1,
      problem: undefined,
    });
  });

  it('has a line for an answer whose record was lost', async () => {
    const clientId = randomUUID();
    await make(one, clientId, ['done']);
    expect(await entriesOf(one, clientId)).toMatchObject([{ step: 'done', asked: null }]);
    expect((await entriesOf(one, clientId))[0]?.paymentId).toMatch(/^[\w-]{43}$/);
  });
});

describe('a journal that somebody has meddled with', () => {
  const clientId = randomUUID();
  const head = `pasarela:money:{${clientId}}:journal-head`;
  const stream = `pasarela:money:{${clientId}}:journal`;

  it('is found out, over Redis', async () => {
    await using redis = await startRedis();
    const records = patient(
      await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger }),
    );
    for (let made = 0; made < 10; made += 1) await make(records, clientId, ['claim', 'sent', 'done']);
    const lines = await redis.admin.xrange(stream, '-', '+');
    const [kept, intact] = [await redis.admin.dump(stream), await redis.admin.dumpBuffer(stream)];
    expect(kept).not.toBeNull();
    const putBack = () => redis.admin.restore(stream, 0, intact, 'REPLACE');
    const problem = async () => (await verify(records, clientId)).problem;

    await redis.admin.xdel(stream, lines[13]?.[0] ?? '');
    expect(await problem()).toMatchObject({ kind: 'broken', number: 14, id: lines[14]?.[0] });
    await putBack();
    await redis.admin.xdel(stream, lines[0]?.[0] ?? '');
    expect(await problem()).toMatchObject({ kind: 'broken', number: 1 });
    await putBack();
    for (const [id] of lines.slice(27)) await redis.admin.xdel(stream, id);
    expect(await problem()).toEqual({ kind: 'torn', missing: 3 });

    // The chain goes on from what was there: the place shows all the same.
    await make(records, clientId, ['claim', 'sent', 'done']);
    expect(await problem()).toMatchObject({ kind: 'broken', number: 28 });
    await redis.admin.del(stream);
    for (const [id, [field = '', text = '']] of lines) {
      await redis.admin.xadd(stream, id, field, id === lines[6]?.[0] ? text.replace('10.00', '10.01') : text);
    }
    expect(await problem()).toMatchObject({ kind: 'broken', number: 7 });
    await redis.admin.del(head);
    expect(await problem()).toEqual({ kind: 'headless' });
    // A payment is made all the same.
    await make(records, clientId, ['claim', 'sent', 'done']);
    await redis.admin.hset(head, 'last', '1-0');
    const name = await make(records, clientId, ['claim', 'sent', 'done']);
    expect(await records.read(name)).toMatchObject({ answer: DONE });
    await records.stop();
  });

  it('is found out, over node:sqlite', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
    const path = join(dataDir, 'money.sqlite');
    const records = openSqliteRecords(path);
    for (let made = 0; made < 10; made += 1) await make(records, clientId, ['claim', 'sent', 'done']);
    const lines = await linesOf(records, clientId);
    const db = new DatabaseSync(path);
    const change = (sql: string, id = '') => {
      const [ms = '', number = ''] = id.split('-');
      db.prepare(`${sql} WHERE ms = ? AND number = ?`).run(Number(ms), Number(number));
    };
    const problem = async () => (await verify(records, clientId)).problem;
    change("UPDATE journal_line SET text = replace(text, '10.00', '10.01')", lines[6]?.id);
    expect(await problem()).toMatchObject({ kind: 'broken', number: 7, id: lines[6]?.id });
    change("UPDATE journal_line SET text = replace(text, '10.01', '10.00')", lines[6]?.id);
    expect(await problem()).toBeUndefined();
    change('UPDATE journal_line SET ms = ms - 1', lines[0]?.id);
    expect(await problem()).toMatchObject({ kind: 'broken', number: 1 });
    db.prepare('UPDATE journal_line SET ms = ms + 1 WHERE ms = ?').run(
      Number(lines[0]?.id.split('-')[0]) - 1,
    );
    for (const { id } of lines.slice(28)) change('DELETE FROM journal_line', id);
    expect(await problem()).toEqual({ kind: 'torn', missing: 2 });
    db.close();
    await records.stop();
    await rm(dataDir, { recursive: true });
  });
});

describe('the lines of a journal', () => {
  it('are cut off when they are too old, and the rest still holds, over node:sqlite', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
    const clientId = randomUUID();
    let now = Date.now();
    let lived = 0;
    const records = openSqliteRecords(
      join(dataDir, 'money.sqlite'),
      () => now,
      () => lived,
      undefined,
      KEPT_MS,
    );
    for (let made = 0; made < 3; made += 1) await make(records, clientId, ['claim', 'sent', 'done']);
    // The machine's clock leaps ahead alone.
    now += KEPT_MS + 1_000;
    await make(records, clientId, ['claim', 'release']);
    expect(await records.journal.head(clientId)).toMatchObject({ written: 11, cut: 0 });
    lived += KEPT_MS + 1_000;
    await make(records, clientId, ['claim']);
    expect(await verify(records, clientId)).toMatchObject({ lines: 3, problem: undefined });
    expect(await records.journal.head(clientId)).toMatchObject({ written: 12, cut: 9 });
    now -= 2 * KEPT_MS;
    lived += 2 * KEPT_MS;
    await make(records, clientId, ['claim']);
    expect(await records.journal.head(clientId)).toMatchObject({ written: 13, cut: 9 });
    await records.stop();
    await rm(dataDir, { recursive: true });
  });

  it.each(['node:sqlite', 'Redis'])('are cut off after the time that is asked for, over %s', async (kind) => {
    await using cleanup = new AsyncDisposableStack();
    const redisUrl = kind === 'Redis' ? cleanup.use(await startRedis()).url : undefined;
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
    cleanup.defer(() => rm(dataDir, { recursive: true }));
    const clientId = randomUUID();
    const records = await openMoneyRecords({ redisUrl, dataDir, logger, journalMs: 1_000 });
    for (let made = 0; made < 3; made += 1) await make(records, clientId, ['claim', 'sent', 'done']);
    await expect
      .poll(async () => {
        await make(records, clientId, ['claim', 'release']);
        return (await records.journal.head(clientId)).cut;
      })
      .toBeGreaterThanOrEqual(9);
    expect((await verify(records, clientId)).problem).toBeUndefined();
    await records.stop();
  });

  it('are kept in Redis as long as a record that was settled at its end, whatever is asked for', async () => {
    await using redis = await startRedis();
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
    const made = order('http://127.0.0.1:1', 'createMoneyOut', randomUUID());
    const day = KEPT_MS / 31;
    const stream = `pasarela:money:{${made.clientId}}:journal`;
    const [gone, kept] = [2 * RETENTION_DAYS + 2, 2 * RETENTION_DAYS].map(
      (days) => `${Date.now() - days * day}-0`,
    );
    for (const id of [gone, kept]) await redis.admin.xadd(stream, String(id), 'l', 'a line');
    const money = await openMoney({ redisUrl: redis.url, dataDir, logger, journalMs: KEPT_MS });
    await money.execute(made, { deadline: Date.now() + 5_000, signal: new AbortController().signal });
    const [[oldest]] = (await redis.admin.xrange(stream, '-', '+', 'COUNT', 1)) as [[string, string[]]];
    expect(oldest).toBe(kept);
    await money.stop();
    await rm(dataDir, { recursive: true });
  });
});

/** A journal in memory, of which so many lines have been cut off; more may be, each time that lines are read. */
function journalOf(written: number, cut: number, cutAtRead = 0) {
  let digest = '';
  const all = Array.from({ length: written }, (_, index) => {
    const line = { id: `${index + 1}-0`, text: `line ${index + 1}` };
    digest = digestOf(digest, line);
    return { ...line, digest };
  });
  let gone = cut;
  const journal: JournalStore = {
    clients: async () => ['one'],
    async head() {
      const { id: last = '', digest: newest = '' } = all.at(-1) ?? {};
      return { written, cut: gone, base: all[gone - 1]?.digest ?? '', last, digest: newest };
    },
    async read(_clientId, after, limit) {
      gone = Math.min(written, gone + (after === undefined ? cutAtRead : 0));
      const start = after === undefined ? 0 : partsOf(after)[0];
      return all.slice(Math.max(gone, start)).slice(0, limit);
    },
    lines: async () => [],
  };
  return { all, journal };
}

describe('a journal of several pages whose oldest lines were cut off', () => {
  const [written, cut] = [2 * JOURNAL_PAGE + 10, 7];

  it('is verified to its end, and says how far it has been', async () => {
    const { all, journal } = journalOf(written, cut);
    const told: [number, number][] = [];
    // The anchor is on the first page.
    const verdict = await verifyJournal(journal, 'one', all[cut + 1], (...lines) => void told.push(lines));
    const lines = written - cut;
    expect(verdict).toEqual({
      lines,
      last: all.at(-1)?.id,
      digest: all.at(-1)?.digest,
      problem: undefined,
    });
    expect(told).toEqual([JOURNAL_PAGE, 2 * JOURNAL_PAGE, lines].map((read) => [read, lines]));
    const { problem } = await verifyJournal(journal, 'one', all[cut - 1], () => {});
    expect(problem).toEqual({ kind: 'unknown-anchor' });
  });

  it('names the line that does not follow by its place among all that were ever written', async () => {
    const { all, journal } = journalOf(written, cut);
    const place = JOURNAL_PAGE + 500;
    all.splice(place - 1, 1, { ...all[place - 1], text: 'another' } as (typeof all)[number]);
    const verdict = await verifyJournal(journal, 'one', undefined, () => {});
    expect(verdict).toMatchObject({
      lines: place - 1 - cut,
      last: all[place - 2]?.id,
      problem: { kind: 'broken', number: place, id: `${place}-0`, at: place },
    });
    all.splice(place - 1, 1);
    expect((await verifyJournal(journal, 'one', undefined, () => {})).problem).toMatchObject({
      kind: 'broken',
      number: place,
    });
  });

  it('holds where more are cut off at each read of its first lines, to the last', async () => {
    for (const atOnce of [1, JOURNAL_PAGE, 2 * written]) {
      const { journal } = journalOf(written, 0, atOnce);
      const lines = Math.max(0, written - atOnce);
      expect(await verifyJournal(journal, 'one', undefined, () => {})).toMatchObject({
        lines,
        problem: undefined,
      });
    }
  });
});
