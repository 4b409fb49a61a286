import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMetric } from '../helpers/fleet.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { VARIANTS } from '../helpers/variants.ts';

interface InstrumentPage {
  readonly totalCount: number;
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  readonly nodes: readonly { readonly id: string }[];
  readonly edges: readonly { readonly node: { readonly id: string } }[];
}

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const UNKNOWN = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';

describe.each(VARIANTS)('over %s,', (_name, sandboxOptions) => {
  let gateway: RunningGateway;
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  let world: any;

  beforeAll(async () => {
    gateway = await startGateway({ sandboxOptions, config: PATIENT });
    world = await control(gateway.sandbox, 'GET', '/sandbox');
  });
  afterAll(() => gateway.stop());

  /** The data of a query that must have no errors. */
  async function read(document: string, variables: Record<string, unknown> = {}) {
    const { data, errors } = await gateway.query(document, variables);
    expect(errors).toBeUndefined();
    return data;
  }

  it('the catalog of banks is whole, and each can be read by its id', async () => {
    const { banks } = await read('{ banks { id attributes } }');
    expect(banks.map(({ id }: { id: string }) => id).sort()).toEqual([...world.bankIds].sort());
    const [first] = banks;
    expect(Object.values(first.attributes)).toContain(first.id);
    expect(await read('query ($id: ID!) { bank(id: $id) { id attributes } }', { id: first.id })).toEqual({
      bank: first,
    });
  });

  it('an account is found by each of its four names, and its relations lead back to it', async () => {
    const fields = `id accountId bankId bank { id } ownerId ownerType owner { __typename ... on Client { id } }
      instrumentId instrument { id account { id } } clientBankAdapterId bankAdapter accountNumber clabe
      availableBalance { amount currency } type status audit { createdAt updatedAt deletedAt blockedAt activatedAt suspendedAt }`;
    const { account } = await read(`query ($by: AccountBy!) { account(by: $by) { ${fields} } }`, {
      by: { instrumentId: world.centralizingInstrumentId },
    });
    expect(account).toMatchObject({
      bank: { id: account.bankId },
      owner: { __typename: 'Client', id: world.clientId },
      instrument: { id: world.centralizingInstrumentId, account: { id: account.id } },
      availableBalance: { amount: expect.stringMatching(/^\d+\.\d{2}$/), currency: 'MXN' },
      clabe: expect.stringMatching(/^\d{18}$/),
      audit: { createdAt: expect.stringMatching(RFC_3339), deletedAt: null, blockedAt: null },
    });
    for (const by of [
      { id: account.id },
      { accountNumber: account.accountNumber },
      { clabe: account.clabe },
    ]) {
      expect(await read('query ($by: AccountBy!) { account(by: $by) { id } }', { by })).toEqual({
        account: { id: account.id },
      });
    }
  });

  it('a customer has its representative, its state and what it owns', async () => {
    const { customer } = await read(
      `query ($id: ID!) { customer(id: $id) {
        id name rfc domain alias status validationStatus rawValidationStatus client { id }
        legalRepresentative { name rfc phone email } audit { createdAt deletedAt }
        accounts { totalCount nodes { ownerId } }
        instruments(first: 100) { totalCount nodes { customerId ownerId owner { ... on Customer { id } } customer { id } } }
      } }`,
      { id: world.customerIds[0] },
    );
    expect(customer).toMatchObject({
      id: world.customerIds[0],
      client: { id: world.clientId },
      audit: { createdAt: expect.stringMatching(RFC_3339), deletedAt: null },
    });
    expect(['PENDING', 'VALIDATED', 'OTHER']).toContain(customer.validationStatus);
    expect(customer.instruments.totalCount).toBe(customer.instruments.nodes.length);
    expect(customer.instruments.totalCount).toBeGreaterThan(0);
    for (const instrument of customer.instruments.nodes) {
      expect(instrument).toMatchObject({
        customerId: customer.id,
        owner: { id: customer.id },
        customer: { id: customer.id },
      });
    }
    for (const account of customer.accounts.nodes) expect(account.ownerId).toBe(customer.id);
  });

  it('every instrument appears once, however the list is paged', async () => {
    const page = `query ($first: Int, $after: Cursor) { client { instruments(first: $first, after: $after) {
      totalCount pageInfo { hasNextPage hasPreviousPage endCursor } nodes { id } edges { cursor node { id } } } } }`;
    const expected = world.instruments.length;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 100 }), async (first) => {
        const seen: string[] = [];
        for (let after: string | null = null; ; ) {
          const { client } = await read(page, { first, after });
          const { instruments }: { instruments: InstrumentPage } = client;
          expect(instruments.totalCount).toBe(expected);
          expect(instruments.edges.map(({ node }) => node)).toEqual(instruments.nodes);
          seen.push(...instruments.nodes.map(({ id }) => id));
          if (!instruments.pageInfo.hasNextPage) break;
          after = instruments.pageInfo.endCursor;
        }
        expect(new Set(seen).size).toBe(expected);
        expect(seen).toHaveLength(expected);
      }),
      { numRuns: 12, examples: [[1], [7], [100]] },
    );
  });

  it('the lists without documented paging come whole', async () => {
    const { client } = await read(`{ client {
      accounts(first: 100) { totalCount nodes { id } }
      customers(first: 2) { totalCount nodes { id } pageInfo { hasNextPage } }
      webhooks { totalCount nodes { id url type status feedsGateway createdAt deletedAt } }
    } }`);
    expect(client.accounts.nodes).toHaveLength(client.accounts.totalCount);
    expect(client.customers).toMatchObject({ totalCount: 3, pageInfo: { hasNextPage: true } });
    expect(client.webhooks.nodes.map(({ type }: { type: string }) => type).sort()).toEqual([
      'CEP',
      'MONEY_IN',
    ]);
    for (const webhook of client.webhooks.nodes) {
      expect(webhook).toMatchObject({
        feedsGateway: true,
        url: expect.stringMatching(/\/\*+$/),
        deletedAt: null,
      });
    }
  });

  it('a card shows four digits and no more', async () => {
    const { instrument } = await read(
      'query ($id: ID!) { instrument(id: $id) { account { id } detail { __typename ... on CardDetail { maskedNumber lastFour holderName expirationDate } } } }',
      { id: world.cardInstrumentIds[0] },
    );
    expect(instrument.account).toBeNull();
    expect(instrument.detail).toMatchObject({
      __typename: 'CardDetail',
      maskedNumber: `************${instrument.detail.lastFour}`,
      lastFour: expect.stringMatching(/^\d{4}$/),
    });
  });

  it('a penny validation is read with both its ends and its receipt', async () => {
    const { transaction } = await read(
      `query ($id: ID!) { transaction(id: $id) {
        id amount { amount currency } status rawStatus category rawCategory subCategory externalReference trackingId
        source { instrumentId alias instrument { id } bank { id } } destination { instrumentId detail { ... on ClabeDetail { clabe } } }
        cep { validationId status final url beneficiaryName createdAt processedAt } client { id } audit { createdAt }
        originalTransaction { id } jsonReference } }`,
      { id: world.transactions.pennyValidationId },
    );
    expect(transaction).toMatchObject({
      amount: { amount: '0.01', currency: 'MXN' },
      subCategory: 'SPEI_DEBIT',
      source: {
        instrumentId: world.centralizingInstrumentId,
        instrument: { id: world.centralizingInstrumentId },
      },
      cep: {
        status: 'COMPLETED',
        final: true,
        createdAt: expect.stringMatching(RFC_3339),
        processedAt: expect.stringMatching(RFC_3339),
      },
      originalTransaction: null,
    });
  });

  it('a transaction of others is shown without the instrument that is not the client’s', async () => {
    const { transaction } = await read(
      'query ($id: ID!) { transaction(id: $id) { subCategory source { instrumentId instrument { id } } destination { instrument { id } } } }',
      { id: world.transactions.refundableCreditId },
    );
    expect(transaction.subCategory).toBe('SPEI_CREDIT');
    expect(transaction.source.instrument).toBeNull();
    expect(transaction.destination.instrument.id).toEqual(expect.any(String));
  });

  it('a look-up that must match finds a transaction or nothing', async () => {
    const look = async (match: object) =>
      (
        await read(
          'query ($id: ID!, $match: TransactionMatch) { transaction(id: $id, match: $match) { id } }',
          {
            id: world.transactions.moneyOutId,
            match,
          },
        )
      ).transaction;
    expect(await look({})).toEqual({ id: world.transactions.moneyOutId });
    expect(await look({ category: 'DEBIT_TRANS' })).toEqual({ id: world.transactions.moneyOutId });
    expect(await look({ category: 'INTER_TRANS' })).toBeNull();
  });

  it('look-ups of one transaction in one query match each for itself', async () => {
    const data = await read(
      `query ($id: ID!) {
        any: transaction(id: $id) { id }
        debit: transaction(id: $id, match: { category: "DEBIT_TRANS" }) { id }
        between: transaction(id: $id, match: { category: "INTER_TRANS" }) { id }
      }`,
      { id: world.transactions.moneyOutId },
    );
    const found = { id: world.transactions.moneyOutId };
    expect(data).toEqual({ any: found, debit: found, between: null });
  });

  it.each(
    ['status', 'trackingId', 'category'].flatMap((name) => ['', 'half \ud83d'].map((value) => [name, value])),
  )('a look-up is refused whose match has as its %s %j', async (name, value) => {
    const { data, errors } = await gateway.query(
      'query ($id: ID!, $match: TransactionMatch) { transaction(id: $id, match: $match) { id } }',
      { id: world.transactions.moneyOutId, match: { [name]: value } },
    );
    expect(data).toEqual({ transaction: null });
    expect(errors).toMatchObject([
      { message: expect.stringContaining(`match.${name}`), extensions: { code: 'BAD_USER_INPUT' } },
    ]);
  });

  it('what belongs to another client is what a random id is: nothing', async () => {
    const [other] = world.otherClients;
    const look = `query ($instrument: ID!, $customer: ID!, $transaction: ID!, $account: ID!) {
      instrument(id: $instrument) { id } customer(id: $customer) { id } transaction(id: $transaction) { id }
      account(by: { id: $account }) { id } client { instruments(customerId: $customer) { totalCount } } }`;
    const theirs = await gateway.query(look, {
      instrument: other.centralizingInstrumentId,
      customer: other.customerIds[0],
      transaction: other.transactions.moneyOutId,
      account: other.accountIds[0],
    });
    const random = await gateway.query(look, {
      instrument: UNKNOWN,
      customer: UNKNOWN,
      transaction: UNKNOWN,
      account: UNKNOWN,
    });
    expect(theirs.data).toEqual(random.data);
    expect(theirs.errors?.map(({ message, path }) => ({ message, path }))).toEqual(
      random.errors?.map(({ message, path }) => ({ message, path })),
    );
    expect(random.data).toMatchObject({ instrument: null, customer: null, transaction: null, account: null });
  });

  it('the credentials are for who holds the api key, and for nobody else', async () => {
    const document =
      'query ($id: ID!) { credentials(clientId: $id) { id clientId clientSecret environment status createdAt deletedAt } }';
    const variables = { id: world.clientId };
    const withKey = await gateway.query(document, variables, {
      'x-api-key': world.apiKey,
      authorization: undefined,
    });
    expect(withKey.errors).toBeUndefined();
    expect(withKey.data.credentials[0]).toMatchObject({
      clientId: world.clientId,
      clientSecret: world.clientSecret,
      deletedAt: null,
    });
    for (const headers of [{}, { authorization: undefined }]) {
      const without = await gateway.query(document, variables, headers);
      expect(without.data).toEqual({ credentials: null });
      expect(without.errors?.[0]?.extensions).toMatchObject({
        code: 'UNAUTHENTICATED',
        header: 'x-api-key',
      });
    }
  });

  it('values that the spec has not shown are OTHER, with the text beside it, and counted', async () => {
    const counted = () =>
      readMetric(gateway.url, 'pasarela_undocumented_values_total', 'enum="TransactionCategory"');
    const before = await counted();
    const { transaction } = await read('query ($id: ID!) { transaction(id: $id) { category rawCategory } }', {
      id: world.transactions.refundableCreditId,
    });
    expect(transaction).toEqual({ category: 'OTHER', rawCategory: sandboxOptions.choices?.creditCategory });
    expect((await counted()) - before).toBe(1);
  });
});
