import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import type { RecordName } from '../../src/money/intent.ts';
import { systemBootClock } from '../../src/money/lived-time.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { keyOf } from '../../src/money/redis/keys.ts';
import { startRedis } from '../helpers/redis.ts';
import { NOBODYS } from '../money/orders.ts';
import { readPage } from './pages.ts';

const STATES = ['claimed', 'sent', 'closed', 'settled'] as const;
type State = (typeof STATES)[number];
type Kind = 'Redis' | 'SQLite';

/** For each field, and each state, what the page says of one store: `yes`, `some`, or nothing. */
type Fields = ReadonlyMap<string, Readonly<Record<State, string>>>;

async function fieldsOfPage(kind: Kind): Promise<Fields> {
  const section = /^### The fields of a record\n(.*?)^## /ms.exec(await readPage('docs/redis.md'))?.[1] ?? '';
  const other = kind === 'Redis' ? 'SQLite' : 'Redis';
  const past = kind === 'Redis' ? '' : 'yes';
  const fields = new Map<string, Readonly<Record<State, string>>>();
  for (const line of section.split('\n').filter((row) => /^\|.*\|$/.test(row))) {
    const [redis = '', sqlite = '', , ...cells] = line.split('|').slice(1, -1);
    const told = cells.map((cell) => cell.trim()).map((cell) => (cell === 'past' ? past : cell));
    const own = told.map((cell) => (cell.endsWith(` in ${other}`) ? '' : cell.replace(` in ${kind}`, '')));
    const byState = Object.fromEntries(STATES.map((state, index) => [state, own[index] ?? '']));
    // Each of the states has a text.
    for (const [, name = ''] of (kind === 'Redis' ? redis : sqlite).matchAll(/`(\w+)`/g))
      fields.set(name, byState as Record<State, string>);
  }
  return fields;
}

/** A store, and what a record in it has. What is empty counts as absent. */
interface Store extends AsyncDisposable {
  readonly records: MoneyRecords;
  fieldsOf(name: RecordName): Promise<readonly string[]>;
  /** Makes a record that is sent one of a version before, whose caller has come back. */
  age?(name: RecordName): Promise<unknown>;
}

const STORES: Readonly<Record<Kind, () => Promise<Store>>> = {
  async Redis() {
    const redis = await startRedis();
    const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
    return {
      records,
      async fieldsOf(name) {
        const found = Object.entries(await redis.admin.hgetall(keyOf(name)));
        return found.filter(([, value]) => value !== '').map(([field]) => field);
      },
      age: (name) => redis.admin.hdel(keyOf(name), 'line'),
      async [Symbol.asyncDispose]() {
        await records.stop();
        await redis.stop();
      },
    };
  },
  async SQLite() {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-fields-'));
    const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
    return {
      records,
      async fieldsOf({ hash }) {
        using db = new DatabaseSync(join(dataDir, 'money.sqlite'));
        const row = db.prepare('SELECT * FROM intent WHERE hash = ?').get(hash) ?? {};
        const isEmpty = (column: string, value: unknown) =>
          value === null || value === '' || (column === 'lease_until' && value === 0);
        return Object.keys(row).filter((column) => !isEmpty(column, row[column]));
      },
      async [Symbol.asyncDispose]() {
        await records.stop();
        await rm(dataDir, { recursive: true });
      },
    };
  },
};

const clientId = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
const inputHash = 'input';
const named = (hash: string): RecordName => ({ clientId, hash });
const done = (id: string) => ({ kind: 'done', status: 200, text: `{"id":"${id}"}` }) as const;

/** Takes payments of each kind through all states, and calls `look` in each. */
async function play({ records, age }: Store, look: (name: RecordName, state: State) => Promise<void>) {
  const claim = (name: RecordName, more: object = {}) =>
    records.claim(name, { ...NOBODYS, owner: 'call', inputHash, leaseMs: 600_000, ...more });
  const closed = { kind: 'unknown', status: 409, text: '{}' } as const;

  const out = named('out');
  await claim(out, { keyOwner: 'somebody' });
  await look(out, 'claimed');
  await records.markSent(out, 'call', '{}', { upstreamKey: 'key', original: null });
  await look(out, 'sent');
  await records.sentAgain(out);
  await records.renew(out, 'call', 0);
  await records.hasten(out);
  const taken = await records.takeOpen(out, 'settler', 20_000);
  await records.putOff(taken ?? expect.unreachable(), 2_000, 'no-answer');
  await look(out, 'sent');
  await records.answer(out, inputHash, closed, 'another');
  await look(out, 'closed');
  await records.answer(out, inputHash, done('one'), 'one');
  await look(out, 'settled');

  const refund = named('refund');
  const asked = { ...NOBODYS.asked, operation: 'refundTransaction', customerId: 'customer' };
  await claim(refund, { isCustomers: true, asked });
  await records.markSent(refund, 'call', '{}', { upstreamKey: null, original: 'credit' });
  await look(refund, 'sent');
  await records.answer(refund, inputHash, closed);
  await look(refund, 'closed');
  await records.answer(refund, inputHash, { kind: 'refused', status: 422, text: '{}' });
  await look(refund, 'settled');

  const passed = named('passed');
  await claim(passed, { isCustomers: true, twin: 'passed', asked, leaseMs: 0 });
  await claim(named('whole'), { twin: 'passed' });
  await look(passed, 'claimed');

  if (age === undefined) return;
  const old = named('old');
  await claim(old, { twin: 'old' });
  await records.markSent(old, 'call', '{}', { upstreamKey: null, original: null });
  await age(old);
  await claim(old, { twin: 'old' });
  await look(old, 'sent');
  await records.answer(old, inputHash, closed);
  await look(old, 'closed');
  await records.answer(old, inputHash, done('two'), 'two');
  await look(old, 'settled');
}

it.each(['Redis', 'SQLite'] as const)(
  'the table of docs/redis.md says which fields a record has in each state, over %s',
  async (kind) => {
    const page = await fieldsOfPage(kind);
    const saying = (state: State, what: string) =>
      [...page].filter(([, told]) => told[state] === what).map(([field]) => field);
    expect(page.size).toBeGreaterThan(20);
    const seen = new Map<State, Set<string>>(STATES.map((state) => [state, new Set()]));
    await using store = await STORES[kind]();
    await play(store, async (name, state) => {
      const fields = await store.fieldsOf(name);
      const where = `${name.hash}, ${state}`;
      expect(
        saying(state, 'yes').filter((field) => !fields.includes(field)),
        `missing: ${where}`,
      ).toEqual([]);
      expect(
        fields.filter((field) => !['yes', 'some'].includes(page.get(field)?.[state] ?? '')),
        `not told of: ${where}`,
      ).toEqual([]);
      for (const field of fields) seen.get(state)?.add(field);
    });
    // Only Linux names the start of the machine.
    const isUnseen = (state: State, field: string) =>
      !seen.get(state)?.has(field) && (systemBootClock() !== undefined || !field.startsWith('boot'));
    for (const state of STATES)
      expect(
        saying(state, 'some').filter((field) => isUnseen(state, field)),
        state,
      ).toEqual([]);
  },
);
