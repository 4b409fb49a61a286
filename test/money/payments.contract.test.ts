import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import { inputHash, type MoneyMutation, recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { createPayments, type Payments } from '../../src/money/payment-reads.ts';
import {
  type MoneyRecords,
  type OrderSummary,
  type PaymentClass,
  type PaymentSearch,
  RETENTION_DAYS,
  RETENTION_MS,
  RecordsUnavailableError,
} from '../../src/money/record.ts';
import { keyOf } from '../../src/money/redis/keys.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS, SHOWN } from './orders.ts';
import { patient, STORES, type Store } from './stores.ts';

const CLIENT = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
const CUSTOMER = '5f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c15';
const ALL: readonly MoneyMutation[] = [
  'createMoneyOut',
  'createInternalTransaction',
  'createPennyValidation',
  'refundTransaction',
];

interface Made {
  readonly key?: string;
  readonly operation?: MoneyMutation;
  readonly clientId?: string;
  readonly customerId?: string | undefined;
  readonly until?: 'claimed' | 'sent' | 'done' | 'refused' | 'unknown';
  readonly transactionId?: string;
  readonly leaseMs?: number;
  readonly body?: string;
  readonly text?: string;
  readonly shown?: Pick<OrderSummary, 'source' | 'destination' | 'requestedBy'>;
  readonly requestId?: string;
}

/** A payment as far as it is wanted. Returns its key. */
async function make(records: MoneyRecords, made: Made): Promise<string> {
  const { key = randomUUID(), operation = 'createMoneyOut', customerId, until = 'done', leaseMs = 0 } = made;
  const clientId = made.clientId ?? CLIENT;
  const name = recordName({ clientId, customerId, key });
  const hash = inputHash(operation, key);
  const asked = { operation, customerId: customerId ?? null, ...SHOWN, ...made.shown };
  const { requestId } = made;
  const claim = { ...NOBODYS, owner: key, inputHash: hash, leaseMs, twin: key, asked, requestId };
  await records.claim(name, { ...claim, isCustomers: customerId !== undefined });
  if (until === 'claimed') return key;
  await records.markSent(name, key, made.body ?? '{}');
  if (until === 'sent') return key;
  const status = until === 'done' ? 201 : 400;
  await records.answer(name, hash, { kind: until, status, text: made.text ?? '{}' }, made.transactionId);
  return key;
}

const EVERY: Omit<PaymentSearch, 'limit'> = {
  clientId: CLIENT,
  customerId: undefined,
  operations: ALL,
  classes: ['open', 'done', 'refused'],
  from: undefined,
  to: undefined,
  beyond: undefined,
  isBack: false,
};

describe.each(STORES)('the payments that a record tells of, over %s', (_kind, makeStore) => {
  let store: Store;
  let records: MoneyRecords;
  let other: MoneyRecords;
  let payments: Payments;
  beforeAll(async () => {
    store = await makeStore();
    records = await store.open();
    other = await store.open();
    payments = createPayments(other);
  });
  afterAll(async () => {
    await records.stop();
    await other.stop();
    await store.close();
  });

  const reader = (clientId: string, customerId?: string) => ({ clientId, customerId });
  const holder = (key: string, clientId = CLIENT, customerId?: string) => ({
    clientId,
    customerId,
    keyOwner: undefined,
    key,
  });

  it('are told by their key, in each state, with what was asked and when', async () => {
    const before = Date.now();
    const transactionId = randomUUID();
    const done = await payments.byKey(holder(await make(records, { transactionId })));
    expect(done).toMatchObject({
      asked: { operation: 'createMoneyOut', customerId: null, ...SHOWN },
      state: 'answered',
      isHeld: false,
      attempts: 1,
      answer: { kind: 'done', status: 201 },
    });
    for (const time of [done?.createdAt, done?.sent?.sentAt, done?.settledAt]) {
      expect(time).toBeGreaterThanOrEqual(before);
      expect(time).toBeLessThanOrEqual(Date.now());
    }
    const sent = await payments.byKey(holder(await make(records, { until: 'sent' })));
    expect(sent).toMatchObject({ state: 'sent', isHeld: false, settledAt: null, answer: null });
    const held = await payments.byKey(holder(await make(records, { until: 'claimed', leaseMs: 600_000 })));
    expect(held).toMatchObject({ state: 'claimed', isHeld: true, sent: null, attempts: 0 });
    const unknown = await payments.byKey(holder(await make(records, { until: 'unknown' })));
    expect(unknown).toMatchObject({ answer: { kind: 'unknown' }, settledAt: null });
    expect(await payments.byKey(holder(await make(records, { until: 'claimed' })))).toBeUndefined();
    expect(await payments.byKey(holder(randomUUID()))).toBeUndefined();
  });

  it('count how often they were sent', async () => {
    const key = await make(records, { until: 'sent' });
    const name = recordName(holder(key));
    await records.sentAgain(name);
    await other.sentAgain(name);
    expect(await payments.byKey(holder(key))).toMatchObject({ attempts: 3 });
    await records.sentAgain(recordName(holder('never used')));
    expect(await payments.byKey(holder('never used'))).toBeUndefined();
  });

  it('are not sent again once they are settled, as the journal tells it, however late that is counted', async () => {
    const name = recordName(holder(await make(records, { until: 'done' })));
    const { written } = await records.journal.head(CLIENT);
    await records.sentAgain(name);
    expect(await records.journal.head(CLIENT)).toMatchObject({ written });
  });

  it('are of a client that is known before anybody has asked for an id', async () => {
    const clientId = randomUUID();
    await make(records, { clientId, until: 'sent' });
    expect(await records.clients()).toContain(clientId);
    expect(await other.clients()).toContain(clientId);
  });

  it('are found where the server that has them takes over between two looks', async () => {
    const key = await make(records, { until: 'sent' });
    let isReplaced = true;
    const failingOver: MoneyRecords = {
      ...records,
      read: async (name) => (isReplaced ? undefined : records.read(name)),
      confirmReads: async () => {
        isReplaced = false;
      },
    };
    expect(await createPayments(failingOver).byKey(holder(key))).toMatchObject({ state: 'sent' });
  });

  it('count once for a client that pays and is served, and not where they are settled among the open ones', async () => {
    const read = async (made: Made) => {
      const record = await records.read(recordName(holder(await make(records, made))));
      if (record === undefined) throw new Error('It was made.');
      return record;
    };
    const found = [await read({ until: 'sent' }), await read({ until: 'done' })];
    const listing: MoneyRecords = {
      ...records,
      clients: async () => [CLIENT],
      // As an earlier version leaves them.
      search: async () => ({ records: found, next: undefined }),
    };
    expect(await createPayments(listing, [CLIENT]).oldUnknown()).toBe(1);
  });

  it('show an id as it was written', async () => {
    const source = randomUUID().toUpperCase();
    const key = await make(records, { shown: { ...SHOWN, source }, until: 'sent' });
    expect(await payments.byKey(holder(key))).toMatchObject({ asked: { source } });
  });

  it('tell since when the oldest is unknown of clients that are served too, and of none before it is sent', async () => {
    const [clientId, nobodys] = [randomUUID(), randomUUID()];
    // As after a failover that has lost which clients have paid.
    const money = createMoney({ records: { ...other, clients: async () => [] }, logger });
    const never = () => Promise.reject(new Error('None of them is due.'));
    const reading = () => ({ isServiceError: () => true, compare: () => ({ kind: 'unreadable' }) as const });
    money.serve(clientId, { repeat: never, look: never, reading, codeOf: () => '', isOver: () => false });
    await make(records, { clientId: nobodys, until: 'sent' });
    await make(records, { clientId, until: 'done' });
    await make(records, { clientId, until: 'claimed', leaseMs: 600_000 });
    expect(await money.payments.oldestUnknown()).toBeUndefined();
    const key = await make(records, { clientId, until: 'sent', leaseMs: 600_000 });
    const { createdAt } = (await payments.byKey(holder(key, clientId))) ?? {};
    expect(await money.payments.oldestUnknown()).toBe(createdAt);
    await money.stop();
  });

  it('are found by the transactions of a page with a few readings of the store, each by whom it belongs to alone', async () => {
    const clientId = randomUUID();
    const made = Array.from({ length: 120 }, () => randomUUID());
    for (const [index, transactionId] of made.entries())
      await make(records, { clientId, transactionId, customerId: index % 2 === 0 ? CUSTOMER : undefined });
    let isAway = false;
    const readings = new Map<string, number>();
    const counted =
      <Asked extends readonly unknown[], Answer>(what: string, read: (...asked: Asked) => Promise<Answer>) =>
      async (...asked: Asked): Promise<Answer> => {
        readings.set(what, (readings.get(what) ?? 0) + 1);
        if (isAway && what === 'held') throw new RecordsUnavailableError('read', undefined);
        return read(...asked);
      };
    const some = createPayments({
      ...other,
      readByTransactions: counted('transactions', other.readByTransactions),
      idKey: counted('key', other.idKey),
      held: counted('held', other.held),
      isPutBack: counted('put back', other.isPutBack),
    });
    const ask = (ids: readonly string[], customerId?: string) =>
      Promise.allSettled(ids.map((id) => some.byTransaction(reader(clientId, customerId), id)));
    const found = await Promise.all([
      ask(made),
      ask(made, CUSTOMER),
      ask([randomUUID(), randomUUID()]),
      Promise.allSettled([some.byTransaction(reader(randomUUID()), made[0] ?? '')]),
    ]);
    const isFound = (answer: PromiseSettledResult<unknown>) =>
      answer.status === 'fulfilled' && answer.value !== undefined;
    expect(found.map((answers) => answers.filter(isFound).length)).toEqual([120, 60, 0, 0]);
    expect(found[0].map(isFound)).toEqual(made.map(() => true));
    expect(found[1].map(isFound)).toEqual(made.map((_id, index) => index % 2 === 0));
    // 242 of one client go in three, 100 at most in each, and those of another by themselves. Of the first 100 all are found.
    expect(Object.fromEntries(readings)).toEqual({ transactions: 4, key: 3, held: 3, 'put back': 3 });
    // What is found needs no look at whether payments are held.
    isAway = true;
    expect((await ask([made[0] ?? '', randomUUID()])).map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
    ]);
  });

  it('have an id that is no hash, and are found by it and by their transaction by those they belong to alone', async () => {
    const clientId = randomUUID();
    const [own, upper] = [randomUUID(), randomUUID().toUpperCase()];
    const key = await make(records, { clientId, customerId: CUSTOMER, transactionId: own });
    await make(records, { clientId, transactionId: upper });
    const payment = await payments.byKey(holder(key, clientId, CUSTOMER));
    const id = payment?.id ?? '';
    expect(id).toMatch(/^[\w-]{43}$/);
    expect(id).not.toBe(recordName(holder(key, clientId, CUSTOMER)).hash);
    expect(await createPayments(records).byKey(holder(key, clientId, CUSTOMER))).toMatchObject({ id });
    for (const who of [reader(clientId), reader(clientId, CUSTOMER)]) {
      expect(await payments.byId(who, id)).toMatchObject({ id });
      expect(await payments.byTransaction(who, own.toUpperCase())).toMatchObject({ id });
    }
    for (const who of [reader(clientId, randomUUID()), reader(randomUUID()), reader(CLIENT, CUSTOMER)]) {
      expect(await payments.byId(who, id)).toBeUndefined();
      expect(await payments.byTransaction(who, own)).toBeUndefined();
    }
    expect(await payments.byTransaction(reader(clientId), upper.toLowerCase())).toBeDefined();
    expect(await payments.byTransaction(reader(clientId, CUSTOMER), upper)).toBeUndefined();
    for (const odd of ['', 'x', randomUUID(), `${id}A`, id.replace(/^./, '!'), 'A'.repeat(43)]) {
      expect(await payments.byId(reader(clientId), odd)).toBeUndefined();
    }
  });

  it('are listed both ways, page by page, each once, and a customer has its own alone', async () => {
    const clientId = randomUUID();
    const made: { key: string; customerId: string | undefined; until: string; operation: string }[] = [];
    const states = ['done', 'refused', 'unknown', 'sent'] as const;
    for (let index = 0; index < 40; index += 1) {
      const until = states[index % 4] ?? 'done';
      const operation = ALL[(index >> 2) % 4] ?? 'createMoneyOut';
      const customerId = index % 3 === 0 ? CUSTOMER : undefined;
      const key = await make(records, { clientId, until, operation, customerId });
      made.push({ key, customerId, until, operation });
    }
    // These are no payments.
    await make(records, { clientId, until: 'claimed' });
    const released = recordName(
      holder(await make(records, { clientId, until: 'sent', key: 'released' }), clientId),
    );
    await records.release(released, 'released');

    const walk = async (search: Partial<PaymentSearch>, size: number, clientsOnly = true) => {
      const found: { hash: string; createdAt: number }[] = [];
      for (let beyond = search.beyond; ; ) {
        const page = await payments.page({ ...EVERY, clientId, ...search, beyond }, size, () => clientsOnly);
        expect(page.payments.length).toBe(page.goesOn ? size : page.payments.length);
        found.push(...page.payments);
        beyond = page.payments.at(-1);
        if (!page.goesOn) return found;
      }
    };
    const whole = await walk({}, 7);
    const hashes = made.map(({ key, customerId }) => recordName(holder(key, clientId, customerId)).hash);
    expect(whole.map(({ hash }) => hash).sort()).toEqual([...hashes].sort());
    const times = whole.map(({ createdAt }) => createdAt);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    expect((await walk({ isBack: true }, 3)).map(({ hash }) => hash).toReversed()).toEqual(
      whole.map(({ hash }) => hash),
    );

    const hashesOf = (wanted: (one: (typeof made)[number]) => boolean) =>
      hashes.filter((_, index) => wanted(made[index] as (typeof made)[number])).sort(); // of the same length
    const found = async (search: Partial<PaymentSearch>) =>
      (await walk(search, 4)).map(({ hash }) => hash).sort();
    expect(await found({ customerId: CUSTOMER })).toEqual(
      hashesOf(({ customerId }) => customerId === CUSTOMER),
    );
    expect(await found({ customerId: randomUUID() })).toEqual([]);
    for (const [kind, states] of [
      ['done', ['done']],
      ['refused', ['refused']],
      ['open', ['unknown', 'sent']],
    ] satisfies [PaymentClass, string[]][]) {
      expect(await found({ classes: [kind] })).toEqual(hashesOf(({ until }) => states.includes(until)));
    }
    const operations = ['refundTransaction'] as const;
    expect(await found({ operations, customerId: CUSTOMER })).toEqual(
      hashesOf((one) => one.operation === 'refundTransaction' && one.customerId === CUSTOMER),
    );
    const middle = times[20] ?? 0;
    const [later, sooner] = [await found({ from: middle }), await found({ to: middle })];
    expect(new Set([...later, ...sooner]).size).toBe(hashes.length);
    expect(later.length + sooner.length).toBe(hashes.length);
    expect(await found({ from: middle, to: middle })).toEqual([]);
    expect(await found({ from: 0, to: 253_402_300_799_999 })).toEqual([...hashes].sort());
    expect(await found({ to: middle, isBack: true })).toEqual(sooner);
    // The place may be one of a search without the bound, on its other side.
    const [newest, oldest] = [whole[0], whole.at(-1)];
    expect(await found({ to: middle, beyond: newest })).toEqual(sooner);
    expect(await found({ from: middle, beyond: oldest, isBack: true })).toEqual(later);
    expect((await payments.page({ ...EVERY, clientId }, 5, () => false)).payments).toEqual([]);
  });

  it('are searched no longer than is allowed, and further from where a search ended', async () => {
    const clientId = randomUUID();
    const keys: string[] = [];
    for (let index = 0; index < 9; index += 1) keys.push(await make(records, { clientId }));
    const oldest = recordName(holder(keys[0] ?? '', clientId)).hash;
    const isOldest = ({ hash }: { hash: string }) => hash === oldest;
    const asked: boolean[] = [];
    const never = async () => asked.push(true) === 0;
    const first = await payments.page({ ...EVERY, clientId }, 2, isOldest, never);
    expect(first).toMatchObject({ payments: [], goesOn: true, endedAt: { hash: expect.any(String) } });
    expect(asked).toHaveLength(1);
    const beyond = first.endedAt;
    const rest = await payments.page({ ...EVERY, clientId, beyond }, 2, isOldest);
    expect(rest).toMatchObject({ payments: [{ hash: oldest }], goesOn: false, endedAt: undefined });
    // A page that is full, or the last one, asks nobody.
    await payments.page({ ...EVERY, clientId }, 2, () => true, never);
    await payments.page({ ...EVERY, clientId }, 20, isOldest, never);
    expect(asked).toHaveLength(1);
  });

  it.each(['sent', 'done', 'refused'] as const)(
    'are not those of another owner of the key, where theirs is nobody who is told apart: %s',
    async (until) => {
      const key = await make(records, { until });
      const name = recordName({ clientId: CLIENT, customerId: undefined, key });
      expect(await records.read(name)).toMatchObject({ keyOwner: '' });
      const claim = { ...NOBODYS, owner: 'b', inputHash: inputHash('createMoneyOut', key), leaseMs: 0 };
      expect(await other.claim(name, { ...claim, keyOwner: 'alma' })).toEqual({ state: 'not-yours' });
    },
  );

  it('stand once where a key is used again after its record has ended', async () => {
    const clientId = randomUUID();
    const key = await make(records, { clientId, until: 'refused' });
    const name = recordName(holder(key, clientId));
    await store.endSooner(name, RETENTION_MS);
    // A time of its own, by the clock of any store.
    const before = Date.now();
    await until(() => Date.now() > before + 1);
    await make(records, { clientId, key, until: 'done' });
    await make(records, { clientId, until: 'done' });
    for (const isBack of [false, true]) {
      const first = await payments.page({ ...EVERY, clientId, isBack }, 1, () => true);
      const beyond = first.payments[0];
      const second = await payments.page({ ...EVERY, clientId, isBack, beyond }, 1, () => true);
      const hashes = [...first.payments, ...second.payments].map(({ hash }) => hash);
      expect(new Set(hashes).size).toBe(2);
      expect(second.goesOn).toBe(false);
    }
    const whole = await payments.page({ ...EVERY, clientId }, 20, () => true);
    expect(whole.payments.map(({ answer }) => answer?.kind)).toEqual(['done', 'done']);
  });

  it('are described anew when another input takes over a key under which nothing was sent', async () => {
    const key = await make(records, { until: 'claimed' });
    await make(records, { key, operation: 'createPennyValidation', until: 'sent' });
    expect(await payments.byKey(holder(key))).toMatchObject({
      asked: { operation: 'createPennyValidation' },
    });
  });
});

it('payments of one millisecond are listed each once, whatever they are, over node:sqlite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
  const now = Date.now();
  const records = openSqliteRecords(join(folder, 'money.sqlite'), () => now);
  const payments = createPayments(records);
  const hashes: string[] = [];
  for (let index = 0; index < 24; index += 1) {
    const operation = ALL[index % 4] ?? 'createMoneyOut';
    const key = await make(records, { operation, until: 'refused' });
    hashes.push(recordName({ clientId: CLIENT, customerId: undefined, key }).hash);
  }
  for (const isBack of [false, true]) {
    const found: string[] = [];
    for (let beyond: PaymentSearch['beyond']; ; ) {
      const page = await payments.page({ ...EVERY, isBack, beyond }, 1, () => true);
      found.push(...page.payments.map(({ hash }) => hash));
      beyond = page.payments.at(-1);
      if (!page.goesOn) break;
    }
    expect(found).toEqual(isBack ? hashes.toSorted() : hashes.toSorted().toReversed());
  }
  await records.stop();
  await rm(folder, { recursive: true, force: true });
});

it('payments whose record has expired are met once, over Redis', async () => {
  await using redis = await startRedis();
  const records = patient(
    await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger }),
  );
  try {
    const payments = createPayments(records);
    const keys: string[] = [];
    for (let index = 0; index < 12; index += 1)
      keys.push(await make(records, { until: 'refused', customerId: CUSTOMER }));
    const [kept, ...gone] = keys.map((key) => recordName({ clientId: CLIENT, customerId: CUSTOMER, key }));
    const sets = await redis.admin.keys('*:createMoneyOut:refused');
    const left = () => Promise.all(sets.map((set) => redis.admin.zcard(set)));
    expect(await left()).toEqual([12, 12]);
    expect(await payments.page(EVERY, 3, () => true)).toMatchObject({ goesOn: true });
    for (const name of gone) await redis.admin.pexpire(keyOf(name), 0);
    // A read goes on where Redis takes no writes.
    await redis.admin.config('SET', 'min-replicas-to-write', 1);
    const whole = await payments.page(EVERY, 3, () => true);
    expect(whole).toMatchObject({ payments: [{ hash: kept?.hash }], goesOn: false });
    expect(await left()).toEqual([12, 12]);
    await redis.admin.config('SET', 'min-replicas-to-write', 0);
    for (const customerId of [undefined, CUSTOMER]) {
      const page = await payments.page({ ...EVERY, customerId }, 3, () => true);
      expect(page).toMatchObject({ payments: [{ hash: kept?.hash }], goesOn: false });
    }
    expect(await left()).toEqual([1, 1]);
  } finally {
    await records.stop();
  }
});

it('a payment under a key that was used again is not found by the transaction of the one before, over Redis', async () => {
  await using redis = await startRedis();
  const records = patient(
    await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger }),
  );
  try {
    const payments = createPayments(records);
    const [before, now] = [randomUUID(), randomUUID()];
    const whole = { clientId: CLIENT, customerId: undefined };
    const key = await make(records, { transactionId: before });
    await redis.admin.pexpire(keyOf(recordName({ ...whole, key })), 0);
    // As it was named on the last day on which a record of it was kept.
    for (const name of await redis.admin.keys('*:transactions:*')) {
      await redis.admin.rename(
        name,
        name.replace(/\d+(?=:[^:]*$)/, (day) => String(Number(day) - RETENTION_DAYS)),
      );
    }
    await make(records, { key, transactionId: now });
    expect(await payments.byTransaction(whole, now)).toMatchObject({ answer: { kind: 'done' } });
    expect(await payments.byTransaction(whole, before)).toBeUndefined();
  } finally {
    await records.stop();
  }
});

describe('the payments of a version before', () => {
  it('are described once their caller comes back, over node:sqlite, and that version reads on', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
    const path = join(dataDir, 'money.sqlite');
    const name = recordName({ clientId: CLIENT, customerId: undefined, key: 'before' });
    const hash = inputHash('createMoneyOut', 'before');
    const old = new DatabaseSync(path);
    old.exec(`CREATE TABLE intent (client_id TEXT NOT NULL, hash TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'answered')), owner TEXT NOT NULL, lease_until INTEGER NOT NULL,
      input_hash TEXT NOT NULL, body TEXT, sent_at INTEGER, answer_kind TEXT, status INTEGER, text TEXT,
      expires_at INTEGER NOT NULL, PRIMARY KEY (client_id, hash)) STRICT, WITHOUT ROWID`);
    const writeOld = `INSERT INTO intent (client_id, hash, state, owner, lease_until, input_hash, body, sent_at, expires_at)
      VALUES (?, ?, 'sent', 'a', 0, ?, '{}', ?, ?)`;
    old.prepare(writeOld).run(CLIENT, name.hash, hash, Date.now() - 5_000, Date.now() + 600_000);
    const records = openSqliteRecords(path);
    const payments = createPayments(records);
    const holder = { clientId: CLIENT, customerId: undefined, keyOwner: undefined, key: 'before' };
    expect(await payments.byKey(holder)).toMatchObject({ asked: null, state: 'sent', attempts: 1 });
    expect((await payments.page(EVERY, 5, () => true)).payments).toEqual([]);
    await make(records, { key: 'before', until: 'claimed' });
    expect(await payments.byKey(holder)).toMatchObject({ asked: { operation: 'createMoneyOut' } });
    expect((await payments.page(EVERY, 5, () => true)).payments).toHaveLength(1);
    // What that version writes is found by the index as well.
    old
      .prepare("UPDATE intent SET state = 'answered', answer_kind = 'done', status = 201, text = '{}'")
      .run();
    expect((await payments.page({ ...EVERY, classes: ['done'] }, 5, () => true)).payments).toHaveLength(1);
    // It takes over a key under which nothing was sent, for another input.
    await make(records, { key: 'taken', until: 'claimed' });
    old
      .prepare("UPDATE intent SET state = 'sent', sent_at = 1, input_hash = 'other' WHERE state = 'claimed'")
      .run();
    expect(await payments.byKey({ ...holder, key: 'taken' })).toMatchObject({ asked: null });
    old.close();
    await records.stop();
    await rm(dataDir, { recursive: true });
  });

  it('are described once their caller comes back, over Redis', async () => {
    await using redis = await startRedis();
    const { openRedisRecords } = await import('../../src/money/redis/redis-record.ts');
    const { silentLogger } = await import('../../src/common/logger.ts');
    const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
    const payments = createPayments(records);
    const name = recordName({ clientId: CLIENT, customerId: undefined, key: 'before' });
    const hash = inputHash('createMoneyOut', 'before');
    const sentAt = String(Date.now() - 5_000);
    await redis.admin.hset(`pasarela:money:{${CLIENT}}:${name.hash}`, {
      state: 'sent',
      owner: 'a',
      lease: 0,
      input: hash,
      body: '{}',
      sentAt,
    });
    const holder = { clientId: CLIENT, customerId: undefined, keyOwner: undefined, key: 'before' };
    expect(await payments.byKey(holder)).toMatchObject({ asked: null, keyOwner: null, attempts: 1 });
    await make(records, { key: 'before', until: 'claimed' });
    expect(await payments.byKey(holder)).toMatchObject({
      asked: { operation: 'createMoneyOut' },
      createdAt: Number(sentAt),
    });
    // Such a key is everybody's, as that version knew no owners.
    expect(await payments.byKey({ ...holder, keyOwner: 'alma' })).toMatchObject({ keyOwner: null });
    expect((await payments.page(EVERY, 5, () => true)).payments).toHaveLength(1);
    await records.stop();
  });

  it('are found by a call for the whole client once their customer comes back, over Redis', async () => {
    await using redis = await startRedis();
    const { openRedisRecords } = await import('../../src/money/redis/redis-record.ts');
    const { silentLogger } = await import('../../src/common/logger.ts');
    const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
    const named = (customerId: string | undefined) =>
      recordName({ clientId: CLIENT, customerId, key: 'ours' });
    const theirs = named('00000000-0000-4000-8000-000000000001');
    const input = inputHash('createMoneyOut', 'ours');
    await redis.admin.hset(`pasarela:money:{${CLIENT}}:${theirs.hash}`, {
      ...{ state: 'sent', owner: 'a', lease: 0, input, body: '{}', sentAt: String(Date.now() - 5_000) },
    });
    const alike = { ...NOBODYS, inputHash: input, leaseMs: 0 };
    const again = await records.claim(theirs, { ...alike, owner: 'theirs', isCustomers: true });
    expect(again).toMatchObject({ state: 'sent' });
    const whole = await records.claim(named(undefined), { ...alike, owner: 'whole' });
    expect(whole).toEqual({ state: 'customers', answer: undefined });
    await records.stop();
  });

  it('may come after: it finds what it knows in a record of this version, over Redis', async () => {
    await using redis = await startRedis();
    const { openRedisRecords } = await import('../../src/money/redis/redis-record.ts');
    const { silentLogger } = await import('../../src/common/logger.ts');
    const records = patient(await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger));
    const fieldsOf = (key: string) => {
      const { clientId, hash } = recordName({ clientId: CLIENT, customerId: undefined, key });
      return redis.admin.hgetall(`pasarela:money:{${clientId}}:${hash}`);
    };
    const input = (key: string) => inputHash('createMoneyOut', key);
    const claimed = await make(records, { until: 'claimed' });
    const free = { owner: claimed, lease: expect.stringMatching(/^\d+$/), input: input(claimed), whose: '' };
    expect(await fieldsOf(claimed)).toMatchObject({ state: 'claimed', ...free });
    const sent = await make(records, { until: 'sent', body: 'bytes' });
    expect(await fieldsOf(sent)).toMatchObject({
      ...{ state: 'sent', owner: sent, lease: free.lease, input: input(sent), whose: '', body: 'bytes' },
      sentAt: expect.stringMatching(/^\d{13}$/),
    });
    for (const [until, status] of [
      ['done', '201'],
      ['refused', '400'],
      ['unknown', '400'],
    ] as const) {
      const key = await make(records, { until, text: 'as it was' });
      expect(await fieldsOf(key)).toMatchObject({
        ...{ state: 'answered', input: input(key), kind: until, text: 'as it was' },
        // It takes a record without an owner for everybody's, and tells any owner its answer.
        whose: '',
        // Of what is done it asks for no status.
        ...(until !== 'done' && { status }),
      });
    }
    await records.stop();
  });
});
