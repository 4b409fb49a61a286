import { expect, it } from 'vitest';
import {
  finish,
  forget,
  type Intent,
  memoryIntents,
  pay,
  unsettled,
} from '../../packages/client/src/index.ts';
import { done, INPUT, lost, MUTATION, refusedCall, result, scripted } from './scripted.ts';

/** A store with a payment whose first call got no answer, and its intent as the next start of the app lists it. */
async function lostPayment() {
  const store = memoryIntents();
  await pay(scripted(lost).source, MUTATION, INPUT, { store, patienceMs: 0 });
  const [intent] = await unsettled(store);
  return { store, intent: intent ?? expect.unreachable() };
}

it('goes on with the key of the payment, and tells how it ended', async () => {
  const { store, intent } = await lostPayment();
  const { source, keys } = scripted(done);
  const outcome = await finish(source, MUTATION, intent, { store });
  expect(outcome).toMatchObject({ status: 'done', intent: { idempotencyKey: intent.idempotencyKey } });
  expect(keys).toEqual([intent.idempotencyKey]);
  await outcome.acknowledge();
  expect(await unsettled(store)).toEqual([]);
});

/** What another tab does between the list and `finish`. */
const MEANWHILE: Readonly<
  Record<string, (listed: Awaited<ReturnType<typeof lostPayment>>) => Promise<unknown>>
> = {
  done: async ({ store }) => {
    const outcome = await pay(scripted(done).source, MUTATION, INPUT, { store });
    await outcome.acknowledge();
  },
  refused: async ({ store }) => {
    const { source, states } = scripted(result('PreconditionError', { code: 'INSUFFICIENT_FUNDS' }));
    states.push(async () => ({ data: { payment: { state: 'REFUSED' } } }) as never);
    await pay(source, MUTATION, INPUT, { store });
  },
  unknown: ({ store, intent }) => forget(store, intent.idempotencyKey),
};

it.each(Object.keys(MEANWHILE))(
  'sends nothing where another tab has ended the payment: %s',
  async (status) => {
    const listed = await lostPayment();
    await MEANWHILE[status]?.(listed);
    const { source, keys } = scripted(done);
    const outcome = await finish(source, MUTATION, listed.intent, { store: listed.store });
    expect(outcome.status).toBe(status);
    expect(keys).toEqual([]);
  },
);

it('does not touch another payment of the same input, which somebody has begun since', async () => {
  const { store, intent } = await lostPayment();
  await forget(store, intent.idempotencyKey);
  await pay(scripted(lost).source, MUTATION, INPUT, { store, patienceMs: 0 });
  const before = await store.load();
  const { source, keys } = scripted(done);
  expect(await finish(source, MUTATION, intent, { store })).toMatchObject({
    status: 'unknown',
    safeToRetry: false,
  });
  expect(keys).toEqual([]);
  expect(await store.load()).toEqual(before);
});

it('asks again while it is unclear, within its patience', async () => {
  const { store, intent } = await lostPayment();
  const { source, keys } = scripted(lost, refusedCall('RATE_LIMITED'), done);
  expect((await finish(source, MUTATION, intent, { store })).status).toBe('done');
  expect(new Set(keys)).toEqual(new Set([intent.idempotencyKey]));
  expect(keys).toHaveLength(3);
});

it('throws, and sends nothing, with another mutation than that of the intent, or with a store that cannot be read', async () => {
  const { store, intent } = await lostPayment();
  const { source, keys } = scripted(done);
  const other: Intent = { ...intent, mutation: 'createMoneyOut' };
  await expect(finish(source, MUTATION, other, { store })).rejects.toThrow(
    '`createMoneyOut`. Nothing was sent',
  );
  const broken = { ...store, load: () => Promise.reject(new Error('The disk is gone.')) };
  await expect(finish(source, MUTATION, intent, { store: broken })).rejects.toThrow('The disk is gone.');
  expect(keys).toEqual([]);
});
