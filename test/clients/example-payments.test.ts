import { expect, it } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { type Intent, intentStore, type Source } from '../../packages/client/src/index.ts';
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

const SUCCESS = {
  data: {
    createPennyValidation: {
      __typename: 'CreatePennyValidationSuccess',
      transaction: { id: 'transaction-1' },
    },
  },
};

// What a page has, and Node lacks.
Object.assign(globalThis, { location: { hash: '' } });
Object.defineProperty(globalThis, 'localStorage', { value: storage });

/** Shows a screen of payments of an example. */
async function screenOf(example: string, source: Source, owner: string, signal: AbortSignal) {
  const { usePayments } = await exampleModule(`${example}/src/verify/payments.ts`);
  return showHook<Payments>(() =>
    example === 'web'
      ? usePayments({ source, signal }, owner, false)
      : usePayments(source, owner, false, signal),
  );
}

it('the example for phones keeps the key of a payment that was sent since it was listed as never paid', async () => {
  const store = intentStore(storage, 'pasarela.intents.owner');
  await store.save([INTENT], []);
  // Nothing is sent here: nobody asks for it, and the gateway is not there.
  const source = createFetch({ url: 'http://127.0.0.1:1/graphql', token: () => 'token' });
  const screen = await screenOf('mobile', source, 'owner', new AbortController().signal);
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
  location.hash = '';
  const source = createFakeSource();
  const leaving = new AbortController();
  const screen = await screenOf('web', source, 'ana', leaving.signal);
  const sent = screen.now.send({ sourceInstrumentId: 'own', destinationInstrumentId: 'theirs' });
  const call = await until(() => source.calls[0]);
  const lock = 'pasarela pasarela.intents.ana';
  await navigator.locks.request(lock, async () => {
    call.answer(SUCCESS);
    await until(async () => (await navigator.locks.query()).pending?.some(({ name }) => name === lock));
    leaving.abort();
    screen.leave();
  });
  await sent;
  expect(location.hash).toBe('');
  const [kept] = await intentStore(storage, 'pasarela.intents.ana').load();
  expect(kept).toMatchObject({ result: { transaction: { id: 'transaction-1' } } });
});
