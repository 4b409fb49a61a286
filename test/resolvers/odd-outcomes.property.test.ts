import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { buildSchema } from '../../src/schema/index.ts';
import {
  type AlteredService,
  altered,
  ODDITIES,
  type Oddity,
  placesIn,
  startAltered,
} from '../helpers/altered-service.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { OWN, TRANSACTION } from '../helpers/selections.ts';

const RUNS = 25;

const REFUSED =
  '... on UserError { message code field upstream { httpStatus message reason errorCode detail module methodName code details } }';
const UNKNOWN = '... on OutcomeUnknown { message safeToRetry retryUntil }';
const ACCOUNT = `account { ${OWN['accounts']} }`;
const WEBHOOK = `webhook { ${OWN['webhooks']} }`;
const PAID = `replayed transaction { ${TRANSACTION} }`;

/** In the form that the service documents. */
const REFUSAL = {
  code: 9,
  message: 'API Error',
  details: [
    {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'DATA_ERROR',
      domain: 'CORE',
      metadata: {
        error_detail: 'Transaction currency unsupported.',
        http_code: '400',
        module: 'Transactions',
      },
    },
  ],
};

/** What may come of a change whose answer is odd: never `INTERNAL`, and never the caller's own fault. */
const ALLOWED: ReadonlySet<unknown> = new Set([
  'UPSTREAM_INVALID',
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_TIMEOUT',
]);

let sandbox: Sandbox;
let service: AlteredService;
let gateway: RunningGateway;
// biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
let world: any;

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, webhookHosts: ['example.mx'] });
  service = await startAltered(sandbox.url);
  gateway = await startGateway({
    sandbox,
    config: { upstreamUrl: service.url, upstreamTimeoutMs: 60_000, operationTimeoutMs: 10_000 },
  });
  world = await control(sandbox, 'GET', '/sandbox');
});

afterAll(async () => {
  await gateway.stop();
  await service[Symbol.asyncDispose]();
  await sandbox.stop();
});

interface Change {
  readonly name: string;
  /** Of the success, where it is not the change's own. */
  readonly success?: string;
  readonly fields: string;
  readonly input: () => object;
  /** Whether its union has no `OutcomeUnknown`. */
  readonly isClear?: true;
}

const between = (destinationInstrumentId: string) => ({
  idempotencyKey: randomUUID(),
  sourceInstrumentId: world.centralizingInstrumentId,
  destinationInstrumentId,
});
const ORDER = { amount: '1.00', description: 'x', externalReference: '1' };

const CHANGES: readonly Change[] = [
  {
    name: 'createPrivateAccount',
    fields: ACCOUNT,
    input: () => ({
      bankId: world.bankIds[0],
      ownerId: world.clientId,
      clientBankAdapterId: world.clientBankAdapterId,
      accountId: randomUUID(),
    }),
  },
  {
    name: 'createCustomerPrivateAccount',
    fields: ACCOUNT,
    input: () => ({
      customerId: world.customerIds[0],
      bankId: world.bankIds[0],
      ownerId: world.customerIds[0],
      clientBankAdapterId: world.clientBankAdapterId,
    }),
  },
  {
    name: 'registerInstrument',
    fields: `instrument { ${OWN['instruments']} }`,
    input: () => ({
      sourceBankId: world.bankIds[0],
      alias: 'a',
      receiver: {
        debitCard: { destinationBankId: world.bankIds[1], cardNumber: '4111111111111111', holderName: 'h' },
      },
    }),
  },
  {
    name: 'createMoneyOut',
    fields: PAID,
    input: () => ({ ...between(world.cardInstrumentIds[0]), ...ORDER }),
  },
  {
    name: 'createInternalTransaction',
    fields: PAID,
    input: () => ({
      ...between(world.internalInstrumentIds.find((id: string) => id !== world.centralizingInstrumentId)),
      ...ORDER,
    }),
  },
  { name: 'createPennyValidation', fields: PAID, input: () => between(world.clabeInstrumentIds[0]) },
  {
    name: 'refundTransaction',
    fields: `replayed refund { ${TRANSACTION} } original { ${TRANSACTION} }`,
    input: () => ({
      idempotencyKey: randomUUID(),
      transactionId: world.transactions.refundableCreditId,
      as: { reason: 'x' },
    }),
  },
  {
    name: 'createWebhook',
    fields: `token ${WEBHOOK}`,
    input: () => ({ type: 'CEP', url: `https://example.mx/${randomUUID()}` }),
  },
  {
    name: 'createLegacyWebhook',
    success: 'CreateWebhookSuccess',
    fields: `token ${WEBHOOK}`,
    input: () => ({ type: 'MONEY_IN', url: `https://example.mx/${randomUUID()}`, token: 't' }),
  },
  {
    name: 'updateWebhook',
    fields: `id ${WEBHOOK}`,
    input: () => ({ id: 'none', token: 't' }),
    isClear: true,
  },
  { name: 'deleteWebhook', fields: 'id', input: () => ({ id: 'none' }), isClear: true },
];

const capital = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`;

/** A change `b` behind another one, `a`, which the service accepts. */
function documentOf({ name, success = `${capital(name)}Success`, fields, isClear }: Change): string {
  const of =
    success === 'CreateWebhookSuccess' && name !== 'createWebhook' ? 'CreateLegacyWebhook' : capital(name);
  return `mutation ($input: ${of}Input!) {
    a: deleteWebhook(input: { id: "first" }) { __typename }
    b: ${name}(input: $input) { __typename ${REFUSED} ${isClear ? '' : UNKNOWN} ... on ${success} { ${fields} } }
  }`;
}

/** The service accepts the first change, and answers all others with one place altered. */
function alterAfterFirst(status: number | undefined, choice: number, oddity: Oddity | undefined): void {
  service.alter = ({ method, path }, { body }) => {
    if (method === 'GET') return undefined;
    // Told by what it is: payments of earlier tests, whose outcome is unknown, are sent again meanwhile.
    if (method === 'DELETE' && path.endsWith('/first')) return { status: 200, body: undefined };
    const whole = status === undefined ? body : REFUSAL;
    const places = [[], ...placesIn(whole)];
    const given = oddity === undefined ? whole : altered(whole, places[choice % places.length] ?? [], oddity);
    return { ...(status === undefined ? {} : { status }), body: given };
  };
}

describe('an odd answer of the service to a change', () => {
  it('is tried for each change of the graph', () => {
    // That of a token has tests of its own below, with its api key.
    const { issueCredentialToken: _token, ...fields } = buildSchema().getMutationType()?.getFields() ?? {};
    expect(CHANGES.map(({ name }) => name).toSorted()).toEqual(Object.keys(fields).toSorted());
  });

  it.each(CHANGES)(
    'is never INTERNAL, and takes nothing from the change before it: $name',
    {
      timeout: 300_000,
    },
    async (change) => {
      const document = documentOf(change);
      await fc.assert(
        fc.asyncProperty(
          fc.nat(200),
          fc.constantFrom<Oddity>(...ODDITIES),
          fc.constantFrom(undefined, 400, 404, 409, 422, 429, 500),
          async (choice, oddity, status) => {
            alterAfterFirst(status, choice, oddity);
            const { data, errors = [] } = await gateway.query(document, { input: change.input() });
            expect(errors.filter(({ extensions }) => !ALLOWED.has(extensions['code']))).toEqual([]);
            expect(data.a).toEqual({ __typename: 'DeleteWebhookSuccess' });
          },
        ),
        { numRuns: RUNS },
      );
    },
  );

  it('is told at its own field, beside the payment that has moved', async () => {
    service.alter = ({ path }) =>
      path.endsWith('/penny_validation') ? { status: 429, body: REFUSAL } : undefined;
    const { data, errors } = await gateway.query(
      `mutation ($pay: CreateMoneyOutInput!, $ask: CreatePennyValidationInput!) {
        a: createMoneyOut(input: $pay) { ... on CreateMoneyOutSuccess { transaction { id amount { amount } } } }
        b: createPennyValidation(input: $ask) { __typename }
      }`,
      {
        pay: { ...between(world.cardInstrumentIds[0]), ...ORDER, amount: '77.00' },
        ask: between(world.clabeInstrumentIds[0]),
      },
    );
    expect(data).toEqual({
      a: { transaction: { id: expect.any(String), amount: { amount: '77.00' } } },
      b: null,
    });
    expect(errors).toMatchObject([{ path: ['b'], extensions: { code: 'UPSTREAM_RATE_LIMITED' } }]);
  });

  it('to an exchange of credentials is never INTERNAL', { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(200), fc.constantFrom<Oddity>(...ODDITIES), async (choice, oddity) => {
        service.alter = ({ path }, { body }) => {
          if (!path.endsWith('/auth/credential-tokens')) return undefined;
          const places = [[], ...placesIn(body)];
          return { body: altered(body, places[choice % places.length] ?? [], oddity) };
        };
        const { errors = [] } = await gateway.query(
          `mutation ($input: IssueCredentialTokenInput!) { issueCredentialToken(input: $input) {
            __typename ${REFUSED} ... on CredentialToken { id clientId clientCredentialId token status expiresAt createdAt updatedAt deletedAt }
          } }`,
          { input: { clientId: world.clientId, clientSecret: sandbox.clientSecret } },
          { authorization: undefined, 'x-api-key': sandbox.apiKey },
        );
        expect(errors.filter(({ extensions }) => !ALLOWED.has(extensions['code']))).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });
});
