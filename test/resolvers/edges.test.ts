import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { alternativeChoices, type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { Secret } from '../../src/common/secret.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

interface Seeded {
  readonly clientId: string;
  readonly centralizingInstrumentId: string;
  readonly customerIds: readonly string[];
  readonly accounts: readonly { id: string; instrumentId: string; ownerId: string; clabe: string }[];
  readonly instruments: readonly { id: string; role: string; ownerId: string; status: string }[];
}

const WORLDS = [
  ['SQLite', {}],
  [
    'SQLite, before a service that chooses otherwise where the spec is silent',
    { ...alternativeChoices, accountsIncludeCustomers: true },
  ],
  ['Redis', {}],
] as const;
const CREDITED = `query ($clabe: Clabe!, $first: Int, $after: Cursor, $last: Int, $before: Cursor) {
  account(by: { clabe: $clabe }) {
    id client { id }
    moneyIn(first: $first, after: $after, last: $last, before: $before) {
      nodes { ... on MoneyInEvent { amount { amount } } } edges { cursor }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor } reachesBackTo
    }
  }
}`;

describe.each(WORLDS)('the edges between the graph and the log, over %s,', (store, choices) => {
  let redis: RedisServer | undefined;
  let sandbox: Sandbox;
  let gateway: RunningGateway;
  let seeded: Seeded;
  let tokens: Readonly<Record<'all' | 'one' | 'eventless' | 'graphless', string>>;
  let own: Seeded['accounts'][number];
  let others: Seeded['accounts'][number];

  beforeAll(async () => {
    redis = store === 'Redis' ? await startRedis() : undefined;
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices });
    const redisUrl = redis === undefined ? undefined : new Secret(redis.url);
    gateway = await startGateway({ sandbox, config: { ...PATIENT, service: serviceFor(sandbox), redisUrl } });
    seeded = await control(sandbox, 'GET', '/sandbox');
    const [one = '', other = ''] = seeded.customerIds;
    tokens = {
      all: await callerToken(),
      one: await callerToken({ customer_id: one }),
      eventless: await callerToken({ scope: 'graph:read' }),
      graphless: await callerToken({ scope: 'events:read' }),
    };
    const accountOf = (ownerId: string) =>
      seeded.accounts.find((account) => account.ownerId === ownerId) ?? {
        id: '',
        instrumentId: '',
        ownerId,
        clabe: '',
      };
    own = accountOf(one);
    others = accountOf(other);
    for (const amount of ['1.00', '2.00', '3.00', '4.00']) {
      await credit(own.clabe, amount);
      await credit(others.clabe, `9${amount}`);
    }
  });
  afterAll(async () => {
    await gateway.stop();
    await sandbox.stop();
    await redis?.stop();
  });

  const credit = (clabe: string, amount: string) =>
    control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
  const as =
    (who: keyof typeof tokens) =>
    (document: string, variables: Record<string, unknown> = {}) =>
      gateway.query(document, variables, { authorization: `Bearer ${tokens[who]}` });
  interface Page {
    readonly nodes: readonly { readonly amount: { readonly amount: string } }[];
    readonly pageInfo: Readonly<Record<string, unknown>>;
  }
  const amounts = (page: Page) => page.nodes.map(({ amount }) => amount.amount);

  it.each(['all', 'one'] as const)(
    'lead from an account to its credits, newest first, page by page, for %s',
    async (who) => {
      const read = async (variables: Record<string, unknown>) => {
        const { data, errors } = await as(who)(CREDITED, { clabe: own.clabe, ...variables });
        expect(errors).toBeUndefined();
        expect(data.account).toMatchObject({ id: own.id, client: { id: seeded.clientId } });
        expect(data.account.moneyIn.reachesBackTo).not.toBeNull();
        return data.account.moneyIn;
      };
      const all = await read({});
      expect(amounts(all)).toEqual(['4.00', '3.00', '2.00', '1.00']);
      expect(all.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: false });
      const first = await read({ first: 3 });
      expect(amounts(first)).toEqual(['4.00', '3.00', '2.00']);
      expect(first.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: false });
      expect(first.pageInfo.endCursor).toBe(first.edges[2].cursor);
      const next = await read({ first: 3, after: first.pageInfo.endCursor });
      expect(amounts(next)).toEqual(['1.00']);
      expect(next.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: true });
      const back = await read({ last: 2, before: next.pageInfo.startCursor });
      expect(amounts(back)).toEqual(['3.00', '2.00']);
      expect(back.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: true });
      expect(amounts(await read({ last: 1 }))).toEqual(['1.00']);
      const refused = await as(who)(CREDITED, { clabe: own.clabe, first: 1, last: 1 });
      expect(refused.data.account.moneyIn).toBeNull();
      expect(refused.errors?.[0]?.extensions['code']).toBe('BAD_USER_INPUT');
    },
  );

  it('lead from a credit to its account, its bank and its transaction, and from that back to it', async () => {
    const document = `query ($clabe: Clabe!) { events(clabe: $clabe, last: 1) { nodes { id ... on MoneyInEvent {
      payerInstitution payerBank { id name institutionCode } account { id clabe }
      transaction { id events { nodes { id type } pageInfo { hasNextPage } } } } } } }`;
    for (const who of ['all', 'one'] as const) {
      const { data, errors } = await as(who)(document, { clabe: own.clabe });
      expect(errors).toBeUndefined();
      const [event] = data.events.nodes;
      expect(event.account).toEqual({ id: own.id, clabe: own.clabe });
      expect(event.transaction.events).toEqual({
        nodes: [{ id: event.id, type: 'MONEY_IN' }],
        pageInfo: { hasNextPage: false },
      });
      const { data: bank } = await as('all')('{ banks { id institutionCode } }');
      const known = bank.banks.find(
        ({ institutionCode }: { institutionCode: string | null }) =>
          institutionCode === event.payerInstitution,
      );
      expect(event.payerBank?.id).toBe(known?.id);
    }
  });

  it('show a narrowed caller nothing of others', async () => {
    const { data, errors } = await as('one')(
      `query ($clabe: Clabe!, $account: ID!) {
        events(clabe: $clabe) { nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }
        account(by: { clabe: $clabe }) { moneyIn { nodes { id } } }
        nodes(ids: [$account]) { id }
        all: events(types: [MONEY_IN]) { nodes { ... on MoneyInEvent { account { ownerId } } } }
      }`,
      { clabe: others.clabe, account: others.id },
    );
    expect(errors).toBeUndefined();
    const nothing = { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null };
    expect(data.events).toEqual({ nodes: [], pageInfo: nothing });
    expect([data.account, data.nodes]).toEqual([null, [null]]);
    const owners = data.all.nodes.map((node: { account: { ownerId: string } }) => node.account.ownerId);
    expect(owners).toEqual(Array(4).fill(own.ownerId));
  });

  it('lead from a penny validation to its receipts', async () => {
    const destination = seeded.instruments.find(({ role }) => role === 'clabe')?.id;
    const input = {
      idempotencyKey: randomUUID(),
      sourceInstrumentId: seeded.centralizingInstrumentId,
      destinationInstrumentId: destination,
    };
    const { data } = await as('all')(
      'mutation ($input: CreatePennyValidationInput!) { createPennyValidation(input: $input) { ... on CreatePennyValidationSuccess { transaction { id } } } }',
      { input },
    );
    const { id } = data.createPennyValidation.transaction;
    await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 300 });
    await until(async () => {
      const found = await as('all')(
        'query ($id: ID!) { transaction(id: $id) { events { nodes { type } } } }',
        { id },
      );
      expect(found.errors).toBeUndefined();
      const types = found.data.transaction.events.nodes.map(({ type }: { type: string }) => type);
      expect(types.every((type: string) => type === 'CEP')).toBe(true);
      return types.length > 0;
    });
  });

  it('ask for the right to what they lead to', async () => {
    const into = await as('eventless')(CREDITED, { clabe: own.clabe });
    expect(into.data.account).toMatchObject({ id: own.id, moneyIn: null });
    expect(into.errors?.map(({ extensions }) => extensions['code'])).toEqual(['FORBIDDEN']);
    const out = await as('graphless')(
      'query ($clabe: Clabe!) { events(clabe: $clabe, last: 1) { nodes { ... on MoneyInEvent { account { id } payerBank { id } } } } }',
      { clabe: own.clabe },
    );
    expect(out.data.events.nodes).toEqual([{ account: null, payerBank: null }]);
    expect(out.errors?.map(({ extensions }) => extensions['code'])).toEqual(['FORBIDDEN', 'FORBIDDEN']);
  });

  it.each(TRANSPORTS)(
    'follow the credits to one CLABE, missed and live, over %s',
    async (_name, subscribe) => {
      const query =
        'subscription ($clabe: Clabe, $after: Cursor) { moneyIn(clabe: $clabe, after: $after) { cursor amount { amount } account { id } } }';
      const start = async (who: 'all' | 'one', clabe: string) => {
        const { data } = await as(who)('{ eventCursor }');
        return subscribe(gateway.graphql, tokens[who], {
          query,
          variables: { clabe, after: data.eventCursor },
        });
      };
      await using whole = await start('all', own.clabe);
      await using narrowed = await start('one', own.clabe);
      await using foreign = await start('one', others.clabe);
      await using theirs = await start('all', others.clabe);
      for (const amount of ['5.00', '6.00']) {
        await credit(others.clabe, `9${amount}`);
        await credit(own.clabe, amount);
      }
      for (const stream of [whole, narrowed]) {
        const results = await stream.received(2);
        expect(results.map(({ data }) => data.moneyIn)).toMatchObject([
          { amount: { amount: '5.00' }, account: { id: own.id } },
          { amount: { amount: '6.00' }, account: { id: own.id } },
        ]);
      }
      const results = await theirs.received(2);
      expect(results.map(({ data }) => data.moneyIn.account.id)).toEqual([others.id, others.id]);
      expect(foreign.results).toEqual([]);
      const after = whole.results[0]?.data.moneyIn.cursor;
      await using again = subscribe(gateway.graphql, tokens.all, {
        query,
        variables: { clabe: own.clabe, after },
      });
      expect((await again.received(1))[0]?.data.moneyIn.amount.amount).toBe('6.00');
    },
  );

  it('find several objects by their ids, in their order', async () => {
    const ids = [own.instrumentId, randomUUID(), others.id, own.instrumentId, 'not / an id', seeded.clientId];
    const { data, errors } = await as('all')('query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }', {
      ids,
    });
    expect(data.nodes).toEqual([
      { __typename: 'Instrument', id: own.instrumentId },
      null,
      { __typename: 'Account', id: others.id },
      { __typename: 'Instrument', id: own.instrumentId },
      null,
      { __typename: 'Client', id: seeded.clientId },
    ]);
    expect(errors?.map(({ path, extensions }) => [path, extensions['code']])).toEqual([
      [['nodes', 4], 'BAD_USER_INPUT'],
    ]);
    expect(
      (await as('one')('query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids: [own.id, others.id] }))
        .data,
    ).toEqual({
      nodes: [{ id: own.id }, null],
    });
    const many = await as('all')('query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Client { id } } }', {
      ids: Array(101).fill(own.id),
    });
    expect(many.data).toEqual({ nodes: null });
    expect(many.errors?.[0]?.extensions['code']).toBe('BAD_USER_INPUT');
    // Fifty customers of fifty accounts each cost what fifty such customers of a list cost.
    const dear = (count: number) =>
      as('all')(
        'query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Customer { accounts(first: 100) { nodes { moneyIn(first: 10) { nodes { id } } } } } } }',
        { ids: Array(count).fill(own.ownerId) },
      );
    expect((await dear(1)).errors).toBeUndefined();
    expect((await dear(50)).errors?.[0]?.extensions['code']).toBe('TOO_COMPLEX');
  });

  it('are looked up a hundred at a time, within one budget of reading', async () => {
    const { data, errors } = await as('all')(
      'query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Account { moneyIn(first: 1) { nodes { id } } } } }',
      { ids: Array(100).fill(own.id) },
    );
    expect(errors).toBeUndefined();
    const pages = data.nodes.map((node: { moneyIn: { nodes: unknown[] } }) => node.moneyIn.nodes.length);
    expect(pages).toEqual(Array(100).fill(1));
  });

  it('give the same when they are planned, and executed again', async () => {
    const document = `query ($clabe: Clabe!, $ids: [ID!]!) { account(by: { clabe: $clabe }) { client { id } } nodes(ids: $ids) { ... on Account { id clabe } } }`;
    const ask = () => as('all')(document, { clabe: own.clabe, ids: [own.id, 'not / an id'] });
    const answers = [await ask(), await ask(), await ask()];
    for (const { data, errors } of answers) {
      expect(data).toEqual({
        account: { client: { id: seeded.clientId } },
        nodes: [{ id: own.id, clabe: own.clabe }, null],
      });
      expect(errors).toHaveLength(1);
    }
  });
});
