import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { MoneyOrder } from '../../src/money/call.ts';
import { createMoney } from '../../src/money/execute.ts';
import { ownerDigest, type RecordName, recordName } from '../../src/money/intent.ts';
import type { SettlingCalls } from '../../src/money/settling/open-payment.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { recordingLogger } from '../helpers/events.ts';
import { fastAmbient, order } from './orders.ts';
import { startUpstream } from './upstream.ts';

const KEY = 'a key of two owners';
const ASKED_ABOUT = 'asked about';
const isAskedAbout = ({ hash }: RecordName): boolean => hash.startsWith(ASKED_ABOUT);

it('what a second owner of a key has left unknown is told, and looked after, under its own name, however many others are asked about', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-owner-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const upstream = cleanup.use(await startUpstream());
  const ambient = fastAmbient(30);
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'), ambient.now);
  cleanup.defer(() => records.stop());
  const logger = recordingLogger();
  const looked = Promise.withResolvers<RecordName>();
  const money = createMoney({
    records: {
      ...records,
      async takeOpen(name) {
        if (!isAskedAbout(name)) looked.resolve(name);
        return undefined;
      },
      // What is asked about stays open.
      read: async (name) =>
        isAskedAbout(name)
          ? ({ answer: null } as Awaited<ReturnType<typeof records.read>>)
          : records.read(name),
    },
    logger,
    ambient,
  });
  cleanup.defer(() => money.stop());
  const never = () => Promise.reject(new Error('Nothing is taken, so that nobody asks.'));
  const calls: SettlingCalls = {
    ...{ repeat: never, look: never, codeOf: () => '', isOver: () => false },
    reading: () => ({ isServiceError: () => true, compare: () => ({ kind: 'unreadable' }) }),
  };
  const later = { calls: () => calls, until: Number.POSITIVE_INFINITY, credential: 'token' };
  const pay = (made: MoneyOrder) =>
    money.execute(made, { deadline: ambient.now() + 1_800_000, signal: new AbortController().signal });
  const [hers, his] = ['ana', 'ben'].map((keyOwner) => ({
    ...order(upstream.url, 'createInternalTransaction', KEY, { keyOwner }),
    later,
  }));
  if (hers === undefined || his === undefined) throw new Error('There are two.');
  expect(await pay(hers)).toMatchObject({ kind: 'done' });
  for (let number = 0; number < 100; number += 1)
    money.remember({ clientId: his.clientId, hash: `${ASKED_ABOUT} ${number}` }, later);
  upstream.faults.push('reset-after');
  expect(await pay(his)).toMatchObject({ kind: 'unknown' });

  expect(await looked.promise).toEqual(recordName(his, ownerDigest(his)));
  await money.stop();
  const ids = await Promise.all([hers, his].map(async (made) => (await money.payments.byKey(made))?.id));
  expect(new Set(ids).size).toBe(2);
  const lines = logger.lines.filter(({ message }) => message === 'payment');
  expect(lines.map(({ fields }) => fields)).toMatchObject(ids.map((paymentId) => ({ paymentId })));
});
