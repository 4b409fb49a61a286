import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { follow, isGap, type Source, typed, watch } from '../../packages/client/src/index.ts';
import { TRANSACTION_STATUS } from '../../packages/client/src/schema.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { until } from '../helpers/until.ts';

interface Credit {
  readonly cursor: string;
  readonly amount?: { readonly amount: string };
}

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ webhooks: false, config: PATIENT });
});
afterAll(() => gateway.stop());

const token = () => gateway.sandbox.accessToken;
const SOURCES: Readonly<Record<string, () => Source>> = {
  'a socket': () => createSocket({ url: gateway.graphql, token }),
  fetch: () => createFetch({ url: gateway.graphql, token }),
};
/** It selects no cursor outside of the type that it knows: the client does. */
const KNOWN = typed<{ readonly events: Credit }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { events(after: $after) { ... on MoneyInEvent { cursor amount { amount } } } }',
);

async function deliver(type: 'STATUS_UPDATE' | 'MONEY_IN', message: object): Promise<string> {
  const address = gateway.ingress.url(gateway.sandbox.clientId, type) ?? '';
  const { status } = await fetch(address, { method: 'POST', body: JSON.stringify(message) });
  expect(status).toBe(201);
  return (await gateway.query('{ eventCursor }')).data.eventCursor;
}

/** Follows from a cursor until a credit comes. @returns what has been saved, in order. */
async function savedUpToACredit(source: Source, from: string): Promise<(readonly [string, boolean])[]> {
  const saved: (readonly [string, boolean])[] = [];
  const store = {
    load: () => ({ cursor: from }),
    save: (item: unknown, cursor: string) =>
      void (item !== undefined && saved.push([cursor, 'amount' in Object(item)])),
  };
  for await (const item of follow(source, KNOWN, { store })) if (!isGap(item) && item.amount) break;
  return saved;
}

it.each(Object.keys(SOURCES))(
  'a feed over %s keeps the cursor of an event whose type its document does not name',
  async (over) => {
    const { data } = await gateway.query('{ eventCursor }');
    const other = await deliver('STATUS_UPDATE', { id_msg: `other ${over}` });
    const credit = await deliver('MONEY_IN', {
      id_msg: `credit ${over}`,
      body: { id: over, amount: '1.00' },
    });
    const source = SOURCES[over]?.() ?? createFakeSource();
    expect(await savedUpToACredit(source, data.eventCursor)).toEqual([
      [other, false],
      [credit, true],
    ]);
  },
);

it('a watch hands on a state that its version does not know, and goes on as behind OTHER', async () => {
  const fake = createFakeSource();
  const told: string[] = [];
  const all = (async () => {
    for await (const { transaction } of watch(fake, TRANSACTION_STATUS, { transactionId: 'one' }))
      told.push(transaction.status);
  })();
  const { sink } = await until(() => fake.subscriptions[0]);
  for (const status of ['HELD', 'LIQUIDATED'])
    sink.next({
      data: { transactionStatus: { kind: 'CHANGE', transaction: { id: 'one', status, rawStatus: status } } },
    });
  sink.ended();
  await all;
  expect(told).toEqual(['HELD', 'LIQUIDATED']);
});
