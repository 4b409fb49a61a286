import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { customerScope } from '../../src/upstream/customer-scope.ts';
import { createInstrumentLoader } from '../../src/upstream/instruments.ts';
import { scopeChanges } from '../../src/upstream/session/scoped-changes.ts';
import { checkRefund, createTransactionLoader } from '../../src/upstream/transactions.ts';
import { startClientLists } from '../helpers/client-lists.ts';
import { CLIENT_ID, json, startUpstream } from '../helpers/http-stub.ts';
import { until } from '../helpers/until.ts';

const SLOW = '11111111-2222-4333-8444-000000000001';
const FAST = '11111111-2222-4333-8444-000000000002';
const NONE = '11111111-2222-4333-8444-000000000003';
const CUSTOMER = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const never = () => {
  throw new Error('is not asked');
};
const INSTRUMENTS = { find: never } as never;

it('an answer is there although another of its batch has not come', async () => {
  const waiting: ServerResponse[] = [];
  await using upstream = await startUpstream(({ url = '' }, response) => {
    if (url.endsWith(SLOW)) waiting.push(response);
    else if (url.endsWith(FAST)) json(response, { id: FAST });
    else json(response, {}, 404);
  });
  const transactions = createTransactionLoader(upstream.rest, customerScope(undefined), INSTRUMENTS);
  const slow = transactions.get(SLOW);
  const [fast, none, again] = await Promise.all(
    [FAST, NONE, FAST].map((id) => transactions.get(id).catch((error: unknown) => error)),
  );
  expect([fast, none, again]).toEqual([{ id: FAST }, null, { id: FAST }]);
  expect(waiting).toHaveLength(1);
  for (const response of waiting) json(response, { id: SLOW });
  expect(await slow).toEqual({ id: SLOW });
  expect(upstream.requests).toHaveLength(3);
});

it.each([
  ['both sides are looked up at once where neither names its owner', {}, {}, 2],
  ['no side is looked up where one names the customer', { ownerId: CUSTOMER.toUpperCase() }, {}, 0],
  ['no side is looked up where both name an owner', { ownerId: NONE }, { ownerId: CUSTOMER }, 0],
  ['a side that names no owner is looked up where the other is not the customer’s', { ownerId: NONE }, {}, 1],
])('of a transaction of a narrowed caller %s', async (_what, source, destination, lookUps) => {
  const waiting: ServerResponse[] = [];
  await using upstream = await startUpstream(({ url = '' }, response) => {
    if (url.includes('/instruments/')) waiting.push(response);
    else {
      const sides = {
        sourceInstrument: { id: SLOW, ...source },
        destinationInstrument: { id: FAST, ...destination },
      };
      json(response, { id: NONE, ...sides });
    }
  });
  const scope = customerScope(CUSTOMER);
  const lists = startClientLists({ maxAgeMs: 0, now: () => performance.now() });
  const instruments = createInstrumentLoader(upstream.rest, scope, lists);
  const found = createTransactionLoader(upstream.rest, scope, instruments).get(NONE);
  // None of them is answered before the last has come.
  await until(() => waiting.length === lookUps && upstream.requests.length === lookUps + 1);
  for (const response of waiting) {
    const id = response.req.url?.endsWith(FAST) ? FAST : SLOW;
    json(response, { id, ownerId: id === FAST ? CUSTOMER : NONE });
  }
  expect((await found)?.id).toBe(NONE);
  expect(upstream.requests).toHaveLength(lookUps + 1);
});

it.each([
  ['the payer’s side cannot', SLOW, CUSTOMER, { id: NONE }],
  ['the receiver’s side cannot', FAST, CUSTOMER, { id: NONE }],
  ['one side cannot, and the other is not the caller’s,', SLOW, NONE, { code: 'FORBIDDEN' }],
])(
  'where %s be looked up, a narrowed caller’s transaction is judged by the other',
  async (_what, hidden, ownerId, result) => {
    await using upstream = await startUpstream(({ url = '' }, response) => {
      const id = url.slice(url.lastIndexOf('/') + 1);
      if (id === hidden) json(response, {}, 403);
      else if (url.includes('/instruments/')) json(response, { id, ownerId });
      else json(response, { id, sourceInstrument: { id: SLOW }, destinationInstrument: { id: FAST } });
    });
    const scope = customerScope(CUSTOMER);
    const lists = startClientLists({ maxAgeMs: 0, now: () => performance.now() });
    const instruments = createInstrumentLoader(upstream.rest, scope, lists);
    const transactions = createTransactionLoader(upstream.rest, scope, instruments);
    expect(await transactions.get(NONE).catch((error: unknown) => error)).toMatchObject(result);
  },
);

it('a narrowed caller may refund a credit whose payer’s instrument the service does not show', async () => {
  await using upstream = await startUpstream(({ url = '' }, response) => {
    if (url.includes('/instruments/')) json(response, {}, 403);
    else
      json(response, {
        id: NONE,
        sourceInstrument: { id: SLOW },
        destinationInstrument: { id: FAST, ownerId: CUSTOMER },
      });
  });
  const lists = startClientLists({ maxAgeMs: 0, now: () => performance.now() });
  const scope = customerScope(CUSTOMER);
  const changes = scopeChanges({ clientId: CLIENT_ID, send: never }, scope, () => {
    const instruments = createInstrumentLoader(upstream.rest, scope, lists);
    return { instruments, transactions: createTransactionLoader(upstream.rest, scope, instruments) };
  });
  expect(await checkRefund(changes, NONE)).toBeUndefined();
  // The answer depends on no instrument that it would have to ask for.
  expect(upstream.requests).toHaveLength(1);
});

it('transactions of one operation that name the same instruments without an owner have each looked up once', async () => {
  await using upstream = await startUpstream(({ url = '' }, response) => {
    const id = url.slice(url.lastIndexOf('/') + 1);
    if (url.includes('/instruments/')) json(response, { id, ownerId: id === FAST ? CUSTOMER : NONE });
    else json(response, { id, sourceInstrument: { id: SLOW }, destinationInstrument: { id: FAST } });
  });
  const lists = startClientLists({ maxAgeMs: 0, now: () => performance.now() });
  const scope = customerScope(CUSTOMER);
  const transactions = createTransactionLoader(
    upstream.rest,
    scope,
    createInstrumentLoader(upstream.rest, scope, lists),
  );
  expect(await Promise.all([SLOW, FAST, NONE].map((id) => transactions.get(id)))).toMatchObject([
    { id: SLOW },
    { id: FAST },
    { id: NONE },
  ]);
  expect(upstream.requests).toHaveLength(3 + 2);
});
