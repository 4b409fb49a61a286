import { createGateway } from 'pasarela/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createSandbox } from '#sandbox';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { memoryIntents, pay, type Sink, type Source, typed } from '../../packages/client/src/index.ts';
import { createFakeGateway } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

interface MoneyIn {
  readonly moneyIn: { readonly paymentConcept: string };
}
const MONEY_IN = typed<MoneyIn, { readonly after?: string | null }>(
  'subscription ($after: Cursor) { moneyIn(after: $after) { cursor paymentConcept } }',
);
const PAY_OUT = typed<
  { readonly createMoneyOut: { readonly __typename: string } },
  { readonly input: { readonly amount: string; readonly idempotencyKey: string } }
>('mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename } }');

/** Subscribes, and lists what the app is told, without cursors. */
function subscribed(source: Source, variables: { readonly after?: string | null }) {
  const told: string[] = [];
  const sink: Sink<MoneyIn> = {
    opened: () => told.push('opened'),
    next: ({ data, errors }) =>
      told.push(data?.moneyIn.paymentConcept ?? String(errors?.[0]?.extensions?.['code'])),
    bookmark: () => told.push('bookmark'),
    ended: (cause) => told.push(`ended ${String(cause)}`),
  };
  return { told, leave: source.subscribe(MONEY_IN, variables, sink) };
}

/** What apps are told that begin to follow in each way. */
async function beginnings(source: Source, credit: (concept: string) => unknown) {
  await credit('before');
  const left = subscribed(source, {});
  left.leave();
  const streams = [{}, { after: null }, { after: 'no cursor' }].map((variables) =>
    subscribed(source, variables),
  );
  await until(() => streams.every(({ told }) => told.length >= 2));
  await credit('later');
  await until(() => streams.every(({ told }) => told.length >= 3));
  for (const { leave } of streams) leave();
  return [left, ...streams].map(({ told }) => told);
}

it('the fake gateway begins a stream as the gateway does, and tells nothing to who has left', async () => {
  await using sandbox = await createSandbox({ seed: 7 });
  await using gateway = await createGateway({ sandbox });
  const real = await beginnings(createSocket({ url: gateway.url, token: () => gateway.token }), (concept) =>
    sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1.00', concept }),
  );
  const fake = createFakeGateway();
  const played = await beginnings(fake.connect(), (paymentConcept) => fake.deliver({ paymentConcept }));
  expect(played).toEqual(real);
  const fromNowOn = ['opened', 'bookmark', 'later'];
  expect(real).toEqual([[], fromNowOn, fromNowOn, ['opened', 'CURSOR_INVALID', 'ended undefined']]);
});

it('a call that is under way as the fake gateway is cut or goes down is lost, and a payment is asked for again', async () => {
  for (const end of ['cut', 'down'] as const) {
    const gateway = createFakeGateway();
    const keys: unknown[] = [];
    gateway.onCall = async (_query, variables) => {
      keys.push((variables['input'] as { readonly idempotencyKey: string }).idempotencyKey);
      if (keys.length === 1) {
        gateway[end]();
        setTimeout(() => gateway.up(), 10);
      }
      return { data: { createMoneyOut: { __typename: 'CreateMoneyOutSuccess' } } };
    };
    const paid = await pay(gateway.connect(), PAY_OUT, { amount: '1.00' }, { store: memoryIntents() });
    expect([paid.status, keys.length, new Set(keys).size]).toEqual(['done', 2, 1]);
  }
});

it('who leaves a call to the fake gateway waits for its answer no longer', async () => {
  const gateway = createFakeGateway();
  gateway.onCall = () => new Promise(() => undefined);
  const leaver = new AbortController();
  const asked = gateway.connect().query(typed('{ banks { nodes { id } } }'), {}, leaver.signal);
  leaver.abort(new Error('left'));
  await expect(asked).rejects.toThrow('left');
});

it('a stream of the fake gateway opens while fake timers stand still, also those of Jest', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'queueMicrotask'] });
  onTestFinished(() => void vi.useRealTimers());
  const gateway = createFakeGateway();
  const { told } = subscribed(gateway.connect(), {});
  for (let turn = 0; turn < 10; turn += 1) await null;
  gateway.deliver({ paymentConcept: 'later' });
  expect(told).toEqual(['opened', 'bookmark', 'later']);
});

it('the fake gateway tells nothing more to who leaves as the last missed event comes', async () => {
  const gateway = createFakeGateway();
  gateway.deliver({ paymentConcept: 'missed' });
  const told: string[] = [];
  const leave = gateway.connect().subscribe(
    MONEY_IN,
    { after: 'place-0' },
    {
      opened: () => told.push('opened'),
      next({ data }) {
        told.push(String(data?.moneyIn.paymentConcept));
        leave();
      },
      bookmark: () => told.push('bookmark'),
      ended: () => told.push('ended'),
    },
  );
  await until(() => told.includes('missed'));
  gateway.deliver({ paymentConcept: 'later' });
  expect(told).toEqual(['opened', 'missed']);
});
