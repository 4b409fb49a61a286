import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { CLIENT_ID, json, startUpstream, type Upstream } from '../../helpers/http-stub.ts';
import { speiCredit } from '../../helpers/ingress.ts';

const token = `x.${Buffer.from(JSON.stringify({ client_id: CLIENT_ID })).toString('base64url')}.x`;
const JOIN = `query Join { client { instruments(first: 2) { nodes { id ...Relations } } } }
  fragment Relations on Instrument { bank { id } ... on Instrument { customer { accounts(first: 1) { nodes { clabe } } } } }`;

const instrument = (id: string) => ({
  id,
  clientId: CLIENT_ID,
  bankId: 'b-1',
  customerId: 'c-1',
  ownerId: 'c-1',
  alias: 'a',
  type: 'RECEIVER',
  rfc: 'ND',
});

const BODIES: Readonly<Record<string, object>> = {
  banks: { total_banks: 1, page: 1, page_size: 1, banks: [{ id: 'b-1', institutionCode: '40012' }] },
  customers: { currentPage: 1, perPage: 1, totalItems: 1, data: [{ id: 'c-1', name: 'n' }] },
  accounts: {
    currentPage: 1,
    perPage: 1,
    totalItem: 1,
    data: [{ id: 'a-1', ownerId: 'c-1', clabeNumber: '1' }],
  },
  instruments: { currentPage: 1, perPage: 2, totalItems: 2, data: [instrument('i-1'), instrument('i-2')] },
};

const listOf = (url = ''): string => new URL(url, 'http://x').pathname.split('/').at(-1) ?? '';
const isProbe = (url = ''): boolean => url.includes('per_page=1') && !url.includes('per_page=10');

interface Running extends AsyncDisposable {
  readonly gateway: RunningGateway;
  readonly upstream: Upstream;
}

/** A gateway whose upstream answers the lists only once all that are named have been asked for. */
async function start(together: readonly string[]): Promise<Running> {
  const waiting = new Map<string, ServerResponse>();
  const upstream = await startUpstream((request, response) => {
    const list = listOf(request.url);
    const body = BODIES[list];
    if (isProbe(request.url) || body === undefined || !together.includes(list)) {
      json(
        response,
        isProbe(request.url) ? { ...BODIES['instruments'], perPage: 1, data: [], totalItems: 0 } : body,
      );
      return;
    }
    waiting.set(list, response);
    if (waiting.size < together.length) return;
    for (const [name, held] of waiting) json(held, BODIES[name]);
    waiting.clear();
  });
  const gateway = await startGateway({ config: { upstreamUrl: upstream.url }, webhooks: false });
  return {
    gateway,
    upstream,
    async [Symbol.asyncDispose]() {
      await gateway.stop();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

const ask = (gateway: RunningGateway, document: string, variables = {}) =>
  gateway.query(document, variables, { authorization: `Bearer ${token}` });

const listsAsked = (upstream: Upstream): string[] =>
  upstream.requests.filter((request) => !isProbe(request)).map((request) => listOf(request.split(' ')[1]));

it('three levels of fields cost one round trip', async () => {
  await using running = await start(['instruments', 'banks', 'customers', 'accounts']);
  const { data, errors } = await ask(running.gateway, JOIN);
  expect(errors).toBeUndefined();
  expect(data.client.instruments.nodes[1].customer.accounts.nodes).toEqual([{ clabe: '1' }]);
  expect(listsAsked(running.upstream).sort()).toEqual(['accounts', 'banks', 'customers', 'instruments']);
});

it('they do beneath the object that a refetch looks for, too', async () => {
  await using running = await start(['instruments', 'banks', 'customers', 'accounts']);
  const document = JOIN.replace('client {', `node(id: "${CLIENT_ID}") { ... on Client {`).replace(
    '}\n',
    '} }\n',
  );
  const { data, errors } = await ask(running.gateway, document);
  expect(errors).toBeUndefined();
  expect(data.node.instruments.nodes[1].customer.accounts.nodes).toEqual([{ clabe: '1' }]);
  expect(listsAsked(running.upstream).sort()).toEqual(['accounts', 'banks', 'customers', 'instruments']);
});

it('what credits of the log lead to costs one round trip, and one list for each edge however many they are', async () => {
  await using running = await start(['banks', 'customers', 'accounts']);
  const { gateway, upstream } = running;
  for (let count = 0; count < 3; count += 1) {
    const { status } = await fetch(gateway.ingress.url(CLIENT_ID, 'MONEY_IN') ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(speiCredit({ body: { beneficiary_account: '1', owner_id: 'c-1' } })),
    });
    expect(status).toBe(201);
  }
  const { data, errors } = await ask(
    gateway,
    '{ events(first: 3) { nodes { ... on MoneyInEvent { account { id } payerBank { id } owner { ... on Customer { id } } } } } }',
  );
  expect(errors).toBeUndefined();
  const leads = { account: { id: 'a-1' }, payerBank: { id: 'b-1' }, owner: { id: 'c-1' } };
  expect(data.events.nodes).toEqual([leads, leads, leads]);
  expect(listsAsked(upstream).sort()).toEqual(['accounts', 'banks', 'customers']);
});

it('the owners of credits cost the list of customers alone', async () => {
  await using running = await start([]);
  const { gateway, upstream } = running;
  await fetch(gateway.ingress.url(CLIENT_ID, 'MONEY_IN') ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(speiCredit({ body: { beneficiary_account: '1', owner_id: 'c-1' } })),
  });
  const { data } = await ask(
    gateway,
    '{ events(first: 3) { nodes { ... on MoneyInEvent { owner { ... on Customer { id } } } } } }',
  );
  expect(data.events.nodes).toEqual([{ owner: { id: 'c-1' } }]);
  expect(listsAsked(upstream)).toEqual(['customers']);
});

it('a fragment that stands above a list and beneath one has its lists read ahead', async () => {
  await using running = await start(['instruments', 'banks']);
  // The instrument above is not there.
  const { data } = await ask(
    running.gateway,
    `query { instrument(id: "i-9") { ...Its } client { instruments(first: 2) { nodes { ...Its } } } }
      fragment Its on Instrument { bank { id } }`,
  );
  expect(data?.client.instruments.nodes).toEqual([{ bank: { id: 'b-1' } }, { bank: { id: 'b-1' } }]);
});

it('a list that stands under a condition is read only when it is needed', async () => {
  await using running = await start([]);
  const document = JOIN.replace('Join', 'Join($yes: Boolean!)').replace('bank', 'bank @include(if: $yes)');
  expect((await ask(running.gateway, document, { yes: false })).errors).toBeUndefined();
  expect(listsAsked(running.upstream)).not.toContain('banks');
});

it('a list that fails beforehand fails the fields that look up in it, and nothing else', async () => {
  await using upstream = await startUpstream((request, response) => {
    const list = listOf(request.url);
    if (list === 'customers') json(response, {}, 403);
    else
      json(
        response,
        isProbe(request.url) ? { ...BODIES['instruments'], data: [], totalItems: 0 } : BODIES[list],
      );
  });
  const gateway = await startGateway({ config: { upstreamUrl: upstream.url }, webhooks: false });
  try {
    const { data, errors } = await ask(gateway, JOIN);
    expect(data.client.instruments.nodes).toEqual([
      { id: 'i-1', bank: { id: 'b-1' }, customer: null },
      { id: 'i-2', bank: { id: 'b-1' }, customer: null },
    ]);
    expect(errors?.map(({ path }) => path?.at(-1))).toEqual(['customer', 'customer']);
  } finally {
    await gateway.stop();
  }
});
