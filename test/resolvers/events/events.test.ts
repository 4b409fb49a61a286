import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { PATIENT } from '../../helpers/gateway-config.ts';
import { subscribeOverSse } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';
import { VARIANTS } from '../../helpers/variants.ts';

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const UNKNOWN = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
const EVENTS = `query ($types: [EventType!], $ownerId: ID, $after: Cursor, $first: Int, $before: Cursor, $last: Int) {
  events(types: $types, ownerId: $ownerId, after: $after, first: $first, before: $before, last: $last) {
    edges { cursor } nodes { __typename id type cursor receivedAt ... on MoneyInEvent { amount { amount currency } ownerId } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`;

interface EventPage {
  readonly edges: readonly { readonly cursor: string }[];
  readonly nodes: readonly {
    readonly __typename: string;
    readonly cursor: string;
    readonly amount?: { readonly amount: string };
  }[];
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

describe.each(VARIANTS)('over %s,', (_name, sandboxOptions) => {
  let gateway: RunningGateway;
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  let world: any;
  /** Nothing of the events made before the tests. */
  let start: string;

  beforeAll(async () => {
    gateway = await startGateway({ sandboxOptions, config: PATIENT });
    world = await control(gateway.sandbox, 'GET', '/sandbox');
    start = (await gateway.query('{ eventCursor }')).data.eventCursor;
    for (const amount of ['1.00', '2.00', '3.00', '4.00', '5.00']) await credit(amount);
  });
  afterAll(() => gateway.stop());

  const credit = (amount: string, clabe = world.accounts[0].clabe) =>
    control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
  const advance = (advanceSeconds: number) =>
    control(gateway.sandbox, 'POST', '/sandbox/clock', { advanceSeconds });
  const read = async (variables: Record<string, unknown>): Promise<EventPage> => {
    const { data, errors } = await gateway.query(EVENTS, variables);
    expect(errors).toBeUndefined();
    return data.events;
  };
  const amounts = (page: EventPage) => page.nodes.map(({ amount }) => amount?.amount);
  const subscribe = (query: string, variables: Record<string, unknown> = {}) =>
    subscribeOverSse(gateway.graphql, gateway.sandbox.accessToken, { query, variables });
  const startValidation = async (destinationInstrumentId: string): Promise<string> => {
    const { data } = await gateway.query(
      'mutation ($input: CreatePennyValidationInput!) { createPennyValidation(input: $input) { ... on CreatePennyValidationSuccess { transaction { id } } } }',
      {
        input: {
          idempotencyKey: crypto.randomUUID(),
          sourceInstrumentId: world.centralizingInstrumentId,
          destinationInstrumentId,
        },
      },
    );
    return data.createPennyValidation.transaction.id;
  };

  it('the log is read on from a cursor, page by page, oldest first', async () => {
    const first = await read({ after: start, first: 2 });
    expect(amounts(first)).toEqual(['1.00', '2.00']);
    expect(first.edges.map(({ cursor }) => cursor)).toEqual(first.nodes.map(({ cursor }) => cursor));
    expect(first.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: true });
    const second = await read({ after: first.pageInfo.endCursor, first: 3 });
    expect(amounts(second)).toEqual(['3.00', '4.00', '5.00']);
    expect(second.pageInfo.hasNextPage).toBe(false);
  });

  it('the log is read back from the newest, still oldest first', async () => {
    const last = await read({ types: ['MONEY_IN'], last: 2 });
    expect(amounts(last)).toEqual(['4.00', '5.00']);
    expect(last.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: true });
    expect(amounts(await read({ before: last.pageInfo.startCursor, last: 2 }))).toEqual(['2.00', '3.00']);
  });

  it('a filter lets through what it names', async () => {
    expect((await read({ after: start, types: ['STATUS_UPDATE'] })).nodes).toEqual([]);
    expect(await read({ after: start, ownerId: UNKNOWN })).toMatchObject({
      nodes: [],
      pageInfo: { hasNextPage: false },
    });
    expect(amounts(await read({ after: start, ownerId: world.accounts[0].ownerId, first: 1 }))).toEqual([
      '1.00',
    ]);
  });

  it.each([
    [{ first: 1, last: 1 }, 'BAD_USER_INPUT'],
    [{ first: 1, before: 'x' }, 'BAD_USER_INPUT'],
    [{ first: 0 }, 'BAD_USER_INPUT'],
    [{ last: 101 }, 'BAD_USER_INPUT'],
    [{ types: [] }, 'BAD_USER_INPUT'],
    [{ ownerId: 'me' }, 'BAD_USER_INPUT'],
    [{ after: 'broken' }, 'CURSOR_INVALID'],
    [{ before: 'broken' }, 'CURSOR_INVALID'],
  ])('%j is refused', async (variables, code) => {
    const { data, errors } = await gateway.query(EVENTS, variables);
    expect(data).toEqual({ events: null });
    expect(errors?.[0]?.extensions['code']).toBe(code);
  });

  it('a credit carries all that its message says, and its transaction', async () => {
    const { data, errors } = await gateway.query(
      `query ($after: Cursor) { events(after: $after, first: 1) { nodes { id receivedAt ... on MoneyInEvent {
        messageDate transactionId subCategory rawSubCategory amount { amount currency } beneficiary { account name rfc }
        payer { account name rfc } payerInstitution trackingKey paymentConcept numericReference transactionDate registeredAt
        ownerId owner { ... on Client { id } } decision refundReason transaction { id status } } } } }`,
      { after: start },
    );
    expect(errors).toBeUndefined();
    const [event] = data.events.nodes;
    expect(event).toMatchObject({
      subCategory: 'SPEI_CREDIT',
      rawSubCategory: 'SPEI_CREDIT',
      amount: { amount: '1.00', currency: 'MXN' },
      beneficiary: { account: world.accounts[0].clabe },
      transactionDate: expect.stringMatching(RFC_3339),
      registeredAt: expect.stringMatching(RFC_3339),
      receivedAt: expect.stringMatching(RFC_3339),
      messageDate: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
      owner: { id: world.clientId },
      decision: 'ACCEPTED',
      refundReason: null,
      transaction: { id: event.transactionId },
    });
  });

  it('moneyIn of one owner tells of no other', async () => {
    const customerAccount = world.accounts.find(
      ({ ownerId, status }: { ownerId: string; status: string }) =>
        world.customerIds.includes(ownerId) && status === 'ACTIVE',
    );
    await using subscriber = subscribe(
      'subscription ($ownerId: ID, $after: Cursor) { moneyIn(ownerId: $ownerId, after: $after) { amount { amount } ownerId owner { ... on Customer { id } } } }',
      { ownerId: customerAccount.ownerId, after: start },
    );
    await credit('21.00');
    await credit('22.00', customerAccount.clabe);
    const [first] = await subscriber.received(1);
    expect(first?.data.moneyIn).toEqual({
      amount: { amount: '22.00' },
      ownerId: customerAccount.ownerId,
      owner: { id: customerAccount.ownerId },
    });
  });

  it('a receipt is followed to its end, though its messages name it in their own way', async () => {
    const transactionId = await startValidation(world.clabeInstrumentIds[0]);
    await using subscriber = subscribe(
      'subscription ($id: ID!) { cepStatus(transactionId: $id) { kind transactionId cep { status final url beneficiaryName processedAt } transaction { id } } }',
      { id: transactionId },
    );
    await subscriber.received(1);
    await advance(300);
    expect(await subscriber.ended).toBeUndefined();
    const updates = subscriber.results.map(({ data }) => data.cepStatus);
    expect(updates[0]).toMatchObject({
      kind: 'SNAPSHOT',
      transactionId,
      cep: { status: 'PENDING', final: false },
    });
    expect(updates.at(-1)).toMatchObject({
      kind: 'CHANGE',
      cep: {
        status: 'COMPLETED',
        final: true,
        url: updates[0].cep.url,
        beneficiaryName: expect.any(String),
        processedAt: expect.stringMatching(RFC_3339),
      },
      transaction: { id: transactionId },
    });
  });

  it('a message about a receipt is in the log, and leads to its transaction where its id is the transaction’s', async () => {
    const before = (await gateway.query('{ eventCursor }')).data.eventCursor;
    const transactionId = await startValidation(world.clabeInstrumentIds[1]);
    await advance(300);
    const node = await until(async () => {
      const { data } = await gateway.query(
        'query ($after: Cursor) { events(after: $after, types: [CEP], first: 100) { nodes { ... on CepEvent { bodyId transactionId status rawStatus trackingKey beneficiary { name rfc } processedAt transaction { id } } } } }',
        { after: before },
      );
      return data.events.nodes.find(({ status }: { status: string }) => status === 'COMPLETED');
    });
    expect(node).toMatchObject({ rawStatus: 'COMPLETED', processedAt: expect.stringMatching(RFC_3339) });
    const known = node.bodyId === transactionId ? transactionId : null;
    expect(node).toMatchObject({ transactionId: known, transaction: known === null ? null : { id: known } });
  });

  it('what names a transaction, or has a tracking key or a time, is found among all events', async () => {
    const FOUND = `query ($id: ID, $key: String, $from: DateTime, $to: DateTime, $types: [EventType!]) {
      events(transactionId: $id, trackingKey: $key, receivedFrom: $from, receivedTo: $to, types: $types, first: 100) {
        nodes { id receivedAt ... on MoneyInEvent { transactionId trackingKey } ... on CepEvent { rawStatus trackingKey } }
        reachesBackTo } }`;
    const search = async (variables: Record<string, unknown>) => {
      const { data, errors } = await gateway.query(FOUND, variables);
      expect(errors).toBeUndefined();
      return data.events;
    };
    const transactionId = await startValidation(world.clabeInstrumentIds[0]);
    await advance(300);
    const receipt = await until(async () =>
      (await search({ id: transactionId })).nodes.find(
        ({ rawStatus }: { rawStatus: string }) => rawStatus === 'COMPLETED',
      ),
    );
    expect((await search({ key: receipt.trackingKey })).nodes).toContainEqual(receipt);
    expect((await search({ id: transactionId, types: ['MONEY_IN'] })).nodes).toEqual([]);

    const { nodes: all, reachesBackTo } = await search({});
    expect(reachesBackTo).toBe(all[0].receivedAt);
    const [credit] = (await search({ types: ['MONEY_IN'] })).nodes;
    expect((await search({ id: credit.transactionId.toUpperCase() })).nodes).toEqual([credit]);
    expect((await search({ key: credit.trackingKey, id: credit.transactionId })).nodes).toEqual([credit]);
    expect((await search({ id: UNKNOWN })).nodes).toEqual([]);
    expect((await search({ from: reachesBackTo })).nodes).toEqual(all);
    expect((await search({ to: reachesBackTo })).nodes).toEqual([]);
    // A fraction of a millisecond later is later.
    const next = reachesBackTo.replace('Z', '1Z');
    expect((await search({ from: next })).nodes).not.toContainEqual(all[0]);
    expect((await search({ to: next })).nodes).toContainEqual(all[0]);
  });

  it.each([
    [{ from: '2026-11-17T00:00:00Z', to: '2026-11-17T00:00:00-00:00' }, 'must be earlier than "receivedTo"'],
    [{ to: '2026-02-29T00:00:00Z' }, 'names a day that there is not'],
    [{ id: 'no id' }, '"transactionId" must be'],
    [{ key: '' }, '"trackingKey" must not be empty'],
  ])('a search for what cannot be is refused: %j', async (variables, message) => {
    const { errors } = await gateway.query(
      'query ($id: ID, $key: String, $from: DateTime, $to: DateTime) { events(transactionId: $id, trackingKey: $key, receivedFrom: $from, receivedTo: $to) { nodes { id } } }',
      variables,
    );
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining(message),
      extensions: { code: 'BAD_USER_INPUT' },
    });
  });

  it.each([
    ['no id', 'penny', 'must be a UUID'],
    ['an id without a receipt', () => world.transactions.moneyOutId, 'only penny validations'],
  ])('cepStatus of %s ends with BAD_USER_INPUT', async (_what, id, message) => {
    await using subscriber = subscribe('subscription ($id: ID!) { cepStatus(transactionId: $id) { kind } }', {
      id: typeof id === 'function' ? id() : id,
    });
    const [result] = await subscriber.received(1);
    expect(result?.errors?.[0]).toMatchObject({
      message: expect.stringContaining(message),
      extensions: { code: 'BAD_USER_INPUT' },
    });
    await subscriber.ended;
  });
});
