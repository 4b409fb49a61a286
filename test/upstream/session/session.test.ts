import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { CUSTOMER_PRIVATE_ACCOUNTS } from '../../../src/upstream/accounts.ts';
import { BANK_FIELD_NAMES } from '../../../src/upstream/banks.ts';
import { createBankCache, createSession } from '../../../src/upstream/session/session.ts';
import { checkTransfer, sendRefund } from '../../../src/upstream/transactions.ts';
import { startClientLists } from '../../helpers/client-lists.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';

const CUSTOMER = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const STRANGER = '7c9e6679-7425-40de-944b-e07fc1f90ae8';
const OWN = '11111111-2222-4333-8444-000000000001';
const OTHER = '11111111-2222-4333-8444-000000000002';

/** What one operation reads and changes for a caller, over a service that answers like this. */
async function operation(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  customerId?: string,
) {
  const upstream = await startUpstream(answer);
  const now = () => performance.now();
  const lists = startClientLists({ maxAgeMs: 0, now });
  const session = createSession(upstream.rest, () => upstream.rest, customerId, {
    banks: createBankCache(BANK_FIELD_NAMES, 60_000, now),
    lists,
    utcOffset: '-06:00',
  });
  return { session, requests: upstream.requests, [Symbol.asyncDispose]: upstream[Symbol.asyncDispose] };
}

const mayNotRenew = () => false;

it.each([
  ['fails', (response: ServerResponse) => json(response, {}, 500), { code: 'UPSTREAM_UNAVAILABLE' }],
  [
    'has too much to do',
    (response: ServerResponse) => {
      response.setHeader('retry-after', '3600');
      json(response, {}, 429);
    },
    { code: 'UPSTREAM_RATE_LIMITED', retryAfterMs: 3_600_000 },
  ],
  ['refuses', (response: ServerResponse) => json(response, {}, 403), { refusal: { httpStatus: 403 } }],
])(
  'a change of a narrowed caller has not left where the service %s before it is known what it touches',
  async (_what, answer, error) => {
    await using made = await operation((_request, response) => answer(response), CUSTOMER);
    const { rest } = made.session;
    const body = JSON.stringify({ source_instrument_id: OWN, destination_instrument_id: OTHER });
    const told = { kind: 'failed', error: { ...error, dispatched: false } };
    expect(await checkTransfer(rest, 'createMoneyOut', body)).toMatchObject(told);
    expect(await sendRefund(rest, OTHER, '{}', mayNotRenew)).toMatchObject(told);
    expect(made.requests.filter((request) => !request.startsWith('GET '))).toEqual([]);
  },
);

it.each([
  [CUSTOMER, CUSTOMER, undefined],
  [STRANGER, CUSTOMER, 'source_not_found'],
  [CUSTOMER, STRANGER, 'destination_not_found'],
  [STRANGER, STRANGER, 'source_not_found'],
])(
  'both instruments of a payment of a narrowed caller are looked up at once: of %s and %s',
  async (ownerOfSource, ownerOfDestination, reason) => {
    const waiting: [string, ServerResponse][] = [];
    await using made = await operation(({ url = '' }, response) => {
      waiting.push([url, response]);
    }, CUSTOMER);
    const body = JSON.stringify({ source_instrument_id: OWN, destination_instrument_id: OTHER });
    const checked = checkTransfer(made.session.rest, 'createMoneyOut', body);
    await until(() => waiting.length === 2);
    for (const [url, response] of waiting) {
      if (url.endsWith(OWN)) json(response, { id: OWN, ownerId: ownerOfSource });
      else json(response, { id: OTHER, ownerId: ownerOfDestination });
    }
    const answer = await checked;
    expect(answer?.kind === 'answered' ? answer.body : answer).toEqual(
      reason && expect.objectContaining({ details: [expect.objectContaining({ reason })] }),
    );
    expect(made.requests).toHaveLength(2);
  },
);

it.each([
  [{ ownerId: CUSTOMER, customerId: STRANGER }, false],
  [{ ownerId: STRANGER, customerId: CUSTOMER }, false],
  [{ ownerId: CUSTOMER, customerId: CUSTOMER.toUpperCase() }, true],
  [{ ownerId: CUSTOMER }, true],
  [{ customerId: CUSTOMER }, true],
  [{}, false],
])(
  'an instrument is the customer’s of a narrowed caller where all that names its owner does: %j',
  async (owner, isOwn) => {
    await using made = await operation(
      (_request, response) => json(response, { id: OWN, ...owner }),
      CUSTOMER,
    );
    const found = await made.session.instruments.find('id', OWN);
    expect(found?.id).toBe(isOwn ? OWN : undefined);
    const body = JSON.stringify({ source_instrument_id: OWN, destination_instrument_id: OWN });
    const check = await checkTransfer(made.session.rest, 'createMoneyOut', body);
    expect(check).toEqual(isOwn ? undefined : expect.objectContaining({ kind: 'answered', status: 404 }));
  },
);

it.each([
  [CUSTOMER, {}, true],
  [CUSTOMER, { owner_id: CUSTOMER.toUpperCase() }, true],
  [CUSTOMER, { owner_id: STRANGER }, false],
  [STRANGER, { owner_id: CUSTOMER }, false],
])(
  'a narrowed caller opens accounts of its own customer alone: of %s, %j',
  async (customerId, body, isOwn) => {
    await using made = await operation((_request, response) => json(response, {}, 201), CUSTOMER);
    const options = { params: { customerId }, body: JSON.stringify(body) };
    const attempt = await made.session.rest.send('POST', CUSTOMER_PRIVATE_ACCOUNTS, options);
    expect(attempt).toMatchObject({ kind: 'answered', status: isOwn ? 201 : 404 });
    expect(made.requests).toHaveLength(isOwn ? 1 : 0);
  },
);

it('what a payment has to know first is read by calls of its own', async () => {
  await using upstream = await startUpstream(({ headers }, response) => {
    json(response, { id: OWN, ownerId: CUSTOMER, description: headers['x-for'] });
  });
  const now = () => performance.now();
  const lists = startClientLists({ maxAgeMs: 0, now });
  const session = createSession(
    upstream.restOf({ headers: { 'x-for': 'reading' } }),
    () => upstream.restOf({ headers: { 'x-for': 'a payment' } }),
    undefined,
    { banks: createBankCache(BANK_FIELD_NAMES, 60_000, now), lists, utcOffset: '-06:00' },
  );
  expect(await session.transactions.get(OWN)).toMatchObject({ description: 'reading' });
  expect(await session.original(OWN)).toMatchObject({ description: 'a payment' });
});

it('a catalog of banks that was asked for first and comes last does not take the place of the later one', async () => {
  const held: ServerResponse[] = [];
  await using upstream = await startUpstream((_request, response) => held.push(response));
  let time = 0;
  const banks = createBankCache(BANK_FIELD_NAMES, 60_000, () => time);
  const catalogOf = (id: string) => ({ banks: [{ id }], total_banks: 1, page: 1, page_size: 50 });
  const slow = banks.read(upstream.rest);
  const first = await until(() => held[0]);
  time += 1;
  const later = banks.read(upstream.rest);
  json(await until(() => held[1]), catalogOf(OTHER));
  expect((await later).items).toMatchObject([{ id: OTHER }]);
  json(first, catalogOf(OWN));
  expect((await slow).items).toMatchObject([{ id: OWN }]);
  expect((await banks.read(upstream.rest)).items).toMatchObject([{ id: OTHER }]);
  expect(upstream.requests).toHaveLength(2);
});

it('a transaction that is asked for by two conditions is asked for by each, and once by the same', async () => {
  await using made = await operation(({ url = '' }, response) => {
    if (url.includes('REFUNDED')) json(response, {}, 404);
    else json(response, { id: OWN });
  });
  const { transactions } = made.session;
  const asked = [undefined, { status: 'REFUNDED' }, { status: 'LIQUIDATED' }, { status: 'REFUNDED' }];
  const found = await Promise.all(asked.map((match) => transactions.get(OWN, match)));
  expect(found.map((one) => one?.id)).toEqual([OWN, undefined, OWN, undefined]);
  expect(made.requests).toHaveLength(3);
});

it.each([undefined, CUSTOMER])(
  'lists that are read ahead are read once each, whoever looks (customer %s)',
  async (customerId) => {
    await using made = await operation(({ url = '' }, response) => {
      const item = url.includes('/accounts') ? { id: OTHER, ownerId: CUSTOMER } : { id: CUSTOMER };
      json(response, { data: [item], currentPage: 1, perPage: 50, totalItem: 1, totalItems: 1 });
    }, customerId);
    const { session } = made;
    await session.prefetch(['customers', 'customers.accounts']);
    expect((await session.customers.find('id', CUSTOMER))?.id).toBe(CUSTOMER);
    expect((await session.accounts.where('ownerId', CUSTOMER)).map(({ id }) => id)).toEqual([OTHER]);
    expect(made.requests).toHaveLength(2);
  },
);

it('the accounts of a customer that is looked up in a large list are read beside it', async () => {
  const numbers = Array.from({ length: 120 }, (_, index) => index);
  await using made = await operation(({ url = '' }, response) => {
    const query = new URL(url, 'http://x').searchParams;
    const [page, perPage] = [Number(query.get('page') ?? 1), Number(query.get('per_page') ?? 50)];
    const isOfAccounts = url.includes('/accounts');
    const items = numbers.map((at) =>
      isOfAccounts ? { id: `account ${at}`, ownerId: `customer ${at}` } : { id: `customer ${at}` },
    );
    const data = items.slice((page - 1) * perPage, page * perPage);
    json(response, { data, currentPage: page, perPage, totalItem: 120, totalItems: 120 });
  });
  const { session, requests } = made;
  await session.prefetch(['customers', 'customers.accounts']);
  const before = requests.length;
  expect((await session.customers.find('id', 'customer 7'))?.id).toBe('customer 7');
  // Nobody has asked for them so far.
  await until(() => requests.slice(before).some((request) => request.includes('/accounts')));
  const found = await session.accounts.where('ownerId', 'customer 7');
  expect(found.map(({ id }) => id)).toEqual(['account 7']);
});
