import { randomUUID } from 'node:crypto';
import {
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { SCOPES, type Scope } from '../../../src/auth/caller.ts';
import { ForbiddenError } from '../../../src/resolvers/errors.ts';
import { buildSchema } from '../../../src/schema/index.ts';

import { readsOf, resolveFor } from '../../helpers/field-reads.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { TRANSPORTS } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';

const schema: GraphQLSchema = buildSchema();

/** What the graph is made of: all that is not an event, the result of a change, or a part of such. */
const NOUNS = /^(Account|Bank|Customer|Instrument|Owner|Payment|Transaction|Webhook)(Connection)?$/;
/** What a change answers with is its own: the thing as the service answered it. */
const OWN_RESULTS = new Set([
  'CreatePrivateAccountSuccess.account',
  'CreateCustomerPrivateAccountSuccess.account',
  'RegisterInstrumentSuccess.instrument',
  'CreateMoneyOutSuccess.transaction',
  'CreateInternalTransactionSuccess.transaction',
  'CreatePennyValidationSuccess.transaction',
  'RefundTransactionSuccess.refund',
  'CreateWebhookSuccess.webhook',
]);
/** Reads in order to tell which transaction the event is about, and nothing else of it. */
const TELLS_AN_ID = new Set(['CepEvent.transactionId']);
/** Each update of it is a part of the graph: the root field itself asks for graph:read. */
const ASKED_AT_THE_ROOT = new Set(['TransactionUpdate.transaction']);

/** Scopes that a field asks for beneath the root. */
const LEADING = ['graph:read', 'events:read', 'payments:read'] as const satisfies readonly Scope[];

/** What a resolver asks the operation for that reads the record of payments. */
const RECORD = 'services.money.payments';

type Edge = { readonly owner: string; readonly field: string; readonly needsArguments: boolean };

const compositesOf = (type: GraphQLNamedType): readonly GraphQLObjectType[] => {
  if (isObjectType(type)) return [type];
  return isLeafType(type) || !('name' in type) ? [] : schema.getPossibleTypes(type as never);
};

/** Fields that lead into the graph, of everything that can be reached without having entered it. */
function entries(): { readonly edges: readonly Edge[]; readonly outside: readonly string[] } {
  const roots = [schema.getMutationType(), schema.getSubscriptionType()];
  const eventRoots = ['events'].map((name) => schema.getQueryType()?.getFields()[name]?.type);
  const reached = new Set(
    [...roots, ...eventRoots].flatMap((type) => (type ? compositesOf(getNamedType(type)) : [])),
  );
  const edges: Edge[] = [];
  for (const type of reached) {
    for (const field of Object.values(type.getFields())) {
      const target = getNamedType(field.type);
      const name = `${type.name}.${field.name}`;
      if (NOUNS.test(target.name) && !OWN_RESULTS.has(name) && !ASKED_AT_THE_ROOT.has(name)) {
        edges.push({
          owner: type.name,
          field: field.name,
          needsArguments: field.args.some(isRequiredArgument),
        });
      } else for (const next of compositesOf(target)) reached.add(next);
    }
  }
  return { edges, outside: [...reached].map(({ name }) => name) };
}

const { edges, outside } = entries();
const edgeOf = (owner: string, field: string) =>
  edges.find((edge) => edge.owner === owner && edge.field === field);

/** Fields that lead from the graph into the event log: those of the graph's types that read it, whatever their type is. */
const intoLog: ReadonlySet<string> = new Set(
  (
    await Promise.all(
      Object.values(schema.getTypeMap()).flatMap((type) =>
        isObjectType(type) && NOUNS.test(type.name)
          ? Object.values(type.getFields()).map(async (field) =>
              (await readsOf(field)).has('reads.events') ? `${type.name}.${field.name}` : '',
            )
          : [],
      ),
    )
  ).filter((name) => name !== ''),
);
const isIntoLog = (owner: string, field: string): boolean => intoLog.has(`${owner}.${field}`);

/** The scopes that a field asks for, where it leads into the graph, the event log or the record of payments, by a name such as `Account.moneyIn`. */
const asked = new Map<string, readonly Scope[]>();
for (const type of Object.values(schema.getTypeMap())) {
  const isRoot = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].some(
    (root) => root === type,
  );
  if (!isObjectType(type) || isRoot || type.name.startsWith('__')) continue;
  for (const field of Object.values(type.getFields())) {
    const read = await readsOf(field);
    const isWay = edgeOf(type.name, field.name) !== undefined || read.has('reads.events') || read.has(RECORD);
    if (!isWay) continue;
    const scopes: Scope[] = [];
    for (const scope of LEADING) {
      const { failure } = await resolveFor(field, (one) => one !== scope);
      if (failure instanceof ForbiddenError) scopes.push(scope);
    }
    asked.set(`${type.name}.${field.name}`, scopes);
  }
}

/** All fields that lie outside the graph, and the id of whatever each edge leads to. */
function selectionOf(type: GraphQLNamedType, above: readonly string[] = []): string {
  if (isLeafType(type)) return '';
  if (!isObjectType(type)) {
    const parts = compositesOf(type).map((one) => `... on ${one.name} ${selectionOf(one, above)}`);
    return `{ __typename ${parts.join(' ')} }`;
  }
  const inside = !outside.includes(type.name);
  const fields = Object.values(type.getFields()).flatMap((field) => {
    const target = getNamedType(field.type);
    if (inside && !isLeafType(target)) return [];
    // A type within itself is gone through once.
    if (field.args.some(isRequiredArgument) || above.includes(target.name)) return [];
    const name = `${type.name}_${field.name}: ${field.name}`;
    // What the log holds is gone through from its root field.
    if (isIntoLog(type.name, field.name)) return [isLeafType(target) ? name : `${name} { __typename }`];
    return [`${name} ${selectionOf(target, [...above, type.name])}`];
  });
  return `{ __typename ${fields.join(' ')} }`;
}

interface Crossing {
  /** What it asks for. */
  readonly needed: readonly Scope[];
  readonly path: string;
  readonly value: unknown;
}

/** The edges that an answer has come upon, with what stands there. */
function crossings(value: unknown, path: readonly (string | number)[] = []): readonly Crossing[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => crossings(item, [...path, index]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const [owner = '', ...field] = key.split('_');
    const here = [...path, key];
    const needed = asked.get(`${owner}.${field.join('_')}`) ?? [];
    const found = needed.length === 0 ? [] : [{ needed, path: here.join('.'), value: inner }];
    return [...found, ...crossings(inner, here)];
  });
}

const forbiddenIn = ({ errors }: Pick<GraphQLAnswer, 'errors'>): readonly string[] =>
  (errors ?? [])
    .filter(({ extensions }) => extensions['code'] === 'FORBIDDEN')
    .map(({ path }) => path?.join('.') ?? '');

const PAYMENTS: Scope = 'payments:read';
/** Parts of money:move, which has them all. */
const isPart = (scope: Scope): boolean => scope.startsWith('money:move:');
const OTHERS = [...SCOPES].filter((scope) => scope !== PAYMENTS && !isPart(scope));
/** All of the others; what payments:read adds to graph:read is the same with each of them. */
const COMBINATIONS: readonly (readonly Scope[])[] = [
  ...Array.from({ length: 2 ** OTHERS.length }, (_, bits) =>
    OTHERS.filter((_scope, index) => (bits >> index) % 2 === 1),
  ),
  [...SCOPES],
  [...SCOPES].filter((scope) => scope !== 'graph:read'),
];

let sandbox: Sandbox;
let gateway: RunningGateway;
// biome-ignore lint/suspicious/noExplicitAny: the sandbox tells what it holds.
let demo: any;
// biome-ignore lint/suspicious/noExplicitAny: what the query in beforeAll selects.
let account: any;
let bankId: string;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  demo = await control(sandbox, 'GET', '/sandbox');
  gateway = await startGateway({
    sandbox,
    config: {
      service: serviceFor(sandbox),
      limits: { tokens: 1e6, depth: 100, aliases: 1e5, directives: 1e3, cost: Number.MAX_SAFE_INTEGER },
    },
  });
  await credit();
  const { data } = await gateway.query(
    '{ client { accounts(first: 1) { nodes { bankId ownerId clientBankAdapterId accountId } } } banks { id } }',
    {},
    { authorization: `Bearer ${await callerToken()}` },
  );
  account = data.client.accounts.nodes[0];
  bankId = data.banks[0].id;
  await gateway.query(
    changes()['createPennyValidation']?.document ?? '',
    {},
    {
      authorization: `Bearer ${await callerToken()}`,
    },
  );
  await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 600 });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

const credit = () =>
  control(sandbox, 'POST', '/sandbox/spei-credits', { clabe: demo.accounts[0].clabe, amount: '5.00' });

function selected(root: GraphQLObjectType | null | undefined, name: string): string {
  const field = root?.getFields()[name];
  if (field === undefined) throw new Error(`there is no field ${name}`);
  return selectionOf(getNamedType(field.type));
}

/** Each change that succeeds again and again, and the scope that it needs. */
function changes(): Record<string, { readonly scope: Scope; readonly document: string }> {
  const change = (scope: Scope, field: string, args: string) => ({
    scope,
    document: `mutation { ${field}(${args}) ${selected(schema.getMutationType(), field)} }`,
  });
  const key = () => `idempotencyKey: "${randomUUID()}"`;
  const [from, to] = demo.accounts;
  const payee = demo.instruments.find((one: { holderName: string; id: string }) =>
    sandbox.clabeInstrumentIds.includes(one.id),
  );
  const paid = `sourceInstrumentId: "${from.instrumentId}", destinationInstrumentId:`;
  return {
    createInternalTransaction: change(
      'money:move',
      'createInternalTransaction',
      `input: { ${key()}, ${paid} "${to.instrumentId}", amount: "1.00", description: "x", externalReference: "1" }`,
    ),
    createMoneyOut: change(
      'money:move',
      'createMoneyOut',
      `input: { ${key()}, ${paid} "${payee.id}", amount: "1.00", description: "x", externalReference: "1" }`,
    ),
    createPennyValidation: change(
      'money:move',
      'createPennyValidation',
      `input: { ${key()}, ${paid} "${payee.id}" }`,
    ),
    createPrivateAccount: change(
      'accounts:write',
      'createPrivateAccount',
      `input: ${JSON.stringify(account).replace(/"(\w+)":/g, '$1: ')}`,
    ),
    registerInstrument: change(
      'accounts:write',
      'registerInstrument',
      `input: { sourceBankId: "${bankId}", alias: "x", receiver: { debitCard: {
        destinationBankId: "${bankId}", cardNumber: "4000000000000002", holderName: "x" } } }`,
    ),
    createWebhook: change(
      'webhooks:write',
      'createWebhook',
      'input: { url: "http://127.0.0.1:9/", type: STATUS_UPDATE }',
    ),
  };
}

const EVENTS = `{ events(first: 100) ${selected(schema.getQueryType(), 'events')} }`;

it('each change is shut to a caller who has all scopes but its own', async () => {
  const scopeOf: Readonly<Record<string, Scope>> = {
    createMoneyOut: 'money:move:out',
    createInternalTransaction: 'money:move:internal',
    createPennyValidation: 'money:move:validate',
    refundTransaction: 'money:move:refund',
    createPrivateAccount: 'accounts:write',
    createCustomerPrivateAccount: 'accounts:write',
    registerInstrument: 'accounts:write',
    createWebhook: 'webhooks:write',
    createLegacyWebhook: 'webhooks:write',
    updateWebhook: 'webhooks:write',
    deleteWebhook: 'webhooks:write',
  };
  // Who asks for a token has none yet.
  const { issueCredentialToken: _open, ...fields } = schema.getMutationType()?.getFields() ?? {};
  expect(Object.keys(fields).toSorted()).toEqual(Object.keys(scopeOf).toSorted());
  for (const [name, field] of Object.entries(fields)) {
    const { failure } = await resolveFor(field, (scope) => scope !== scopeOf[name]);
    expect({ name, failure }).toEqual({ name, failure: expect.any(ForbiddenError) });
  }
});

describe('the ways into the event log', () => {
  it('are shut without events:read, also of what the caller may read', async () => {
    for (const type of Object.values(schema.getTypeMap())) {
      // What the log itself has given needs no more.
      if (!isObjectType(type) || type.name.startsWith('__') || type.name === 'EventConnection') continue;
      for (const field of Object.values(type.getFields())) {
        const read = await readsOf(field, (scope) => scope !== 'events:read');
        const told = `${type.name}.${field.name} reads the event log without asking for events:read: wrap its resolver in withLogScope`;
        expect(read.has('reads.events'), told).toBe(false);
      }
    }
  });
});

it('the record of payments is shut without payments:read, whatever the type of the field is', async () => {
  for (const type of Object.values(schema.getTypeMap())) {
    const isChange = type === schema.getMutationType() || type === schema.getSubscriptionType();
    if (!isObjectType(type) || isChange || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) {
      const read = await readsOf(field, (scope) => scope !== PAYMENTS);
      const told = `${type.name}.${field.name} reads the record of payments without asking for payments:read: wrap its resolver in withPaymentsScope`;
      expect(read.has(RECORD), told).toBe(false);
    }
  }
});

describe('the ways into the graph', () => {
  it('are found by themselves', () => {
    const names = edges.map(({ owner, field }) => `${owner}.${field}`);
    expect(names).toEqual(
      expect.arrayContaining([
        'MoneyInEvent.owner',
        'MoneyInEvent.transaction',
        'MoneyInEvent.account',
        'MoneyInEvent.payerBank',
        'CepEvent.transaction',
        'CepUpdate.transaction',
        'Transaction.bank',
        'TransactionInstrument.instrument',
        'Account.instrument',
        'Instrument.account',
        'Client.accounts',
        'OutcomeUnknown.original',
        'OutcomeUnknown.payment',
        'Transaction.payment',
        'RefundTransactionSuccess.original',
        'UpdateWebhookSuccess.webhook',
      ]),
    );
    for (const name of ['Account.moneyIn', 'Transaction.events'])
      expect(asked.get(name)).toEqual(['events:read']);
    expect([...intoLog]).toEqual(expect.arrayContaining(['Account.moneyIn', 'Transaction.events']));
    // A relation that could not be null would take its parent along when it is refused.
    for (const { owner, field } of edges) {
      const type = schema.getType(owner) as GraphQLObjectType;
      expect(
        { owner, field, type: String(type.getFields()[field]?.type) },
        `${owner}.${field} has to be nullable, or joins OWN_RESULTS where it is what a change itself answered`,
      ).toEqual({ owner, field, type: expect.not.stringMatching(/!$/) });
    }
  });

  it('are all that reads the service outside of it, whatever the type of the field is', async () => {
    const roots = [schema.getMutationType(), schema.getSubscriptionType()].map((type) => type?.name ?? '');
    for (const owner of outside.filter((name) => !roots.includes(name))) {
      for (const field of Object.values((schema.getType(owner) as GraphQLObjectType).getFields())) {
        const read = await readsOf(field, (scope) => scope !== 'graph:read');
        if (TELLS_AN_ID.has(`${owner}.${field.name}`)) continue;
        const told = `${owner}.${field.name} reads the service without asking for graph:read: wrap its resolver in withGraphScope, and name its type in NOUNS`;
        // Whose the session is was known before the operation began: no call to the service.
        const asked = [...read].filter(
          (part) => part.startsWith('reads.session.') && part !== 'reads.session.clientId',
        );
        expect(asked, told).toEqual([]);
      }
    }
  });

  it('are shut each to a caller who has all but the scope that it asks for, whatever led there', async () => {
    for (const { owner, field: name } of edges) {
      const field = (schema.getType(owner) as GraphQLObjectType).getFields()[name];
      if (field === undefined) throw new Error(`there is no field ${name}`);
      const needed = getNamedType(field.type).name === 'Payment' ? ['graph:read', PAYMENTS] : ['graph:read'];
      const scopes = asked.get(`${owner}.${name}`);
      expect({ owner, name, scopes }).toEqual({ owner, name, scopes: needed });
    }
  });

  it.each(COMBINATIONS.map((scopes) => [scopes.join(' ') || 'no scope', scopes] as const))(
    'are open with %s as far as graph:read is among them',
    async (_, scopes) => {
      const authorization = `Bearer ${await callerToken({ scope: scopes.join(' ') })}`;
      const documents = [
        { scope: 'events:read', document: EVENTS },
        ...Object.values(changes()),
      ] satisfies readonly { scope: Scope; document: string }[];
      for (const { scope, document } of documents) {
        // The second time by a plan, where there is one.
        for (const _time of document === EVENTS ? [1, 2, 3] : [1]) {
          const answer = await gateway.query(document, {}, { authorization });
          if (!scopes.includes(scope)) {
            expect(forbiddenIn(answer)).toHaveLength(1);
            expect(Object.values(answer.data ?? {}).every((value) => value === null)).toBe(true);
            continue;
          }
          expect(answer.data).toBeTruthy();
          expect(JSON.stringify(answer.data)).toContain(document === EVENTS ? 'CepEvent' : 'Success');
          const found = crossings(answer.data);
          expect(found.length).toBeGreaterThan(scope === 'webhooks:write' ? -1 : 0);
          const isOpen = ({ needed }: Crossing): boolean => needed.every((one) => scopes.includes(one));
          const shut = found.filter((crossing) => !isOpen(crossing));
          const open = found.filter(isOpen);
          expect(shut.filter(({ value }) => value !== null)).toEqual([]);
          expect([...forbiddenIn(answer)].sort()).toEqual(shut.map(({ path }) => path).sort());
          expect(open.length === 0 || open.some(({ value }) => value !== null)).toBe(true);
        }
      }
    },
  );

  it('are asked for by transactionStatus itself, before anything is read', async () => {
    const document =
      'subscription { transactionStatus(transactionId: "00000000-0000-4000-8000-000000000000") { kind } }';
    await control(sandbox, 'DELETE', '/sandbox/requests');
    for (const [scope, missing] of [
      ['events:read', 'graph:read'],
      ['graph:read', 'events:read'],
    ] as const) {
      const [, open] = TRANSPORTS[0];
      await using subscriber = open(gateway.graphql, await callerToken({ scope }), { query: document });
      const [result] = await subscriber.received(1);
      expect(result?.data ?? null).toBeNull();
      expect(result?.errors).toMatchObject([
        { message: expect.stringContaining(missing), extensions: { code: 'FORBIDDEN' } },
      ]);
    }
    expect((await control(sandbox, 'GET', '/sandbox/requests')).total).toBe(0);
  });

  it.each(TRANSPORTS)('are shut to an event that comes over %s', async (_name, open) => {
    const document = `subscription { moneyIn ${selected(schema.getSubscriptionType(), 'moneyIn')} }`;
    for (const scope of ['events:read', 'events:read graph:read payments:read']) {
      await using subscriber = open(gateway.graphql, await callerToken({ scope }), { query: document });
      // Until the stream is there, nothing that happens is told on it.
      await until(async () => {
        await credit();
        return subscriber.results.length > 0;
      });
      const [first] = subscriber.results;
      expect(first?.data, JSON.stringify(first)).toBeTruthy();
      const found = crossings(first?.data).filter(({ needed }) => needed.includes('graph:read'));
      expect(found.length).toBeGreaterThan(0);
      const refused = (first?.errors ?? []).map(({ extensions }) => extensions?.['code']);
      if (scope === 'events:read') {
        expect(found.every(({ value }) => value === null)).toBe(true);
        expect(refused).toEqual(found.map(() => 'FORBIDDEN'));
        expect(first?.data.moneyIn.MoneyInEvent_amount.Money_amount).toBe('5.00');
      } else {
        expect(refused).toEqual([]);
        expect(found.some(({ value }) => value !== null)).toBe(true);
      }
    }
  });
});
