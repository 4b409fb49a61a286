import {
  type DocumentNode,
  execute,
  type GraphQLField,
  type GraphQLObjectType,
  getNamedType,
  getNullableType,
  getOperationAST,
  isAbstractType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
  Kind,
  parse,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refusals } from '../../../src/common/refusals.ts';
import { UnplannedError } from '../../../src/graphql/executor/plan.ts';
import { conditionsOf } from '../../../src/graphql/executor/plan-fields.ts';
import { createPlannedExecution } from '../../../src/graphql/executor/planned-queries.ts';
import { mayRunAgain, planQuery } from '../../../src/graphql/executor/query-plan.ts';
import { buildSchema } from '../../../src/schema/index.ts';
import { readsOf } from '../../helpers/field-reads.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { CLIENT_ID, json, startUpstream } from '../../helpers/http-stub.ts';
import { documentsOfTheSuite, exhaustiveDocuments } from '../documents.ts';

const schema = buildSchema();

const CONDITIONS =
  'query { client { ...F @include(if: true) ... on Client @skip(if: true) { webhooks { totalCount } } } } fragment F on Client { id }';
/** Each fragment holds the next one twice. */
const HUGE = `{ client { ...F0 } } ${Array.from(
  { length: 12 },
  (_, n) =>
    `fragment F${n} on Client { a: customers { nodes { client { ...F${n + 1} } } } b: customers { nodes { client { ...F${n + 1} } } } }`,
).join(' ')} fragment F12 on Client { id }`;

/** Whether a document holds a field that may not run twice. */
function runsOnce(document: DocumentNode): boolean {
  const info = new TypeInfo(schema);
  let found = false;
  visit(
    document,
    visitWithTypeInfo(info, {
      Field() {
        const [parent, field] = [info.getParentType(), info.getFieldDef()];
        const owners = isObjectType(parent)
          ? [parent]
          : isAbstractType(parent)
            ? schema.getPossibleTypes(parent)
            : [];
        for (const owner of owners) {
          const own = field && owner.getFields()[field.name];
          found ||= own?.resolve !== undefined && !mayRunAgain(schema, owner, own);
        }
      },
    }),
  );
  return found;
}

const mayRunTwice = (owner: GraphQLObjectType, field: GraphQLField<unknown, unknown>): boolean =>
  mayRunAgain(schema, owner, field);

/** Every field that a plan may hold, such as `Customer_name`, but those of the root. */
function fieldsOfPlans(): readonly string[] {
  const query = schema.getQueryType();
  const reached = new Set(query == null ? [] : [query]);
  for (const type of reached) {
    for (const field of Object.values(type.getFields())) {
      const target = getNamedType(field.type);
      if (isLeafType(target) || !mayRunTwice(type, field)) continue;
      if (isObjectType(target)) reached.add(target);
      else if (isAbstractType(target)) for (const one of schema.getPossibleTypes(target)) reached.add(one);
    }
  }
  return [...reached]
    .filter((type) => type !== query)
    .flatMap((type) =>
      Object.values(type.getFields())
        .filter((field) => mayRunTwice(type, field))
        .map((field) => `${type.name}_${field.name}`),
    );
}

/** What a field may ask of an operation’s context and run again: what the session has read stays, what is counted is counted anew, and an item is noted once. */
const AGAIN =
  /^(reads\.(session|prefetched|noteItem)|budget\.(countItems|maxItems)|services\.(ingress|logger|utcOffset)|info)\b/;

/** An answer without what differs from request to request. */
function comparable({ status, data, errors }: GraphQLAnswer) {
  return {
    status,
    data,
    errors: errors
      ?.map((error) => ({ ...error, extensions: { ...error.extensions, requestId: undefined } }))
      .sort((one, other) => String(one.path).localeCompare(String(other.path))),
  };
}

/** The first two answers are graphql-js', the later ones come from the plan. */
async function expectAlike(
  gateway: RunningGateway,
  document: string,
  variables: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string | undefined>> = {},
): Promise<ReturnType<typeof comparable>> {
  const [reference, ...planned] = [
    comparable(await gateway.query(document, variables, headers)),
    comparable(await gateway.query(document, variables, headers)),
    comparable(await gateway.query(document, variables, headers)),
    comparable(await gateway.query(document, variables, headers)),
  ];
  for (const answer of planned) expect(answer, document).toEqual(reference);
  return reference;
}

/** How often graphql-js is asked when a document is executed a number of times. */
async function interpretations(
  text: string,
  times: number,
  variablesOf: (time: number) => Record<string, unknown> = () => ({}),
  isIdentified = true,
): Promise<number> {
  let interpreted = 0;
  const run = createPlannedExecution({
    interpret(args) {
      interpreted += 1;
      return execute(args);
    },
    isIdentified: () => isIdentified,
    recount: () => undefined,
    note: () => undefined,
  });
  const document = parse(text);
  const contextValue = {
    identity: {
      identify: async () => ({ scopes: new Set(['graph:read']) }),
      caller: { clientId: 'x' },
    },
  };
  for (let time = 0; time < times; time += 1) {
    await run({ schema, document, contextValue, variableValues: variablesOf(time) });
  }
  return interpreted;
}

describe('an operation', () => {
  it.each([
    ['a query', '{ client { id } }'],
    ['a query with conditions and fragments', CONDITIONS],
  ])('is planned once identified callers have run it twice when it is %s', async (_what, document) => {
    expect(await interpretations(document, 2)).toBe(2);
    expect(await interpretations(document, 5)).toBe(2);
    expect(await interpretations(document, 5, undefined, false)).toBe(5);
  });

  it('has a plan for each of eight combinations of its conditions', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const fields = names.map((name) => `${name}: client @include(if: $${name}) { id }`);
    const document = `query (${names.map((name) => `$${name}: Boolean!`)}) { ${fields.join(' ')} }`;
    const combinations = Array.from({ length: 16 }, (_, bits) =>
      Object.fromEntries(names.map((name, index) => [name, (bits & (1 << index)) !== 0])),
    );
    // Each comes twice. The first has no plan yet when it comes again, as the operation was new. Of the others eight come
    // again to a plan, and seven never have one.
    const interpreted = 16 + 1 + 7;
    expect(await interpretations(document, 32, (time) => combinations[time % 16] ?? {})).toBe(interpreted);
  });

  it('is planned whichever query of the project it is, but for introspection and what may not run twice', () => {
    for (const text of documentsOfTheSuite(schema)) {
      const document = parse(text);
      const operation = getOperationAST(document);
      const fragments = new Map(
        document.definitions.flatMap((definition) =>
          definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
        ),
      );
      if (operation == null || text === HUGE || /__schema|__type\b/.test(text)) continue;
      if (runsOnce(document)) continue;
      const conditions = new Map(conditionsOf(operation, fragments.values()).map((name) => [name, true]));
      expect(planQuery(schema, operation, fragments, conditions).execute, text).toBeTypeOf('function');
    }
  });

  it.each([
    ['a mutation', 'mutation { deleteWebhook(input: { id: "x" }) { __typename } }'],
    ['introspection', '{ __schema { queryType { name } } }'],
    ['a query whose fragments make it huge', HUGE],
  ])('is never planned when it is %s', async (_what, document) => {
    expect(await interpretations(document, 5)).toBe(5);
  });

  it('is never planned when it holds a field that may not run twice', () => {
    const operation = (text: string) => {
      const definition = getOperationAST(parse(text));
      if (definition == null) throw new Error('a document with one operation');
      return definition;
    };
    const isPlanned = (text: string): boolean => {
      try {
        planQuery(schema, operation(text), new Map(), new Map());
        return true;
      } catch (error) {
        if (error instanceof UnplannedError) return false;
        throw error;
      }
    };
    const fields = Object.values(schema.getQueryType()?.getFields() ?? {});
    const texts = fields.map(({ name, args, type }) => {
      const by = args.flatMap((argument) => {
        if (!isRequiredArgument(argument)) return [];
        if (isListType(getNullableType(argument.type))) return [`${argument.name}: ["x"]`];
        return [`${argument.name}: ${argument.name === 'by' ? '{ id: "x" }' : '"x"'}`];
      });
      const selected = isLeafType(getNamedType(type)) ? '' : ' { __typename }';
      return [name, `{ ${name}${by.length === 0 ? '' : `(${by.join(' ')})`}${selected} }`] as const;
    });
    const unplanned = texts.filter(([, text]) => !isPlanned(text)).map(([name]) => name);
    expect(unplanned.sort()).toEqual([
      'credentials',
      'eventCursor',
      'events',
      'node',
      'nodes',
      'payment',
      'payments',
    ]);
  });

  it('runs no field twice that reads anything but the session', async () => {
    const reading: string[] = [];
    for (const type of Object.values(schema.getTypeMap())) {
      const isChange = type === schema.getMutationType() || type === schema.getSubscriptionType();
      if (!isObjectType(type) || isChange || type.name.startsWith('__')) continue;
      for (const field of Object.values(type.getFields())) {
        const others = [...(await readsOf(field))].filter((part) => !AGAIN.test(part));
        if (others.length === 0) continue;
        reading.push(`${type.name}.${field.name}`);
        const told = `${type.name}.${field.name} reads ${others.join(', ')}, and leads to a type that is marked readOnce, or is a leaf of one: a plan that is given up would read it a second time. Give it a type of its own without the mark (CONTRIBUTING.md, "Add a field from the gateway's own stores").`;
        expect(mayRunAgain(schema, type, field), told).toBe(false);
      }
    }
    expect(reading).toEqual(
      expect.arrayContaining(['Account.moneyIn', 'Transaction.events', 'Query.events', 'Query.payments']),
    );
  });

  it('whose variables are wrong is answered by graphql-js', async () => {
    const document = 'query ($first: Int!) { client { instruments(first: $first) { totalCount } } }';
    expect(await interpretations(document, 5, () => ({ first: 'many' }))).toBe(5);
  });
});

describe('graphql-js and the plan answer alike', () => {
  let gateway: RunningGateway;
  /** What the sandbox names, its transactions beside all else. */
  let ids: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    gateway = await startGateway();
    const { transactions, ...others } = await control(gateway.sandbox, 'GET', '/sandbox');
    ids = { ...others, ...transactions };
    // So that the log's edges lead somewhere.
    for (const { clabe } of others.accounts.slice(0, 2))
      await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '10.00' });
  });

  const idOf = (name: string): string => {
    const id = ids[name];
    if (typeof id !== 'string') throw new Error(`the sandbox names no ${name}`);
    return id;
  };

  afterAll(async () => {
    await gateway.stop();
  });

  const known = (): string[] =>
    Object.values(ids)
      .flat()
      .filter((value): value is string => typeof value === 'string' && /^[0-9a-f-]{36}$/.test(value));

  it('to every query document of the project', async () => {
    const documents = documentsOfTheSuite(schema);
    expect(documents.length).toBeGreaterThan(20);
    for (const document of documents) {
      await expectAlike(gateway, document, { first: 3, id: idOf('moneyOutId') });
    }
  });

  it('to every field of the graph that a plan may hold', async () => {
    // These documents are larger than an operation may be.
    const limits = { tokens: 1e6, depth: 100, aliases: 1e5, directives: 1e3, cost: Number.MAX_SAFE_INTEGER };
    await using wide = await startGateway({ sandbox: gateway.sandbox, webhooks: false, config: { limits } });
    const { data: there } = await wide.query('{ client { webhooks { nodes { id } } } banks { id } }');
    const argumentsOf = (field: string): string => {
      switch (field) {
        case 'account':
          return `(by: { instrumentId: "${idOf('centralizingInstrumentId')}" })`;
        case 'transaction':
          return `(id: "${idOf('pennyValidationId')}")`;
        case 'customer':
          return `(id: "${[ids['customerIds']].flat()[0]}")`;
        case 'bank':
          return `(id: "${there.banks[0].id}")`;
        case 'webhook':
          return `(id: "${there.client.webhooks.nodes[0].id}")`;
        default:
          return `(id: "${idOf('centralizingInstrumentId')}")`;
      }
    };
    const documents = exhaustiveDocuments({ schema, argumentsOf, selects: mayRunTwice }, 3);
    const texts = documents.join();
    expect(fieldsOfPlans().filter((name) => !texts.includes(` ${name}: `))).toEqual([]);
    for (const document of documents) {
      const operation = getOperationAST(parse(document));
      if (operation == null) throw new Error('a document with one operation');
      expect(planQuery(schema, operation, new Map(), new Map()).execute, document).toBeTypeOf('function');
      const { data, errors } = await expectAlike(wide, document);
      expect(errors, document).toBeUndefined();
      expect(Object.values(data), document).toEqual([expect.anything()]);
    }
  });

  it('to the edges into the event log', async () => {
    const edges = `events { nodes { ... on MoneyInEvent { account { id moneyIn { nodes { id } } } payerBank { id }
      transaction { events { nodes { id } } } } } }`;
    await expectAlike(gateway, `{ ${edges} }`);
    const { data } = await gateway.query(`{ ${edges} }`);
    expect(data.events.nodes).toHaveLength(2);
    for (const { account, payerBank, transaction } of data.events.nodes) {
      expect([account.moneyIn.nodes.length, transaction.events.nodes.length]).toEqual([1, 1]);
      expect(payerBank.id).toEqual(expect.any(String));
    }
  });

  it('to every id, of whatever it is one', async () => {
    const document = `query Look($id: ID!, $text: String) {
      bank(id: $id) { id attributes }
      customer(id: $id) { id name accounts(first: 2) { totalCount edges { cursor node { clabe } } } }
      instrument(id: $id) { id owner { __typename ... on Customer { name } } account { id } detail { __typename } }
      transaction(id: $id, match: { trackingId: $text }) { id amount { amount } source { instrument { alias } } cep { status final } }
      webhook(id: $id) { id url feedsGateway }
    }`;
    for (const id of [...known(), CLIENT_ID, '../banks', '', 'x']) {
      await expectAlike(gateway, document, { id });
      await expectAlike(gateway, document, { id, text: 'nothing' });
    }
  });

  it.each([
    [
      'pages',
      'query ($first: Int, $after: Cursor) { client { customers(first: $first, after: $after) { nodes { id } pageInfo { endCursor hasNextPage } } } }',
      [
        {},
        { first: null },
        { first: 1 },
        { first: 0 },
        { first: 101 },
        { first: 1, after: 'bzE6MA' },
        { first: 1, after: '' },
        { after: 'nonsense' },
        { first: 1.5 },
        { first: '1' },
      ],
    ],
    [
      'conditions',
      'query ($yes: Boolean! = true) { client { id @skip(if: $yes) customers(first: 2) @include(if: $yes) { totalCount nodes { id @include(if: $yes) name @skip(if: $yes) } } } }',
      [{}, { yes: true }, { yes: false }, { yes: null }, { yes: 'true' }],
    ],
    [
      'fragments',
      'query { client { ...A ...B } } fragment A on Client { id customers(first: 2) { nodes { id ...C } } } fragment B on Client { customers(first: 2) { nodes { name ...C } totalCount } } fragment C on Customer { client { id } audit { createdAt } }',
      [{}],
    ],
    [
      'aliases of one field',
      'query { a: client { id x: instruments(first: 1) { totalCount } y: instruments(first: 2) { nodes { id } } } b: client { id } }',
      [{}],
    ],
    [
      'types',
      'query { __typename client { __typename instruments(first: 5) { nodes { __typename detail { __typename ... on CardDetail { lastFour } ... on ClabeDetail { clabe } } owner { __typename } } } } }',
      [{}],
    ],
    [
      'enums and lists',
      'query ($types: [EventType!], $last: Int) { events(types: $types, last: $last) { nodes { __typename id } pageInfo { hasNextPage } } eventCursor }',
      [{}, { types: ['CEP'] }, { types: 'CEP', last: 2 }, { types: ['NONE'] }, { types: [null] }],
    ],
    [
      'inputs',
      'query ($id: ID!, $match: TransactionMatch) { transaction(id: $id, match: $match) { id } }',
      [
        { id: 1 },
        { id: CLIENT_ID, match: {} },
        { id: CLIENT_ID, match: { status: 'LIQUIDATED', other: 1 } },
        { match: {} },
      ],
    ],
    [
      'prototypes',
      'query ($id: ID!) { transaction(id: $id) { id } }',
      [JSON.parse('{"__proto__":{"id":"x"}}'), JSON.parse('{"id":"x","constructor":{}}')],
    ],
  ])('to %s', async (_what, document, variables) => {
    for (const values of variables) await expectAlike(gateway, document, values);
  });

  it('to callers whom nobody knows', async () => {
    for (const authorization of [undefined, 'Bearer nonsense', 'Basic x']) {
      await expectAlike(gateway, '{ client { id } banks { id } }', {}, { authorization });
    }
  });
});

describe('a query that fails in one field', () => {
  it('acts once at the REST service, however often it is asked', async () => {
    await using gateway = await startGateway({ webhooks: false });
    const { sandbox } = gateway;
    const document = `{ credentials(clientId: "${sandbox.clientId}") { id } bank(id: "none") { id } }`;
    const answers: unknown[] = [];
    for (let time = 1; time <= 5; time += 1) {
      answers.push(comparable(await gateway.query(document, {}, { 'x-api-key': sandbox.apiKey })));
      // The first operation also finds out who is calling.
      expect((await control(sandbox, 'GET', '/sandbox/requests')).total).toBe(time + 1);
    }
    expect(answers[0]).toMatchObject({
      data: { credentials: expect.arrayContaining([{ id: expect.any(String) }]), bank: null },
      errors: [{ path: ['bank'] }],
    });
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });

  // The customer is one. Each of its 30 accounts is one, for which 10 stand in the cost, and so is the instrument that is read for it alone.
  it.each([
    ['as many items as it may', 'id', 31, true],
    ['one item more', 'id', 30, false],
    ['as many with what is read for each', 'instrument { id }', 61, true],
    ['one more with what is read for each', 'instrument { id }', 60, false],
    ['what nothing is read for', 'availableBalance { amount } bank { id }', 40, true],
  ])('holds its limit and no other, with %s', async (_what, fields, cost, isAnswered) => {
    const accounts = Array.from({ length: 30 }, (_, index) => ({
      id: `a-${index}`,
      accountId: 'x',
      ownerId: 'c-1',
      instrumentId: `i-${index}`,
      clientBankAdapterId: 'y',
      accountNumber: '1',
      clabeNumber: '1',
      availableBalance: '1.00',
      accountType: 't',
      accountStatus: 's',
    }));
    const customer = { id: 'c-1', name: 'n', rfc: 'r', customerStatus: 's', customerValidationStatus: 's' };
    await using upstream = await startUpstream((request, response) => {
      const path = request.url ?? '';
      if (path.includes('/customers'))
        json(response, { data: [customer], currentPage: 1, perPage: 50, totalItems: 1 });
      else if (path.includes('/accounts'))
        json(response, { data: accounts, currentPage: 1, perPage: 50, totalItem: 30 });
      else json(response, { data: [], currentPage: 1, perPage: 1, totalItems: 0 });
    });
    await using gateway = await startGateway({
      webhooks: false,
      config: {
        upstreamUrl: upstream.url,
        limits: { tokens: 2_000, depth: 15, aliases: 30, directives: 50, cost },
      },
    });
    const token = `x.${Buffer.from(JSON.stringify({ client_id: CLIENT_ID })).toString('base64url')}.x`;
    const ask = (document: string) => gateway.query(document, {}, { authorization: `Bearer ${token}` });
    const page = `client { customers(first: 1) { nodes { accounts { nodes { ${fields} } } } } }`;
    const before = refusals().get('fields') ?? 0;
    for (const document of [`{ ${page} }`, `{ ${page} bank(id: "none") { id } }`]) {
      for (let time = 0; time < 4; time += 1) {
        const { data, errors = [] } = await ask(document);
        const [{ accounts: held }] = data.client.customers.nodes;
        expect(held?.nodes.length).toBe(isAnswered ? 30 : undefined);
        const codes = errors.map(({ extensions }) => extensions['code']);
        expect(codes.includes('TOO_COMPLEX')).toBe(!isAnswered);
      }
    }
    // Once for each result, also where a plan began it.
    expect(refusals().get('fields')).toBe(before + (isAnswered ? 0 : 8));
  });
});

describe('graphql-js and the plan answer alike, whatever the upstream sends', () => {
  const instrument = {
    id: 'i-1',
    clientId: CLIENT_ID,
    bankId: 'b-1',
    alias: 'a',
    type: 'RECEIVER',
    rfc: 'ND',
    customerId: 'c-1',
    ownerId: 'c-1',
    audit: {},
    instrumentDetail: { cardNumber: '4152000000000001' },
  };
  const customer = {
    id: 'c-1',
    name: 'n',
    rfc: 'r',
    customerStatus: 'ACTIVE',
    customerValidationStatus: 'VALIDATED',
  };
  const account = {
    id: 'a-1',
    accountId: 'x',
    ownerId: 'c-1',
    instrumentId: 'i-1',
    clientBankAdapterId: 'y',
    accountNumber: '1',
    clabeNumber: '1',
    availableBalance: '1.00',
    accountType: 't',
    accountStatus: 's',
  };
  const document = `{ client { id instruments(first: 10) { totalCount nodes {
    id alias rfc bank { id attributes } audit { createdAt deletedAt } detail { __typename }
    customer { name validationStatus accounts(first: 5) { nodes { id clabe availableBalance { amount } } } }
    owner { __typename } account { id availableBalance { amount } }
  } } } }`;

  it.each([
    ['as the spec says', {}],
    ['a field missing that is always there', { instrument: { alias: undefined } }],
    ['an amount that is a number', { account: { availableBalance: 12.5 } }],
    ['an amount that is missing', { account: { availableBalance: undefined } }],
    ['a name that is an object', { customer: { name: { first: 'x' } } }],
    ['a timestamp that is none', { instrument: { audit: { createdAt: 'yesterday' } } }],
    ['a detail of no form', { instrument: { instrumentDetail: {} } }],
    ['no detail', { instrument: { instrumentDetail: null } }],
    ['an item without an id', { customer: { id: undefined } }],
    ['a bank without an id', { bank: { id: undefined } }],
    ['an error of one list', { status: 500 }],
    ['a refusal of one list', { status: 403 }],
  ])(
    '%s',
    async (_what, changes: {
      instrument?: object;
      customer?: object;
      account?: object;
      bank?: object;
      status?: number;
    }) => {
      const lists = (path: string): readonly [body: object, status?: number | undefined] => {
        if (path.endsWith('/banks')) {
          return [{ total_banks: 1, page: 1, page_size: 10, banks: [{ id: 'b-1', ...changes.bank }] }];
        }
        const paging = { currentPage: 1, perPage: 10 };
        if (path.endsWith('/customers'))
          return [{ ...paging, totalItems: 1, data: [{ ...customer, ...changes.customer }] }];
        if (path.endsWith('/accounts'))
          return [{ ...paging, totalItem: 1, data: [{ ...account, ...changes.account }] }, changes.status];
        const items = [instrument, { ...instrument, id: 'i-2', ...changes.instrument }];
        const perPage = Number(new URL(path, 'http://x').searchParams.get('per_page'));
        return [{ data: items.slice(0, perPage), currentPage: 1, perPage, totalItems: Math.min(perPage, 2) }];
      };
      await using upstream = await startUpstream((request, response) => {
        const [body, status] = lists(request.url ?? '');
        json(response, body, status);
      });
      const gateway = await startGateway({ config: { upstreamUrl: upstream.url }, webhooks: false });
      try {
        const token = `x.${Buffer.from(JSON.stringify({ client_id: CLIENT_ID })).toString('base64url')}.x`;
        await expectAlike(gateway, document, {}, { authorization: `Bearer ${token}` });
      } finally {
        await gateway.stop();
      }
    },
  );
});
