import { expect, it } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { type Intent, intentStore } from '../../packages/client/src/index.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';
import { exampleModule, type Payments, showHook } from './example-modules.ts';
import storage from './example-parts.ts';

const INTENT: Intent = {
  idempotencyKey: 'key-1',
  mutation: 'createPennyValidation',
  input: { sourceInstrumentId: 'own', destinationInstrumentId: 'theirs', externalReference: '7654321' },
  createdAt: new Date().toISOString(),
  unanswered: 0,
};

it('the example for phones keeps the key of a payment that was sent since it was listed as never paid', async () => {
  const { usePayments } = await exampleModule('mobile/src/verify/payments.ts');
  const store = intentStore(storage, 'pasarela.intents.owner');
  await store.save([INTENT], []);
  // Nothing is sent here: nobody asks for it, and the gateway is not there.
  const source = createFetch({ url: 'http://127.0.0.1:1/graphql', token: () => 'token' });
  const { signal } = new AbortController();
  const screen = showHook<Payments>(() => usePayments(source, 'owner', false, signal));
  const standings = () => screen.now.open?.map(({ standing }) => standing);
  await expect.poll(standings).toEqual(['unpaid']);
  const [listed] = screen.now.open ?? [];
  await store.save([{ ...INTENT, unanswered: 1 }], [INTENT]);
  listed?.forget?.();
  await expect.poll(standings).toEqual(['unknown']);
  expect(await store.load()).toMatchObject([{ idempotencyKey: 'key-1', unanswered: 1 }]);
  // One that still stands so is let go of.
  await store.save([INTENT], await store.load());
  listed?.forget?.();
  await expect.poll(standings).toEqual([]);
  expect(await store.load()).toEqual([]);
  screen.leave();
});

it('the web example shows no verification that succeeds as its person signs out: the next one would begin with it', async () => {
  // What a page has, and Node lacks.
  Object.assign(globalThis, { location: { hash: '' } });
  Object.defineProperty(globalThis, 'localStorage', { value: storage });
  const { usePayments } = await exampleModule('web/src/verify/payments.ts');
  const source = createFakeSource();
  const leaving = new AbortController();
  const screen = showHook<Payments>(() => usePayments({ source, signal: leaving.signal }, 'ana', false));
  const sent = screen.now.send({ sourceInstrumentId: 'own', destinationInstrumentId: 'theirs' });
  const call = await until(() => source.calls[0]);
  const lock = 'pasarela pasarela.intents.ana';
  await navigator.locks.request(lock, async () => {
    const transaction = { id: 'transaction-1' };
    call.answer({
      data: { createPennyValidation: { __typename: 'CreatePennyValidationSuccess', transaction } },
    });
    await until(async () => (await navigator.locks.query()).pending?.some(({ name }) => name === lock));
    leaving.abort();
    screen.leave();
  });
  await sent;
  expect(location.hash).toBe('');
  const [kept] = await intentStore(storage, 'pasarela.intents.ana').load();
  expect(kept).toMatchObject({ result: { transaction: { id: 'transaction-1' } } });
});
