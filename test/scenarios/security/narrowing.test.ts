import { randomUUID } from 'node:crypto';
import { Kind, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { alternativeChoices, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { buildSchema } from '../../../src/schema/index.ts';
import { control, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { subscribeOverSse, TRANSPORTS } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';

interface Seeded {
  readonly clientId: string;
  readonly centralizingInstrumentId: string;
  readonly customerIds: readonly string[];
  readonly accounts: readonly { id: string; instrumentId: string; ownerId: string; clabe: string }[];
  readonly bankIds: readonly string[];
  readonly clientBankAdapterId: string;
  readonly instruments: readonly { id: string; role: string; ownerId: string; status: string }[];
  readonly transactions: Readonly<Record<string, string>>;
}

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
let keys = 0;
const nextKey = () => `narrowing-${++keys}`;

/** The mutations that a document asks for. */
const changesIn = (document: string): readonly string[] =>
  parse(document).definitions.flatMap((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION && definition.operation === 'mutation'
      ? definition.selectionSet.selections.flatMap((field) =>
          field.kind === Kind.FIELD ? [field.name.value] : [],
        )
      : [],
  );

/** What a narrowed caller has asked for. */
const tried = new Set<string>();

/** A gateway in service mode, and tokens for all of the client and for its first two customers. */
async function start(choices = {}) {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices });
  const gateway = await startGateway({ sandbox, config: { service: serviceFor(sandbox) } });
  const seeded: Seeded = await control(sandbox, 'GET', '/sandbox');
  const [one = '', other = ''] = seeded.customerIds;
  const tokens = {
    all: await callerToken(),
    one: await callerToken({ customer_id: one }),
    other: await callerToken({ customer_id: other.toUpperCase() }),
  };
  const as =
    (who: keyof typeof tokens) =>
    (document: string, variables: Record<string, unknown> = {}) => {
      if (who !== 'all') for (const change of changesIn(document)) tried.add(change);
      return gateway.query(document, variables, { authorization: `Bearer ${tokens[who]}` });
    };
  const internal = (ownerId: string) =>
    seeded.instruments.find(
      (instrument) =>
        instrument.ownerId === ownerId && instrument.role === 'internal' && instrument.status === 'ACTIVE',
    )?.id ?? '';
  const external = (ownerId: string, role: 'clabe' | 'card') =>
    seeded.instruments.find((instrument) => instrument.ownerId === ownerId && instrument.role === role)?.id ??
    '';
  const credit = (ownerId: string, amount: string) =>
    control(sandbox, 'POST', '/sandbox/spei-credits', {
      clabe: seeded.accounts.find((account) => account.ownerId === ownerId)?.clabe,
      amount,
    });
  return {
    sandbox,
    gateway,
    seeded,
    one,
    other,
    tokens,
    as,
    internal,
    external,
    credit,
    async stop() {
      await gateway.stop();
      await sandbox.stop();
    },
  };
}

const VALIDATE = `mutation ($input: CreatePennyValidationInput!) {
  createPennyValidation(input: $input) {
    __typename ... on CreatePennyValidationSuccess { transaction { id } } ... on UserError { code }
  }
}`;
const PAY = `mutation ($input: CreateMoneyOutInput!) {
  createMoneyOut(input: $input) {
    __typename ... on CreateMoneyOutSuccess { replayed transaction { id } } ... on UserError { code message field upstream { httpStatus } }
  }
}`;
const INTERNAL = PAY.replaceAll('MoneyOut', 'InternalTransaction');
const REFUND = `mutation ($input: RefundTransactionInput!) {
  refundTransaction(input: $input) { __typename ... on RefundTransactionSuccess { refund { id } } ... on UserError { code message upstream { httpStatus } } }
}`;
const EVENTS = `query { events(first: 100) { nodes { __typename id ... on MoneyInEvent { ownerId amount { amount } } ... on CepEvent { bodyId } } } }`;

type World = Awaited<ReturnType<typeof start>>;

describe.each([
  ['the default upstream', {}],
  ['an upstream that differs wherever the spec is silent', alternativeChoices],
])('a caller narrowed to a customer, on %s', (_, choices) => {
  let world: World;
  beforeAll(async () => {
    world = await start(choices);
  });
  afterAll(() => world.stop());

  it('sees its own instruments, accounts and itself, and counts no others', async () => {
    const { one, as } = world;
    const document = `{ client {
      instruments(first: 100) { totalCount nodes { id ownerId customer { id } account { ownerId } } }
      accounts(first: 100) { totalCount nodes { ownerId } }
      customers { totalCount nodes { id } } webhooks { totalCount nodes { id } }
    } }`;
    const { data, errors } = await as('one')(document);
    expect(errors).toBeUndefined();
    const { instruments, accounts, customers, webhooks } = data.client;
    const whole = await as('all')(document);
    const own = whole.data.client.instruments.nodes.filter(
      (node: { ownerId: string }) => node.ownerId === one,
    );
    expect(own.length).toBeGreaterThan(3);
    expect(instruments.nodes.map(({ id }: { id: string }) => id)).toEqual(
      own.map(({ id }: { id: string }) => id),
    );
    expect(instruments.totalCount).toBe(own.length);
    expect(whole.data.client.instruments.totalCount).toBeGreaterThan(own.length);
    expect(accounts.nodes.every(({ ownerId }: { ownerId: string }) => ownerId === one)).toBe(true);
    expect(accounts.totalCount).toBe(accounts.nodes.length);
    expect(customers).toEqual({ totalCount: 1, nodes: [{ id: one }] });
    expect(webhooks).toEqual({ totalCount: 0, nodes: [] });
  });

  it('finds nothing by the ids of others', async () => {
    const { seeded, other, as, internal } = world;
    const theirs = seeded.accounts.find(({ ownerId }) => ownerId === other);
    const { data, errors } = await as('one')(
      `query ($instrument: ID!, $customer: ID!, $account: ID!, $clabe: Clabe!, $transaction: ID!) {
        instrument(id: $instrument) { id } customer(id: $customer) { id } transaction(id: $transaction) { id }
        byId: account(by: { id: $account }) { id } byInstrument: account(by: { instrumentId: $instrument }) { id }
        byClabe: account(by: { clabe: $clabe }) { id }
        client { instruments(customerId: $customer) { totalCount nodes { id } } }
      }`,
      {
        instrument: internal(other),
        customer: other,
        account: theirs?.id,
        clabe: theirs?.clabe,
        transaction: seeded.transactions['moneyOutId'],
      },
    );
    expect(errors).toBeUndefined();
    expect(data).toEqual({
      instrument: null,
      customer: null,
      transaction: null,
      byId: null,
      byInstrument: null,
      byClabe: null,
      client: { instruments: { totalCount: 0, nodes: [] } },
    });
  });

  it('sees a transaction from either side, and not the instrument on the other', async () => {
    const { seeded, one, as, internal } = world;
    const { data } = await as('all')(
      `mutation ($input: CreateInternalTransactionInput!) {
        createInternalTransaction(input: $input) { ... on CreateInternalTransactionSuccess { transaction { id } } }
      }`,
      {
        input: {
          idempotencyKey: nextKey(),
          sourceInstrumentId: seeded.centralizingInstrumentId,
          destinationInstrumentId: internal(one),
          amount: '10.00',
          description: 'Traspaso',
          externalReference: '7',
        },
      },
    );
    const { id } = data.createInternalTransaction.transaction;
    const document = `query ($id: ID!) { transaction(id: $id) {
      id source { instrumentId instrument { id } } destination { instrumentId instrument { id } }
    } }`;
    const seen = await as('one')(document, { id });
    expect(seen.errors).toBeUndefined();
    expect(seen.data.transaction).toEqual({
      id,
      source: { instrumentId: seeded.centralizingInstrumentId, instrument: null },
      destination: { instrumentId: internal(one), instrument: { id: internal(one) } },
    });
    expect((await as('other')(document, { id })).data.transaction).toBeNull();
  });

  it('registers instruments as its own, and for nobody else', async () => {
    const { one, other, as } = world;
    const banks = await as('one')('{ banks { id } }');
    const document = `mutation ($input: RegisterInstrumentInput!) { registerInstrument(input: $input) {
      __typename ... on RegisterInstrumentSuccess { instrument { id customerId } } ... on UserError { code }
    } }`;
    const input = {
      sourceBankId: banks.data.banks[0].id,
      alias: 'Tarjeta',
      receiver: {
        debitCard: {
          destinationBankId: banks.data.banks[0].id,
          cardNumber: '4152310000000009',
          holderName: 'Ana',
        },
      },
    };
    const own = await as('one')(document, { input });
    expect(own.data.registerInstrument).toMatchObject({ instrument: { customerId: one } });
    for (const customerId of [other, UNKNOWN]) {
      const { data } = await as('one')(document, { input: { ...input, customerId } });
      expect(data.registerInstrument).toEqual({ __typename: 'NotFoundError', code: 'NOT_FOUND' });
    }
  });

  it('opens accounts for itself, and for nobody else, whichever of two ids names another', async () => {
    const { one, other, as, seeded } = world;
    const { clientBankAdapterId } = seeded;
    const common = { bankId: seeded.bankIds[0], clientBankAdapterId };
    const document = `mutation ($input: CreateCustomerPrivateAccountInput!) { created: createCustomerPrivateAccount(input: $input) {
      __typename ... on CreateCustomerPrivateAccountSuccess { account { ownerId } } ... on UserError { code }
    } }`;
    const count = async () =>
      (await as('all')('{ client { accounts { totalCount } } }')).data.client.accounts.totalCount;
    const before = await count();
    for (const input of [
      { customerId: other },
      { customerId: other, ownerId: one },
      { customerId: one, ownerId: other },
      { customerId: UNKNOWN, ownerId: one },
    ]) {
      const { data } = await as('one')(document, { input: { ...common, ...input } });
      expect(data.created).toEqual({ __typename: 'NotFoundError', code: 'NOT_FOUND' });
    }
    const open = `mutation ($input: CreatePrivateAccountInput!) { created: createPrivateAccount(input: $input) {
      __typename ... on CreatePrivateAccountSuccess { account { ownerId } } ... on UserError { code }
    } }`;
    for (const ownerId of [other, seeded.clientId, UNKNOWN]) {
      const { data } = await as('one')(open, { input: { ...common, ownerId, accountId: UNKNOWN } });
      expect(data.created).toEqual({ __typename: 'NotFoundError', code: 'NOT_FOUND' });
    }
    expect(await count()).toBe(before);
    const own = await as('one')(document, { input: { ...common, customerId: one, ownerId: one } });
    expect(own.data.created).toMatchObject({ account: { ownerId: one } });
  });

  it('registers no webhook, and finds none to change', async () => {
    const { as } = world;
    const list = await as('all')('{ client { webhooks { nodes { id } } } }');
    const input = 'input: { type: MONEY_IN, url: "https://evil.example/x", token: "x" }';
    for (const create of ['createWebhook', 'createLegacyWebhook']) {
      const { errors } = await as('one')(`mutation { ${create}(${input}) { __typename } }`);
      expect(errors?.[0]?.extensions, create).toMatchObject({ code: 'FORBIDDEN' });
    }
    for (const id of [list.data.client.webhooks.nodes[0].id, UNKNOWN]) {
      const { data } = await as('one')(
        `mutation ($id: ID!) {
          updateWebhook(input: { id: $id, status: INACTIVE }) { __typename ... on UserError { code } }
          deleteWebhook(input: { id: $id }) { __typename ... on UserError { code } }
        }`,
        { id },
      );
      const notFound = { __typename: 'NotFoundError', code: 'NOT_FOUND' };
      expect(data).toEqual({ updateWebhook: notFound, deleteWebhook: notFound });
    }
  });

  it('refunds no credit that somebody else received', async () => {
    const { seeded, as } = world;
    for (const transactionId of [seeded.transactions['refundableCreditId'], UNKNOWN]) {
      const { data } = await as('one')(REFUND, {
        input: { idempotencyKey: nextKey(), transactionId, as: { reason: 'Error' } },
      });
      expect(data.refundTransaction).toMatchObject({ __typename: 'NotFoundError', code: 'NOT_FOUND' });
    }
    // Nothing was refunded: it still can be.
    const { data } = await as('all')('query ($id: ID!) { transaction(id: $id) { status } }', {
      id: seeded.transactions['refundableCreditId'],
    });
    expect(data.transaction.status).toBe('LIQUIDATED');
  });
});

describe('money of a caller narrowed to a customer', () => {
  let world: World;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const order = (source: string, destination: string, key = nextKey()) => ({
    input: {
      idempotencyKey: key,
      sourceInstrumentId: source,
      destinationInstrumentId: destination,
      amount: '10.00',
      description: 'Pago',
      externalReference: '7',
    },
  });

  it('moves from its own instruments to its own recipients', async () => {
    const { one, as, internal, external } = world;
    const { data, errors } = await as('one')(PAY, order(internal(one), external(one, 'card')));
    expect(errors).toBeUndefined();
    expect(data.createMoneyOut).toMatchObject({ __typename: 'CreateMoneyOutSuccess', replayed: false });
  });

  it.each(['PAY', 'INTERNAL', 'VALIDATE'])('moves from nobody else’s, whoever they are: %s', async (kind) => {
    const { sandbox, seeded, one, other, as, internal, external } = world;
    const before = await control(sandbox, 'GET', '/sandbox/ledger');
    const document = { PAY, VALIDATE, INTERNAL }[kind];
    const answers: unknown[] = [];
    for (const source of [internal(other), seeded.centralizingInstrumentId, UNKNOWN]) {
      const { input } = order(source, external(one, 'clabe'));
      const { amount: _a, currency: _c, ...penny } = { currency: 'MXN', ...input };
      const { data, errors } = await as('one')(document ?? '', {
        input: kind === 'VALIDATE' ? penny : input,
      });
      expect(errors).toBeUndefined();
      answers.push(data);
    }
    expect(JSON.stringify(answers[0])).toContain('NotFoundError');
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[2]).toEqual(answers[0]);
    const after = await control(sandbox, 'GET', '/sandbox/ledger');
    expect(after.movements).toHaveLength(before.movements.length);
  });

  it.each([
    ['createMoneyOut', PAY],
    ['createInternalTransaction', INTERNAL],
  ])('moves to nobody else’s instruments: they do not exist for it, by %s', async (field, document) => {
    const { seeded, one, other, as, internal } = world;
    const from = (destination: string) => as('one')(document, order(internal(one), destination));
    const toOther = await from(internal(other));
    expect(toOther.data[field]).toMatchObject({
      __typename: 'NotFoundError',
      code: 'DESTINATION_NOT_FOUND',
      // The service was not asked, and has said nothing.
      upstream: null,
    });
    for (const destination of [seeded.centralizingInstrumentId, UNKNOWN])
      expect((await from(destination)).data).toEqual(toOther.data);
  });

  it('is told of its own side of what the whole client moves between two customers', async () => {
    const { one, other, as, internal } = world;
    const paid = await as('all')(INTERNAL, order(internal(one), internal(other)));
    const debit = paid.data.createInternalTransaction.transaction.id;
    const document = `{ events(last: 1, types: [MONEY_IN]) { nodes { ... on MoneyInEvent {
      transactionId ownerId decision subCategory payerInstitution payerBank { id } } } } }`;
    const credit = await until(async () => {
      const [event] = (await as('other')(document)).data.events.nodes;
      return event?.subCategory === 'INT_CREDIT' && event;
    });
    expect(credit).toMatchObject({ ownerId: other, decision: 'INFORMED', payerBank: null });
    // The catalog has the same code, and it is one of the service's own here.
    const { banks } = (await as('all')('{ banks { institutionCode } }')).data;
    expect(banks).toContainEqual({ institutionCode: credit.payerInstitution });
    const sides = async (who: 'all' | 'one' | 'other') => {
      const side = async (id: string) => {
        const read = `query ($id: ID!) { transaction(id: $id) { payment { state } events { nodes { __typename } } } }`;
        const { payment, events } = (await as(who)(read, { id })).data.transaction;
        return [payment?.state, events.nodes.length];
      };
      return { debit: await side(debit), credit: await side(credit.transactionId) };
    };
    expect(await sides('all')).toEqual({ debit: ['DONE', 0], credit: [undefined, 1] });
    expect(await sides('one')).toEqual({ debit: [undefined, 0], credit: [undefined, 0] });
    expect(await sides('other')).toEqual({ debit: [undefined, 0], credit: [undefined, 1] });
  });

  it('is not given back by whoever had paid it', async () => {
    const { sandbox, one, other, as, internal } = world;
    // Money out to a CLABE of another customer of the same client comes back from SPEI as that one's credit.
    const paid = await as('all')(PAY, order(internal(one), internal(other)));
    await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 120 });
    expect(paid.data.createMoneyOut.__typename).toBe('CreateMoneyOutSuccess');
    const { data } = await as('other')(
      '{ events(last: 1, types: [MONEY_IN]) { nodes { ... on MoneyInEvent { transactionId ownerId } } } }',
    );
    const [credit] = data.events.nodes;
    expect(credit.ownerId).toBe(other);
    const seen = await as('one')('query ($id: ID!) { transaction(id: $id) { id } }', {
      id: credit.transactionId,
    });
    expect(seen.data.transaction).not.toBeNull();
    const input = { idempotencyKey: nextKey(), transactionId: credit.transactionId, as: { reason: 'Error' } };
    const taken = await as('one')(REFUND, { input });
    expect(taken.data.refundTransaction).toMatchObject({ __typename: 'NotFoundError', upstream: null });
    // What has never been recorded as sent leaves nothing of its key, and keeps nobody else from a refund.
    const asked = await as('one')('query ($key: String!) { payment(idempotencyKey: $key) { state } }', {
      key: input.idempotencyKey,
    });
    expect(asked).toMatchObject({ data: { payment: null } });
    const given = await as('other')(REFUND, { input: { ...input, idempotencyKey: nextKey() } });
    expect(given.data.refundTransaction.__typename).toBe('RefundTransactionSuccess');
  });

  it('has keys of its own: another customer’s key is another payment', async () => {
    const { one, other, as, internal, external } = world;
    const key = nextKey();
    const first = await as('one')(PAY, order(internal(one), external(one, 'card'), key));
    const second = await as('other')(PAY, order(internal(other), external(other, 'card'), key));
    const again = await as('one')(PAY, order(internal(one), external(one, 'card'), key));
    expect(first.data.createMoneyOut.replayed).toBe(false);
    expect(second.data.createMoneyOut.replayed).toBe(false);
    expect(again.data.createMoneyOut).toMatchObject({
      replayed: true,
      transaction: { id: first.data.createMoneyOut.transaction.id },
    });
  });
});

describe('events of a caller narrowed to a customer', () => {
  let world: World;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const validate = async (source: string, destination: string): Promise<string> => {
    const { data, errors } = await world.as('all')(VALIDATE, {
      input: { idempotencyKey: nextKey(), sourceInstrumentId: source, destinationInstrumentId: destination },
    });
    expect(errors).toBeUndefined();
    return data.createPennyValidation.transaction.id;
  };

  it.each(TRANSPORTS)('are its credits and its receipts, live as replayed, over %s', async (_, subscribe) => {
    const { sandbox, gateway, seeded, one, other, tokens, as, internal, external, credit } = world;
    const { data } = await as('one')('{ eventCursor }');
    const subscription = {
      query: `subscription ($after: Cursor) { events(after: $after) {
        __typename cursor ... on MoneyInEvent { ownerId amount { amount } } ... on CepEvent { bodyId status }
      } }`,
      variables: { after: data.eventCursor },
    };
    await using live = subscribe(gateway.graphql, tokens.one, subscription);
    await credit(one, '1.00');
    await live.received(1);
    await credit(other, '2.00');
    const own = await validate(internal(one), external(one, 'clabe'));
    await validate(seeded.centralizingInstrumentId, external(one, 'clabe'));
    await validate(internal(other), external(other, 'clabe'));
    await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 300 });
    await credit(one, '3.00');

    const shown = async (results: typeof live.results) => {
      const events = results.map((result) => result.data.events);
      expect(events.filter((event) => event.ownerId !== undefined).map((event) => event.ownerId)).toEqual([
        one,
        one,
      ]);
      const receipts = events.filter((event) => event.bodyId !== undefined);
      expect(new Set(receipts.map((event) => event.bodyId))).toEqual(new Set([own]));
      return events.length;
    };
    const whole = () => live.results.at(-1)?.data?.events?.amount?.amount === '3.00';
    while (!whole()) await live.received(live.results.length + 1);
    const count = await shown(live.results);

    await using replayed = subscribe(gateway.graphql, tokens.one, subscription);
    expect(await shown(await replayed.received(count))).toBe(count);
    expect(replayed.results.map((result) => result.data.events)).toEqual(
      live.results.map((result) => result.data.events),
    );
  });

  it('are the same in a page of the log, and STATUS_UPDATE is not among them', async () => {
    const { gateway, sandbox, one, as } = world;
    await fetch(gateway.ingress.url(sandbox.clientId, 'STATUS_UPDATE') ?? '', {
      method: 'POST',
      body: JSON.stringify({ id_msg: 'status-1', what: 'ever' }),
    });
    const whole = await as('all')(EVENTS);
    expect(JSON.stringify(whole.data)).toContain('StatusUpdateEvent');
    const { data, errors } = await as('one')(EVENTS);
    expect(errors).toBeUndefined();
    const kinds = new Set(data.events.nodes.map((node: { __typename: string }) => node.__typename));
    expect(kinds).toEqual(new Set(['MoneyInEvent', 'CepEvent']));
    const owners = data.events.nodes.flatMap((node: { ownerId?: string }) => node.ownerId ?? []);
    expect(new Set(owners)).toEqual(new Set([one]));
  });

  it('hold no receipt of a validation that somebody else has paid', async () => {
    const { sandbox, gateway, tokens, one, other, as, internal, external } = world;
    const foreign = await validate(internal(other), external(other, 'clabe'));
    const paidToOne = await validate(internal(other), external(one, 'clabe'));
    // The movement is its own, as its destination is: the receipt is that of who has paid.
    const { data } = await as('one')(`{ transaction(id: "${paidToOne}") { id } }`);
    expect(data).toEqual({ transaction: { id: paidToOne } });
    const watch = (id: string) =>
      subscribeOverSse(gateway.graphql, tokens.one, {
        query:
          'subscription ($id: ID!) { cepStatus(transactionId: $id) { kind cep { status beneficiaryName } } }',
        variables: { id },
      });
    await using theirs = watch(foreign);
    await using received = watch(paidToOne);
    await using nobodys = watch(UNKNOWN);
    await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 300 });
    await Promise.all([theirs.ended, received.ended, nobodys.ended]);
    const errors = [theirs, received, nobodys].map(({ results }) => {
      expect(results).toHaveLength(1);
      return JSON.stringify(results[0])
        .replaceAll(foreign, 'ID')
        .replaceAll(paidToOne, 'ID')
        .replaceAll(UNKNOWN, 'ID')
        .replace(/"requestId":"[^"]*"/, '');
    });
    expect(errors[0]).toContain('BAD_USER_INPUT');
    expect(errors).toEqual(errors.map(() => errors[0]));
  });

  const FOLLOWED = {
    query: 'subscription ($after: Cursor) { events(after: $after) { __typename cursor } }',
  };

  it('have cursors that tell nothing, and none but those is taken', async () => {
    const { gateway, tokens, as, one, credit } = world;
    const cursorOf = async (who: 'all' | 'one' | 'other') =>
      String((await as(who)('{ eventCursor }')).data.eventCursor);
    const [plain, own, others] = [await cursorOf('all'), await cursorOf('one'), await cursorOf('other')];
    await credit(one, '4.00');
    const READ = 'query ($c: Cursor) { events(after: $c) { edges { cursor } pageInfo { endCursor } } }';
    await until(async () => (await as('one')(READ, { c: own })).data.events.edges.length > 0);
    const { edges, pageInfo } = (await as('one')(READ, { c: own })).data.events;
    for (const cursor of [own, pageInfo.endCursor, ...edges.map((edge: { cursor: string }) => edge.cursor)]) {
      expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/\|\d+$/);
    }
    // In the middle: the last characters hold bits that count for nothing.
    const altered = `${own.slice(0, 20)}${own[20] === 'A' ? 'B' : 'A'}${own.slice(21)}`;
    const foreign = [plain, others, altered, `${plain.slice(0, -1)}x`];
    for (const cursor of foreign) {
      for (const argument of ['after', 'before']) {
        const { errors } = await as('one')(
          `query ($c: Cursor) { events(${argument}: $c) { nodes { id } } }`,
          { c: cursor },
        );
        const { code, oldest } = errors?.[0]?.extensions ?? {};
        expect(code).toBe('CURSOR_INVALID');
        expect((await as('one')(READ, { c: oldest })).data.events.edges).toEqual(
          expect.arrayContaining(edges),
        );
      }
      for (const [, subscribe] of TRANSPORTS) {
        await using stream = subscribe(gateway.graphql, tokens.one, {
          ...FOLLOWED,
          variables: { after: cursor },
        });
        await stream.ended;
        expect(JSON.stringify([await stream.ended, stream.results])).toContain('CURSOR_INVALID');
      }
    }
    for (const [, subscribe] of TRANSPORTS) {
      await using stream = subscribe(gateway.graphql, tokens.one, { ...FOLLOWED, variables: { after: own } });
      await stream.received(1);
      expect(stream.results[0]?.data.events.cursor).toBe(edges[0].cursor);
    }
    // Who may read the log whole is shown it as it is.
    expect(Buffer.from(await cursorOf('all'), 'base64url').toString()).toMatch(/^1\|/);
    expect((await as('all')(READ, { c: own })).errors?.[0]?.extensions).toMatchObject({
      code: 'CURSOR_INVALID',
    });
  });

  const unattributed = async (reason: string): Promise<number> => {
    const text = await (await fetch(`${world.gateway.url}/metrics`)).text();
    const found = new RegExp(`^pasarela_events_unattributed_total{reason="${reason}"} (\\d+)$`, 'm').exec(
      text,
    );
    return Number(found?.[1]);
  };

  /** A receipt as the provider would tell of it, long ago. */
  const receiptOf = async (id: unknown): Promise<void> => {
    const { sandbox, gateway } = world;
    const response = await fetch(gateway.ingress.url(sandbox.clientId, 'CEP') ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_id: sandbox.clientId,
        webhook_type: 'CEP',
        payload: { id_msg: randomUUID(), body: { id, status: 'PENDING' } },
      }),
    });
    expect(response.status).toBe(201);
  };

  it('go on past a receipt of a transaction that nobody knows, which is counted once', async () => {
    const { gateway, tokens, as, one, credit } = world;
    const cursorOf = async (who: 'one' | 'other') => (await as(who)('{ eventCursor }')).data.eventCursor;
    const after = { one: await cursorOf('one'), other: await cursorOf('other') };
    const before = { unknown: await unattributed('unknown'), unnamed: await unattributed('unnamed') };
    await receiptOf(randomUUID());
    await receiptOf('no UUID');
    await credit(one, '9.00');
    const followed = { ...FOLLOWED, variables: { after: after.one } };
    await using live = subscribeOverSse(gateway.graphql, tokens.one, followed);
    await live.received(1);
    expect(live.results.map((result) => result.data.events.__typename)).toEqual(['MoneyInEvent']);
    for (const who of ['one', 'other'] as const) {
      const page = await as(who)(
        'query ($after: Cursor) { events(after: $after) { nodes { __typename } } }',
        { after: after[who] },
      );
      expect(page.errors).toBeUndefined();
      expect(page.data.events.nodes).toEqual(who === 'one' ? [{ __typename: 'MoneyInEvent' }] : []);
    }
    expect(await unattributed('unknown')).toBe(before.unknown + 1);
    expect(await unattributed('unnamed')).toBe(before.unnamed + 1);
    expect(gateway.log.filter((line) => line.includes('"reason":"unnamed"'))).toHaveLength(
      before.unnamed + 1,
    );
  });

  it('wait a moment for a service that fails, and go on without what it has not told', async () => {
    const { sandbox, gateway, tokens, as, one, internal, external, credit } = world;
    const { data } = await as('one')('{ eventCursor }');
    const before = await unattributed('unavailable');
    const own = await validate(internal(one), external(one, 'clabe'));
    const fault = (count?: number) =>
      control(sandbox, 'POST', '/sandbox/faults', {
        match: { path: `/v1/clients/*/transactions/${own}` },
        fault: { status: 500, body: {} },
        ...(count === undefined ? {} : { times: count }),
      });
    await fault();
    await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 300 });
    await credit(one, '9.00');
    const subscription = { ...FOLLOWED, variables: { after: data.eventCursor } };
    await using blind = subscribeOverSse(gateway.graphql, tokens.one, subscription);
    // The receipts are given up together: that takes as long as one.
    await blind.received(1);
    expect(blind.results.map((result) => result.data.events.__typename)).toEqual(['MoneyInEvent']);
    expect(await unattributed('unavailable')).toBeGreaterThan(before);
    await control(sandbox, 'DELETE', '/sandbox/faults');
    await fault(4);
    await using patient = subscribeOverSse(gateway.graphql, tokens.one, subscription);
    await until(() => patient.results.at(-1)?.data?.events?.__typename === 'MoneyInEvent');
    expect(patient.results.map((result) => result.data.events.__typename)).toContain('CepEvent');
  });
});

it.each(['accounts', 'customers'])(
  'a caller narrowed to a customer is not told how many %s the client has, where their list cannot be used',
  async (list) => {
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    await using gateway = await startGateway({ sandbox, config: { service: serviceFor(sandbox) } });
    const { customerIds }: Seeded = await control(sandbox, 'GET', '/sandbox');
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { method: 'GET', path: `/v1/clients/*/${list}` },
      fault: {
        status: 200,
        body: { data: [], currentPage: 1, perPage: 50, totalItem: 4_321, totalItems: 4_321 },
      },
    });
    const messageFor = async (claims: { customer_id?: string }) => {
      const headers = { authorization: `Bearer ${await callerToken(claims)}` };
      const { errors } = await gateway.query(`{ client { ${list} { totalCount } } }`, {}, headers);
      expect(errors?.[0]?.extensions['code']).toBe('UPSTREAM_INVALID');
      return errors?.[0]?.message;
    };
    const of = `The service's list GET /v1/clients/{clientId}/${list}`;
    expect(await messageFor({})).toBe(`${of} holds 4321 items and shows none.`);
    expect(await messageFor({ customer_id: customerIds[0] ?? '' })).toBe(`${of} is invalid.`);
  },
);

it('each change of the graph is tried above by a caller who is narrowed', () => {
  // Callers who are narrowed come to a gateway that gives out no tokens.
  const { issueCredentialToken: _token, ...fields } = buildSchema().getMutationType()?.getFields() ?? {};
  expect([...tried].toSorted()).toEqual(Object.keys(fields).toSorted());
});
