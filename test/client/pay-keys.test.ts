import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  finish,
  forget,
  forgetSettled,
  type IntentStore,
  memoryIntents,
  pay,
  type Source,
  typed,
  unsettled,
} from '../../packages/client/src/index.ts';
import { done, INPUT, lost, MUTATION, refusedCall, result, scripted } from './scripted.ts';

/** A key that is made of the credit that a refund returns: every press and every browser has the same. */
const newKey = () => 'refund-of-a-credit';
const OTHER = { amount: '1.00', note: 'another reason' };
const reused = result('ConflictError', {
  code: 'IDEMPOTENCY_KEY_REUSED',
  message: 'The key was used before.',
});
const told = (state: string) => async () => ({ data: { payment: { state } } }) as never;

it.each([
  ['may have moved money', lost],
  ['has moved it', done],
])('a key that another input %s under is not sent', async (_, first) => {
  const before = scripted(first);
  const { source, keys } = scripted(done);
  const store = memoryIntents();
  const outcome = await pay(before.source, MUTATION, INPUT, { store, newKey, patienceMs: 0 });
  await outcome.acknowledge();
  await expect(pay(source, MUTATION, OTHER, { store, newKey })).rejects.toThrow(
    /`newKey` has to give each payment its own key/,
  );
  expect(keys).toEqual([]);
  // The first is what it was.
  expect((await pay(source, MUTATION, INPUT, { store, newKey })).status).toBe('done');
  expect(keys).toEqual([newKey()]);
});

it.each([
  ['a refusal', result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' }), INPUT],
  [
    'a refusal, with what is wrong put right',
    result('ValidationError', { code: 'INVALID_INPUT', message: 'No.' }),
    OTHER,
  ],
  ['a call that moved nothing', refusedCall('FORBIDDEN'), INPUT],
])('after %s the same key is sent again, and each intent is told its own end', async (_, first, second) => {
  const { source, keys } = scripted(first, lost, done);
  const store = memoryIntents();
  expect((await pay(source, MUTATION, INPUT, { store, newKey })).status).toBe('refused');
  const outcome = await pay(source, MUTATION, second, { store, newKey });
  expect(outcome).toMatchObject({ status: 'done', intent: { input: second } });
  expect(keys).toEqual([newKey(), newKey(), newKey()]);
  expect(await unsettled(store)).toEqual([outcome.intent]);
  await outcome.acknowledge();
  await forgetSettled(store);
  expect(await store.load()).toEqual([]);
});

it('two browsers with one key: who is told that the key is used is not told that nothing has moved', async () => {
  const { source, looks, states } = scripted(reused);
  states.push(told('DONE'));
  const store = memoryIntents();
  const outcome = await pay(source, MUTATION, OTHER, { store, newKey });
  expect(outcome).toMatchObject({
    status: 'unknown',
    safeToRetry: false,
    code: 'IDEMPOTENCY_KEY_REUSED',
    message: 'The key was used before.',
  });
  expect(looks).toEqual([newKey()]);
  expect(await unsettled(store)).toHaveLength(1);
});

it('a key that is used, and whose payment the gateway knows to be refused, has moved nothing', async () => {
  const { source, states } = scripted(reused);
  states.push(told('REFUSED'));
  expect(await pay(source, MUTATION, OTHER, { store: memoryIntents(), newKey })).toMatchObject({
    status: 'refused',
    code: 'IDEMPOTENCY_KEY_REUSED',
  });
});

it('a payment that was sent, and let go of elsewhere, is unknown also where another input has its key since', async () => {
  const store = memoryIntents();
  const { source, keys } = scripted(async () => {
    await forget(store, newKey());
    await pay(scripted(done).source, MUTATION, OTHER, { store, newKey });
    return await lost();
  });
  expect(await pay(source, MUTATION, INPUT, { store, newKey })).toMatchObject({
    status: 'unknown',
    message: 'It was let go of elsewhere.',
  });
  expect(keys).toEqual([newKey()]);
});

describe('who still shows the refusal of a payment, while another of the same key is under way', () => {
  /** Until the clock has gone on: two payments are told apart by when they were made. */
  const later = (than: string) => vi.waitUntil(() => new Date().toISOString() > than, { interval: 1 });

  async function refusedAndPressedAgain() {
    const store = memoryIntents();
    const refused = result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' });
    const shown = await pay(scripted(refused).source, MUTATION, INPUT, { store, newKey });
    expect(shown.status).toBe('refused');
    await later(shown.intent.createdAt);
    return { store, shown, refused };
  }

  it('does not close that one: it is listed, kept at sign-out, and refused only once that is final', async () => {
    const { store, shown, refused } = await refusedAndPressedAgain();
    const second = await pay(
      scripted(async () => {
        await shown.acknowledge();
        return await lost();
      }).source,
      MUTATION,
      INPUT,
      { store, newKey, patienceMs: 0 },
    );
    expect(second.status).toBe('unknown');
    expect(await unsettled(store)).toMatchObject([{ createdAt: second.intent.createdAt }]);
    await forgetSettled(store);
    const { source, states } = scripted(refused);
    states.push(told('IN_FLIGHT'));
    const third = await pay(source, MUTATION, INPUT, { store, newKey, patienceMs: 0 });
    expect(third).toMatchObject({ status: 'unknown', safeToRetry: true, code: 'INSUFFICIENT_FUNDS' });
  });

  it('does not say that its success was seen', async () => {
    const { store, shown } = await refusedAndPressedAgain();
    const second = await pay(scripted(done).source, MUTATION, INPUT, { store, newKey });
    await shown.acknowledge();
    expect(await unsettled(store)).toEqual([second.intent]);
    await second.acknowledge();
    expect(await unsettled(store)).toEqual([]);
  });
});

it('who shows a refusal does not say that the success was seen which an earlier call has brought since', async () => {
  const store = memoryIntents();
  const first = Promise.withResolvers<Awaited<ReturnType<typeof done>>>();
  const paying = pay(scripted(() => first.promise).source, MUTATION, INPUT, { store });
  const { source, states } = scripted(
    result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' }),
  );
  states.push(told('REFUSED'));
  const shown = await pay(source, MUTATION, INPUT, { store });
  expect(shown.status).toBe('refused');
  first.resolve(await done());
  const outcome = await paying;
  await shown.acknowledge();
  expect(await unsettled(store)).toEqual([outcome.intent]);
});

it('a success that an earlier call brings once a refusal was seen is still to be shown, and the next press is no other payment', async () => {
  const store = memoryIntents();
  const first = Promise.withResolvers<Awaited<ReturnType<typeof done>>>();
  const paying = pay(scripted(() => first.promise).source, MUTATION, INPUT, { store });
  const { source, states } = scripted(
    result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' }),
  );
  states.push(told('REFUSED'));
  const shown = await pay(source, MUTATION, INPUT, { store });
  expect(shown.status).toBe('refused');
  await shown.acknowledge();
  first.resolve(await done());
  const outcome = await paying;
  expect(outcome.status).toBe('done');
  expect(await unsettled(store)).toEqual([outcome.intent]);
  const { source: next, keys } = scripted(done);
  expect((await pay(next, MUTATION, INPUT, { store })).status).toBe('done');
  expect(keys).toEqual([]);
});

const SHARED = { newKey, sharedKey: true, patienceMs: 300 };

it.each([
  ['a refusal', result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' })],
  ['an error for good', refusedCall('FORBIDDEN')],
  ['an error that passes', refusedCall('STORE_UNAVAILABLE')],
])('two devices with one key: %s speaks for its own call alone, and the key stays', async (_what, told) => {
  const { source, keys, states } = scripted(told);
  // The other device's call may be on its way.
  for (let times = 0; times < 9; times += 1) states.push(async () => ({ data: { payment: null } }) as never);
  const store = memoryIntents();
  const outcome = await pay(source, MUTATION, INPUT, { store, ...SHARED });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true });
  expect(await unsettled(store)).toEqual([outcome.intent]);
  // That payment has moved.
  const { source: later, keys: more } = scripted(done);
  expect((await finish(later, MUTATION, outcome.intent, { store })).status).toBe('done');
  expect(new Set([...keys, ...more])).toEqual(new Set([newKey()]));
});

it('two devices with one key: what the gateway knows to be refused is refused, and the next press speaks for itself', async () => {
  const refused = result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' });
  const { source, states } = scripted(refused);
  states.push(told('REFUSED'));
  const store = memoryIntents();
  expect(await pay(source, MUTATION, INPUT, { store, ...SHARED })).toMatchObject({
    status: 'refused',
    code: 'INSUFFICIENT_FUNDS',
  });
  expect(await unsettled(store)).toEqual([]);
  expect(await pay(source, MUTATION, INPUT, { store, ...SHARED })).toMatchObject({ status: 'unknown' });
});

describe('a refund whose input is at fault', () => {
  const REFUND = typed<
    { readonly refundTransaction: { readonly __typename: string } },
    { readonly input: { readonly idempotencyKey: string; readonly amount: string } }
  >('mutation Refund($input: RefundTransactionInput!) { refundTransaction(input: $input) { __typename } }');
  const answered = (answer: object) => async () => ({ data: { refundTransaction: answer } }) as never;
  const faulty = answered({ __typename: 'ValidationError', code: 'INVALID_INPUT', message: 'In full.' });
  const returned = answered({ __typename: 'RefundTransactionSuccess' });
  const PART = { amount: '300.00' };
  const WHOLE = { amount: '1000.00' };

  it('is refused at once with a shared key, and the key is free for the right amount', async () => {
    const { source, keys } = scripted(faulty, returned);
    const store = memoryIntents();
    const first = await pay(source, REFUND, PART, { store, ...SHARED });
    expect(first).toMatchObject({ status: 'refused', code: 'INVALID_INPUT' });
    expect(keys).toEqual([newKey()]);
    expect(await unsettled(store)).toEqual([]);
    const second = await pay(source, REFUND, WHOLE, { store, ...SHARED });
    expect(second).toMatchObject({ status: 'done', intent: { input: WHOLE } });
    expect(keys).toEqual([newKey(), newKey()]);
  });

  it('is refused behind a call without an answer, which would be refused too', async () => {
    const { source } = scripted(lost, faulty);
    expect(await pay(source, REFUND, PART, { store: memoryIntents(), newKey })).toMatchObject({
      status: 'refused',
    });
  });

  it('stays unknown where the gateway has called it unknown, as it has sent that input', async () => {
    const unknown = answered({ __typename: 'OutcomeUnknown', safeToRetry: false, message: 'Look first.' });
    const store = memoryIntents();
    const { intent } = await pay(scripted(unknown).source, REFUND, WHOLE, { store, ...SHARED });
    const { source, states } = scripted(faulty);
    states.push(told('DONE'));
    expect((await finish(source, REFUND, intent, { store })).status).toBe('unknown');
    expect(await unsettled(store)).toHaveLength(1);
  });

  it('speaks for its own call alone of a payment that is no refund', async () => {
    const { source } = scripted(result('ValidationError', { code: 'INVALID_INPUT', message: 'No.' }));
    const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents(), ...SHARED, patienceMs: 0 });
    expect(outcome).toMatchObject({ status: 'unknown', code: 'INVALID_INPUT' });
  });
});

describe('a key that is derived from a draft', () => {
  const DAY_MS = 86_400_000;
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());
  /** The clock stands still, so that no patience would ever be over. */
  const patienceMs = -1;
  const press = (source: Source, store: IntentStore, keySince: Date | string | number) =>
    pay(source, MUTATION, INPUT, { store, newKey, sharedKey: true, keySince, patienceMs });

  it('is sent by nobody 29 days after the draft was made, where the payment of another device may be forgotten', async () => {
    const { source, keys } = scripted(done);
    const made = Date.now();
    vi.setSystemTime(made + 29 * DAY_MS - 1);
    expect((await press(source, memoryIntents(), made)).status).toBe('done');
    expect(keys).toHaveLength(1);
    vi.setSystemTime(made + 29 * DAY_MS);
    for (const since of [made, new Date(made), new Date(made).toISOString()]) {
      const store = memoryIntents();
      expect(await press(source, store, since)).toMatchObject({ status: 'unknown', safeToRetry: false });
      expect(await store.load()).toEqual([]);
    }
    expect(keys).toHaveLength(1);
  });

  it('is not sent later either by a device that has kept it, also from a version that did not keep since when', async () => {
    const made = Date.now();
    for (const isOld of [false, true]) {
      const store = memoryIntents();
      vi.setSystemTime(made + 28 * DAY_MS);
      const first = scripted(lost);
      if (isOld) await pay(first.source, MUTATION, INPUT, { store, newKey, sharedKey: true, patienceMs });
      else await press(first.source, store, made);
      expect(first.keys).toHaveLength(1);
      vi.setSystemTime(made + 40 * DAY_MS);
      const { source, keys } = scripted(done);
      expect(await press(source, store, made)).toMatchObject({ status: 'unknown', safeToRetry: false });
      const [kept] = await unsettled(store);
      if (!isOld && kept !== undefined) await finish(source, MUTATION, kept, { store });
      expect(keys).toEqual([]);
    }
  });

  it('is not sent where its time cannot be read', async () => {
    const { source, keys } = scripted(done);
    await expect(press(source, memoryIntents(), 'last week')).rejects.toThrow('`keySince` has to be a time');
    expect(keys).toEqual([]);
  });
});
