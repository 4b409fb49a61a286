import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { finish, type IntentStore, memoryIntents, pay, unsettled } from '../../packages/client/src/index.ts';
import { done, INPUT, MUTATION, refusedCall, result, scripted } from './scripted.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const LEFT = new Error('The person has left the page.');

it('a payment that was left before anything was sent throws, and sends nothing', async () => {
  const { source, keys } = scripted(done);
  const store = memoryIntents();
  await expect(pay(source, MUTATION, INPUT, { store, signal: AbortSignal.abort(LEFT) })).rejects.toBe(LEFT);
  expect(keys).toEqual([]);
  expect(await store.load()).toEqual([]);
});

it('a payment that is left while its store is asked throws, and sends and keeps nothing', async () => {
  const { source, keys } = scripted(done);
  const leaving = new AbortController();
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<[]>();
  const saved: unknown[] = [];
  const store: IntentStore = {
    load() {
      asked.resolve();
      return answer.promise;
    },
    save: (intents) => void saved.push(intents),
  };
  const paying = expect(pay(source, MUTATION, INPUT, { store, signal: leaving.signal })).rejects.toBe(LEFT);
  await asked.promise;
  leaving.abort(LEFT);
  // A rejection that nobody hears would have ended the process by then.
  await new Promise(setImmediate);
  answer.resolve([]);
  await paying;
  expect(keys).toEqual([]);
  expect(saved).toEqual([]);
});

it('a payment that is left while its call is under way is told as unknown, and goes on under its key', async () => {
  const leaving = new AbortController();
  const { source, keys } = scripted(() => {
    leaving.abort(LEFT);
    return new Promise(() => {});
  });
  const store = memoryIntents();
  const outcome = await pay(source, MUTATION, INPUT, { store, signal: leaving.signal });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true, cause: LEFT });
  expect(await unsettled(store)).toEqual([outcome.intent]);
  const { source: later, keys: more } = scripted(done);
  expect((await finish(later, MUTATION, outcome.intent, { store })).status).toBe('done');
  expect(more).toEqual(keys);
});

it('a payment that is left between two calls sends no other, and leaves no timer', async () => {
  const leaving = new AbortController();
  const { source, keys } = scripted(refusedCall('RATE_LIMITED', { retryAfterMs: 50_000 }), done);
  const paying = pay(source, MUTATION, INPUT, { store: memoryIntents(), signal: leaving.signal });
  await vi.waitUntil(() => keys.length === 1 && vi.getTimerCount() === 1);
  leaving.abort(LEFT);
  expect(await paying).toMatchObject({ status: 'unknown', safeToRetry: true });
  expect(keys).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
});

it('a payment that is left while the gateway is asked what became of it stays unknown', async () => {
  const leaving = new AbortController();
  const store = memoryIntents();
  const unknown = { __typename: 'OutcomeUnknown', safeToRetry: false, message: 'Look first.' };
  const { source, states, keys } = scripted(async () => ({ data: { pay: unknown } }) as never);
  await pay(source, MUTATION, INPUT, { store });
  states.push(() => {
    leaving.abort(LEFT);
    return new Promise(() => {});
  });
  const again = await pay(source, MUTATION, INPUT, { store, signal: leaving.signal });
  expect(again).toMatchObject({ status: 'unknown', safeToRetry: false });
  expect(keys).toHaveLength(1);
});

it('a payment that is left while its intent is being saved sends nothing, and its key is kept', async () => {
  const leaving = new AbortController();
  const kept = memoryIntents();
  const store: IntentStore = {
    load: () => kept.load(),
    async save(...change) {
      await kept.save(...change);
      leaving.abort(LEFT);
    },
  };
  const { source, keys } = scripted(done);
  const outcome = await pay(source, MUTATION, INPUT, { store, signal: leaving.signal });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true, cause: LEFT });
  expect(keys).toEqual([]);
  expect((await finish(source, MUTATION, outcome.intent, { store: kept })).status).toBe('done');
  expect(keys).toEqual([outcome.intent.idempotencyKey]);
});

it('a payment that has ended leaves nothing behind at the signal by which it could be left', async () => {
  const { signal } = new AbortController();
  const { source, keys } = scripted(() => {
    expect(getEventListeners(signal, 'abort')).not.toEqual([]);
    return done();
  });
  await pay(source, MUTATION, INPUT, { store: memoryIntents(), signal });
  expect(keys).toHaveLength(1);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

it.each([
  ['is acknowledged', done],
  ['is refused', result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' })],
])(
  'a payment that %s stays in the store for an hour, and the next one drops it after that',
  async (_, end) => {
    const { source } = scripted(end, done);
    const store = memoryIntents();
    const kept = async () => (await store.load()).map(({ input }) => input['amount']);
    const { acknowledge } = await pay(source, MUTATION, { amount: '1.00' }, { store });
    await acknowledge();
    vi.setSystemTime(Date.now() + 3_599_000);
    await pay(source, MUTATION, { amount: '2.00' }, { store });
    expect(await kept()).toEqual(['1.00', '2.00']);
    vi.setSystemTime(Date.now() + 1_000);
    await pay(source, MUTATION, { amount: '3.00' }, { store });
    // The end of the second has not been seen yet.
    expect(await kept()).toEqual(['2.00', '3.00']);
  },
);

it('a payment that was made long before it is acknowledged stays in the store for an hour from then', async () => {
  const { source } = scripted(done, done);
  const store = memoryIntents();
  const { acknowledge, intent } = await pay(source, MUTATION, { amount: '1.00' }, { store });
  vi.setSystemTime(Date.now() + 24 * 3_600_000);
  await acknowledge();
  vi.setSystemTime(Date.now() + 3_599_000);
  await pay(source, MUTATION, { amount: '2.00' }, { store });
  // One that had been told of it before asks how it ended.
  expect((await finish(source, MUTATION, intent, { store })).status).toBe('done');
});
