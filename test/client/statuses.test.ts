import { createElement } from 'react';
import { act, create, type ReactTestRenderer } from 'react-test-renderer';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { type Source, watch } from '../../packages/client/src/index.ts';
import { useCepStatus, useTransactionStatus } from '../../packages/client/src/react.ts';
import { CEP_STATUS } from '../../packages/client/src/schema.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { until } from '../helpers/until.ts';
import { type Network, startNetwork } from './network.ts';

let gateway: RunningGateway;
let network: Network;
let source: Source;
let rendered: ReactTestRenderer | undefined;

beforeAll(async () => {
  gateway = await startGateway({ webhooks: ['CEP', 'MONEY_IN', 'STATUS_UPDATE'], config: PATIENT });
  network = await startNetwork();
  network.route(Number(new URL(gateway.url).port));
  source = createSocket({ url: network.graphql, token: () => gateway.sandbox.accessToken });
});
afterAll(async () => {
  rendered?.unmount();
  await network[Symbol.asyncDispose]();
  await gateway.stop();
});

async function startVerification(): Promise<string> {
  const world = await control(gateway.sandbox, 'GET', '/sandbox');
  const { data } = await gateway.query(
    `mutation ($input: CreatePennyValidationInput!) { createPennyValidation(input: $input) {
      ... on CreatePennyValidationSuccess { transaction { id } } } }`,
    {
      input: {
        idempotencyKey: `verification ${crypto.randomUUID()}`,
        sourceInstrumentId: world.centralizingInstrumentId,
        destinationInstrumentId: world.clabeInstrumentIds[0],
      },
    },
  );
  return data.createPennyValidation.transaction.id;
}

const advance = (seconds: number) =>
  control(gateway.sandbox, 'POST', '/sandbox/clock', { advanceSeconds: seconds });

const shows = (text: string) => until(() => JSON.stringify(rendered?.toJSON())?.includes(text) === true);

function Receipt({ transactionId, from }: { readonly transactionId: string; readonly from: Source }) {
  const { update, status } = useCepStatus(from, transactionId);
  return createElement('p', null, `${update?.cep.status} ${status}`);
}

function Transaction({ transactionId, from }: { readonly transactionId: string; readonly from: Source }) {
  const { update, status, problem } = useTransactionStatus(from, transactionId);
  return createElement('p', null, `${update?.transaction.status} ${status} ${problem}`);
}

async function render(element: Parameters<typeof create>[0]): Promise<void> {
  rendered?.unmount();
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  await act(async () => {
    rendered = create(element);
  });
  // What follows comes when it comes, as in an app.
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
}

it('useCepStatus shows a receipt from pending to final, over a connection that is cut', async () => {
  const transactionId = await startVerification();
  await render(createElement(Receipt, { transactionId, from: source }));
  await shows('PENDING live');
  network.cut();
  await shows('PENDING live');
  await advance(600);
  await shows('COMPLETED final');
});

it('watch ends once the state is final', async () => {
  const transactionId = await startVerification();
  const states: string[] = [];
  const watched = watch(source, CEP_STATUS, { transactionId });
  for await (const { cep } of watched) {
    states.push(cep.status);
    if (cep.status === 'PENDING' && states.length === 1) await advance(600);
  }
  expect(states.at(0)).toBe('PENDING');
  expect(states.at(-1)).toBe('COMPLETED');
});

it('watch throws what the gateway will never serve', async () => {
  const watched = watch(source, CEP_STATUS, { transactionId: 'no id' });
  await expect(async () => {
    for await (const _ of watched);
  }).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
});

it('useTransactionStatus shows a payment from begun to settled, over a connection that is cut', async () => {
  const world = await control(gateway.sandbox, 'GET', '/sandbox');
  const { data } = await gateway.query(
    `mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) {
      ... on CreateMoneyOutSuccess { transaction { id } } } }`,
    {
      input: {
        idempotencyKey: `payment ${crypto.randomUUID()}`,
        sourceInstrumentId: world.centralizingInstrumentId,
        destinationInstrumentId: world.cardInstrumentIds[0],
        amount: '10.00',
        description: 'Pago',
        externalReference: '1234567',
      },
    },
  );
  const { id: transactionId } = data.createMoneyOut.transaction;
  await render(createElement(Transaction, { transactionId, from: source }));
  await shows('INITIALIZED live');
  network.cut();
  await shows('INITIALIZED live');
  await advance(60);
  await shows('LIQUIDATED final');
});

it('useTransactionStatus tells what the gateway will never serve', async () => {
  await render(createElement(Transaction, { transactionId: 'no id', from: source }));
  await shows('must be a UUID');
  // It is followed no more, and will not be.
  await shows('undefined ended');
});

it('a hook still says what the gateway could not give of a state once that state is final', async () => {
  const from = createFakeSource();
  await render(createElement(Transaction, { transactionId: 'one', from }));
  const { sink } = await until(() => from.subscriptions[0]);
  sink.opened();
  sink.next({
    data: { transactionStatus: { transaction: { status: 'LIQUIDATED' } } },
    errors: [{ message: 'No amount.' }],
  });
  sink.ended();
  await shows('LIQUIDATED final');
  expect(JSON.stringify(rendered?.toJSON())).toContain('No amount.');
});

it('a hook that is given another transaction shows nothing more of the one before, not even its end', async () => {
  const from = createFakeSource();
  const shown: string[] = [];
  function Shown({ transactionId }: { readonly transactionId: string }) {
    const { update, status } = useCepStatus(from, transactionId);
    shown.push(`${update?.cep.status} ${status}`);
    return null;
  }
  const tell = (status: string) => {
    const [subscription] = from.subscriptions;
    subscription?.sink.opened();
    subscription?.sink.next({ data: { cepStatus: { cep: { status } } } });
  };
  await render(createElement(Shown, { transactionId: 'one' }));
  tell('DELAYED');
  await until(() => shown.at(-1) === 'DELAYED live');
  const before = shown.length;
  rendered?.update(createElement(Shown, { transactionId: 'other' }));
  await until(() => from.subscriptions[0]?.variables['transactionId'] === 'other');
  // What the first one still tells has been shown by then.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  tell('PENDING');
  await until(() => shown.at(-1) === 'PENDING live');
  expect(shown.slice(before).filter((text) => text.endsWith('final'))).toEqual([]);
});

it('a hook that is given another transaction stays live over a source that is connected, whatever the one before tells as it is left', async () => {
  const fake = createFakeSource();
  const from: Source = {
    ...fake,
    subscribe(document, variables, sink) {
      const leave = fake.subscribe(document, variables, sink);
      sink.opened();
      return leave;
    },
  };
  await render(createElement(Receipt, { transactionId: 'one', from }));
  await shows('undefined live');
  rendered?.update(createElement(Receipt, { transactionId: 'other', from }));
  await until(() => fake.subscriptions[0]?.variables['transactionId'] === 'other');
  await shows('undefined live');
  // What the first one still tells has been shown by then.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(JSON.stringify(rendered?.toJSON())).toContain('undefined live');
});
