import { readFile } from 'node:fs/promises';
import {
  buildSchema,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLResolveInfo,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isNonNullType,
  isRequiredInputField,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordsUnavailableError } from '../../src/money/record.ts';
import type { Context } from '../../src/operation/context.ts';
import { node } from '../../src/resolvers/node.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { VARIANTS } from '../helpers/variants.ts';

const UNKNOWN = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';

describe.each(VARIANTS)('over %s,', (_name, sandboxOptions) => {
  let gateway: RunningGateway;
  let ids: Readonly<Record<string, string>>;

  beforeAll(async () => {
    gateway = await startGateway({ sandboxOptions, config: { ...PATIENT, upstreamReport: true } });
    // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
    const world: any = await control(gateway.sandbox, 'GET', '/sandbox');
    const { data } = await gateway.query(
      '{ client { id webhooks { nodes { id } } accounts { nodes { id } } } banks { id } }',
    );
    ids = {
      Account: data.client.accounts.nodes[0].id,
      Bank: data.banks[0].id,
      Client: data.client.id,
      Customer: world.customerIds[0],
      Instrument: world.centralizingInstrumentId,
      Transaction: Object.values(world.transactions)[0] as string,
      Webhook: data.client.webhooks.nodes[0].id,
    };
  });
  afterAll(() => gateway.stop());

  const routesOf = ({ extensions }: GraphQLAnswer): readonly string[] =>
    // The plugin makes it of this form.
    ((extensions?.['upstream'] ?? []) as readonly { readonly route: string }[]).map(({ route }) => route);

  it.each(['Account', 'Bank', 'Client', 'Customer', 'Instrument', 'Transaction', 'Webhook'])(
    'node finds one %s, and looks for nothing else where the selection says what it is',
    async (type) => {
      const id = ids[type] ?? '';
      const named = await gateway.query(
        `query ($id: ID!) { node(id: $id) { __typename id ...Seen } } fragment Seen on ${type} { __typename id }`,
        { id },
      );
      expect(named.data).toEqual({ node: { __typename: type, id } });
      expect(new Set(routesOf(named)).size).toBeLessThanOrEqual(1);

      const unnamed = await gateway.query('query ($id: ID!) { node(id: $id) { __typename id } }', { id });
      expect(unnamed.data).toEqual({ node: { __typename: type, id } });
    },
  );

  it.each(['Account', 'Bank', 'Client', 'Customer', 'Instrument', 'Transaction', 'Webhook'])(
    'an id in capitals names the same %s: UUIDs are the same in any case of their letters',
    async (type) => {
      const id = ids[type] ?? '';
      const field = `${type.toLowerCase()}(${type === 'Account' ? 'by: { id: $id }' : 'id: $id'}) { id }`;
      const { data, errors } = await gateway.query(
        `query ($id: ID!) { node(id: $id) { __typename id } ${type === 'Client' ? '' : field} }`,
        { id: id.toUpperCase() },
      );
      expect(errors).toBeUndefined();
      expect(data.node).toEqual({ __typename: type, id });
      if (type !== 'Client') expect(data[type.toLowerCase()]).toEqual({ id });
    },
  );

  it('a refetch that has been planned looks for the same', async () => {
    const document = `query ($id: ID!, $more: Boolean!) {
      node(id: $id) { ...Seen ... on Transaction @include(if: $more) { status } }
    } fragment Seen on Customer { name }`;
    for (let run = 0; run < 3; run += 1) {
      const answer = await gateway.query(document, { id: ids['Customer'], more: false });
      expect(answer.data.node.name).toEqual(expect.any(String));
      expect(routesOf(answer).filter((route) => route.includes('transactions'))).toEqual([]);
    }
  });

  it('node is null for an id that nothing has, and for one that the selection does not look for', async () => {
    const asked = await gateway.query(
      `query ($unknown: ID!, $account: ID!) {
        nothing: node(id: $unknown) { id }
        other: node(id: $account) { ... on Customer { id } }
        owner: node(id: $account) { ... on Owner { __typename } }
      }`,
      { unknown: UNKNOWN, account: ids['Account'] },
    );
    expect(asked.errors).toBeUndefined();
    expect(asked.data).toEqual({ nothing: null, other: null, owner: null });
  });

  it('an id that nothing has costs no more than the four lists and two calls that node says', async () => {
    const answer = await gateway.query('query ($id: ID!) { node(id: $id) { id } }', { id: UNKNOWN });
    expect(answer.data).toEqual({ node: null });
    const ofClient = (rest: string) => `/v1/clients/{clientId}/${rest}`;
    const calls = ['instruments/{instrumentId}', 'transactions/{transactionId}'].map(ofClient);
    const lists = ['/v1/banks', ...['accounts', 'customers', 'webhooks'].map(ofClient)];
    const routes = routesOf(answer);
    // A list that is kept by an index may answer without a call.
    expect(routes.filter((route) => ![...calls, ...lists].includes(route))).toEqual([]);
    for (const call of calls) expect(routes.filter((route) => route === call)).toHaveLength(1);
  });

  it('node reads ahead the lists that its connections need', async () => {
    const { data, errors } = await gateway.query(
      `query ($id: ID!) { node(id: $id) { ... on Customer { instruments(first: 5) { nodes { owner { __typename } bank { name } } } } } }`,
      { id: ids['Customer'] },
    );
    expect(errors).toBeUndefined();
    expect(data.node.instruments.nodes[0].owner.__typename).toBe('Customer');
  });

  it('says that a look-up failed where nothing was found', async () => {
    await control(gateway.sandbox, 'POST', '/sandbox/faults', {
      match: { path: '/v1/clients/*/transactions/*' },
      fault: { status: 500 },
      times: 100,
    });
    const { data, errors } = await gateway.query(
      'query ($id: ID!) { node(id: $id) { ... on Transaction { id } } }',
      { id: UNKNOWN },
    );
    await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
    expect(data.node).toBeNull();
    expect(errors?.[0]?.extensions['code']).toBe('UPSTREAM_UNAVAILABLE');
  });

  it('finds what one look-up has, though one before it has failed', async () => {
    await control(gateway.sandbox, 'POST', '/sandbox/faults', {
      match: { path: '/v1/clients/*/instruments/*' },
      fault: { status: 500 },
      times: 100,
    });
    const { data, errors } = await gateway.query('query ($id: ID!) { node(id: $id) { __typename } }', {
      id: ids['Transaction'],
    });
    await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
    expect([data, errors]).toEqual([{ node: { __typename: 'Transaction' } }, undefined]);
  });

  it('the name and the codes of a bank stand under one name each', async () => {
    const { data } = await gateway.query('{ banks { name institutionCode clabeCode } }');
    expect(data.banks).toContainEqual({ name: 'STP', institutionCode: '90646', clabeCode: '646' });
  });

  it('pages back from the end, and from a cursor, of every list', async () => {
    const page = (list: string, args: string) =>
      gateway
        .query(
          `{ client { list: ${list}(${args}) { totalCount pageInfo { hasNextPage hasPreviousPage startCursor } nodes { id } } } }`,
        )
        .then(({ data, errors }) => {
          expect(errors).toBeUndefined();
          return data.client.list;
        });
    for (const list of ['instruments', 'accounts', 'customers', 'webhooks']) {
      const all = (await page(list, 'first: 100')).nodes;
      const back: unknown[] = [];
      let cursor: string | null = null;
      for (;;) {
        const before: string = cursor === null ? '' : `, before: "${cursor}"`;
        const { nodes, pageInfo, totalCount } = await page(list, `last: 2${before}`);
        expect(totalCount).toBe(all.length);
        expect(pageInfo.hasNextPage).toBe(cursor !== null);
        back.unshift(...nodes);
        cursor = pageInfo.startCursor;
        if (!pageInfo.hasPreviousPage) break;
      }
      expect(back).toEqual(all);
      const first = await page(list, 'first: 1');
      expect((await page(list, `last: 2, before: "${first.pageInfo.startCursor}"`)).nodes).toEqual([]);
      // The list has become shorter than when the cursor was given.
      const given = Buffer.from(first.pageInfo.startCursor, 'base64url').toString();
      const beyond = Buffer.from(given.replace(/0$/, '5000')).toString('base64url');
      expect((await page(list, `last: 2, before: "${beyond}"`)).nodes).toEqual(all.slice(-2));
    }
  });

  it.each([
    'last: 2, after: "bzE6MQ"',
    'last: 2, first: 3',
    'first: 3, before: "bzE6MQ"',
    'last: 0',
    'before: "x"',
  ])('refuses a page of (%s)', async (args) => {
    const { errors } = await gateway.query(`{ client { accounts(${args}) { nodes { id } } } }`);
    expect(['BAD_USER_INPUT', 'CURSOR_INVALID']).toContain(errors?.[0]?.extensions['code']);
  });
});

it('node shows a narrowed caller its own alone, and needs graph:read', async () => {
  await using gateway = await startGateway();
  const { sandbox } = gateway;
  await using narrow = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox) },
  });
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  const world: any = await control(sandbox, 'GET', '/sandbox');
  const [own, other] = world.customerIds;
  const ask = async (id: string, claims: object) =>
    narrow.query(
      'query ($id: ID!) { node(id: $id) { __typename id } }',
      { id },
      { authorization: `Bearer ${await callerToken(claims)}` },
    );
  expect((await ask(own, { customer_id: own })).data).toEqual({ node: { __typename: 'Customer', id: own } });
  const foreign = world.instruments.find(({ ownerId }: { ownerId: string }) => ownerId === other);
  for (const id of [other, foreign.id]) {
    const { data, errors } = await ask(id, { customer_id: own });
    expect([data, errors]).toEqual([{ node: null }, undefined]);
  }
  const { errors } = await ask(own, { scope: 'events:read' });
  expect(errors?.[0]?.extensions['code']).toBe('FORBIDDEN');
});

it('a malformed id is BAD_USER_INPUT, wherever an id is asked for', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const schema = buildSchema(await readFile(new URL('../../schema.graphql', import.meta.url), 'utf8'));
  const bad = '"../banks?x"';
  const fields = Object.values(schema.getQueryType()?.getFields() ?? {}).flatMap((field) =>
    field.args
      .filter(({ type }) => (isNonNullType(type) ? type.ofType : type).toString() === 'ID')
      .map(({ name }) => `${field.name}(${name}: ${bad}) { __typename }`),
  );
  expect(fields.length).toBeGreaterThan(6);
  const others = [
    `account(by: { id: ${bad} }) { id }`,
    `account(by: { instrumentId: ${bad} }) { id }`,
    `transaction(id: "${UNKNOWN}", match: { bankId: ${bad} }) { id }`,
    `client { instruments(customerId: ${bad}) { totalCount } }`,
    `node(id: "not-a-uuid") { ... on Customer { id } }`,
  ];
  for (const field of [...fields, ...others]) {
    const { errors } = await gateway.query(
      `{ ${field} }`,
      {},
      field.startsWith('credential') ? { 'x-api-key': gateway.sandbox.apiKey } : {},
    );
    expect([field, errors?.[0]?.extensions['code']]).toEqual([field, 'BAD_USER_INPUT']);
  }
});

it('a malformed id is a ValidationError that names its field, in every mutation', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const schema = buildSchema(await readFile(new URL('../../schema.graphql', import.meta.url), 'utf8'));
  const bad = '../banks?x';
  const plausible = (type: GraphQLInputType, name: string): unknown => {
    const inner = getNullableType(type);
    if (isInputObjectType(inner)) return inputOf(inner);
    if (isEnumType(inner)) return inner.getValues()[0]?.name;
    const texts: Record<string, string> = {
      ID: UNKNOWN,
      MoneyAmount: '1.00',
      CurrencyCode: 'MXN',
      URL: 'http://127.0.0.1:9/',
    };
    if (/reference/i.test(name)) return '1234567';
    return texts[getNamedType(inner).name] ?? '4000000000000002';
  };
  /** All that has to be given, the first of several forms, and the ids that may be given. */
  const inputOf = (type: GraphQLInputObjectType): Record<string, unknown> => {
    const fields = Object.values(type.getFields());
    const given = type.isOneOf
      ? fields.slice(0, 1)
      : fields.filter((field) => isRequiredInputField(field) || getNamedType(field.type).name === 'ID');
    return Object.fromEntries(given.map(({ name, type: of }) => [name, plausible(of, name)]));
  };
  const idsIn = (input: object, path: readonly string[] = []): (readonly string[])[] =>
    Object.entries(input).flatMap(([name, value]) =>
      typeof value === 'object' ? idsIn(value, [...path, name]) : value === UNKNOWN ? [[...path, name]] : [],
    );
  const tried: string[] = [];
  for (const field of Object.values(schema.getMutationType()?.getFields() ?? {})) {
    const type = getNullableType(field.args[0]?.type ?? field.type);
    if (!isInputObjectType(type)) throw new Error(`${field.name} takes no input`);
    for (const path of idsIn(inputOf(type))) {
      const input = inputOf(type);
      let holder: Record<string, unknown> = input;
      // What an input holds under a name of the path's middle is an input itself.
      for (const name of path.slice(0, -1)) holder = holder[name] as Record<string, unknown>;
      holder[path.at(-1) ?? ''] = bad;
      const { data, errors } = await gateway.query(
        `mutation ($input: ${type.name}!) { ${field.name}(input: $input) { __typename ... on ValidationError { code field } } }`,
        { input },
        field.name.startsWith('issue') ? { 'x-api-key': gateway.sandbox.apiKey } : {},
      );
      expect([field.name, path, errors]).toEqual([field.name, path, undefined]);
      expect(data[field.name]).toEqual({
        __typename: 'ValidationError',
        code: 'INVALID_INPUT',
        field: ['input', ...path],
      });
      tried.push(field.name);
    }
  }
  // Nothing else takes an id.
  const all = Object.keys(schema.getMutationType()?.getFields() ?? {});
  expect(all.filter((name) => !tried.includes(name)).sort()).toEqual([
    'createLegacyWebhook',
    'createWebhook',
  ]);
});

it('what one kind of object fails with hides none of another kind', async () => {
  const bank = { id: UNKNOWN };
  const none = { find: async () => null, get: async () => null };
  const away = async () => {
    throw new RecordsUnavailableError('read', new Error('away'));
  };
  // As much of an operation as looking for a node asks for.
  const contextOf = (banks: object) =>
    ({
      identity: { caller: { clientId: 'another', scopes: new Set(['payments:read']) } },
      services: { money: { payments: { byId: away } } },
      reads: {
        session: {
          ...{ accounts: none, customers: none, instruments: none, transactions: none, webhooks: none },
          banks,
        },
      },
    }) as unknown as Context;
  const info = { fieldNodes: [], fragments: {}, variableValues: {} } as unknown as GraphQLResolveInfo;
  expect(await node(UNKNOWN, contextOf({ find: () => bank }), info)).toBe(bank);
  const nothing = node(UNKNOWN, contextOf(none), info);
  await expect(nothing).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});
