import { randomUUID } from 'node:crypto';
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isScalarType,
  isUnionType,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { buildSchema } from '../../../src/schema/index.ts';
import { control, type RunningGateway, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceForAll } from '../../helpers/service.ts';
import { subscribeOverSse } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';

/** What one owner has, by the form of its names. */
interface Belongings {
  readonly ids: readonly string[];
  /** One id of each kind. */
  readonly samples: readonly string[];
  readonly clabes: readonly string[];
  readonly numbers: readonly string[];
  /** What must not be in an answer: names, aliases and numbers, besides the ids. */
  readonly marks: readonly string[];
}

interface Caller {
  readonly name: string;
  readonly gateway: RunningGateway;
  readonly token: string;
  readonly isNarrowed: boolean;
  readonly own: Belongings;
  readonly foreign: Belongings;
}

const schema: GraphQLSchema = buildSchema();
/** What the walk itself needs is more than any client does. */
const NO_LIMITS = {
  tokens: 1_000_000,
  depth: 100,
  aliases: 100_000,
  directives: 1_000,
  cost: Number.MAX_SAFE_INTEGER,
};

// ---------------------------------------------------------------------------------------------- documents

const needsArguments = (field: GraphQLField<unknown, unknown>): boolean =>
  field.args.some(isRequiredArgument);

/** Everything beneath a type, this many objects deep. Each field has a name of its own, so that fragments never clash. */
function selectionOf(type: GraphQLNamedType, levels: number): string {
  if (isLeafType(type)) return '';
  if (isUnionType(type) || isInterfaceType(type)) {
    const parts = schema
      .getPossibleTypes(type)
      .map((possible) => `... on ${possible.name} ${selectionOf(possible, levels)}`);
    return `{ __typename ${parts.join(' ')} }`;
  }
  if (!isObjectType(type)) throw new Error(`${type.name} is no output type`);
  const fields = Object.values(type.getFields()).flatMap((field) => {
    const named = getNamedType(field.type);
    if (needsArguments(field) || (levels === 0 && !isLeafType(named))) return [];
    return [`${type.name}_${field.name}: ${field.name} ${selectionOf(named, levels - 1)}`];
  });
  return `{ __typename ${fields.join(' ')} }`;
}

/** A place that a caller can write an id into. */
interface Leaf {
  readonly kind: 'query' | 'mutation' | 'subscription';
  /** Fields from the root down to the one with the argument. */
  readonly path: readonly GraphQLField<unknown, unknown>[];
  readonly argument: GraphQLArgument;
  /** Input fields below the argument. */
  readonly below: readonly string[];
  readonly scalar: string;
}

const nameOf = ({ kind, path, argument, below }: Leaf): string =>
  `${kind} ${path.map((field) => field.name).join('.')}(${[argument.name, ...below].join('.')})`;

/** Scalars that can carry somebody's id or number. */
const NAMING = ['ID', 'String', 'Clabe', 'Cursor'];

function leavesOf(
  type: GraphQLInputType,
  below: readonly string[] = [],
): { below: readonly string[]; scalar: string }[] {
  const named = getNamedType(type);
  if (isScalarType(named)) return NAMING.includes(named.name) ? [{ below, scalar: named.name }] : [];
  if (!isInputObjectType(named)) return [];
  return Object.values(named.getFields()).flatMap((field) => leavesOf(field.type, [...below, field.name]));
}

type Path = readonly GraphQLField<unknown, unknown>[];

/** The shortest way to each type that can be reached from the query root; one that needs no argument where there is one. */
function waysToTypes(): Map<GraphQLObjectType, Path> {
  const root = schema.getQueryType();
  const ways = new Map<GraphQLObjectType, Path>(root ? [[root, []]] : []);
  for (const passes of [(field: GraphQLField<unknown, unknown>) => !needsArguments(field), () => true]) {
    // A map goes on to what is added while it is walked.
    for (const [type, way] of ways) {
      for (const field of Object.values(type.getFields()).filter(passes)) {
        const named = getNamedType(field.type);
        const next = isUnionType(named) || isInterfaceType(named) ? schema.getPossibleTypes(named) : [named];
        for (const object of next) {
          if (isObjectType(object) && !ways.has(object)) ways.set(object, [...way, field]);
        }
      }
    }
  }
  return ways;
}

/** Every argument of every field that can be reached. */
function allLeaves(): Leaf[] {
  const leavesIn = (kind: Leaf['kind'], type: GraphQLObjectType | null | undefined, way: Path): Leaf[] =>
    Object.values(type?.getFields() ?? {}).flatMap((field) =>
      field.args.flatMap((argument) =>
        leavesOf(argument.type)
          // Whoever calls makes its own: they name nothing of anybody's.
          .filter(({ below }) => below.at(-1) !== 'idempotencyKey')
          .map((leaf) => ({ kind, path: [...way, field], argument, ...leaf })),
      ),
    );
  return [
    ...[...waysToTypes()].flatMap(([type, way]) => leavesIn('query', type, way)),
    ...leavesIn('mutation', schema.getMutationType(), []),
    ...leavesIn('subscription', schema.getSubscriptionType(), []),
  ];
}

/** A value that lets a request through where it is not what is being tried. */
function plausible(type: GraphQLInputType, name: string, own: Belongings): unknown {
  const nullable = getNullableType(type);
  if (isListType(nullable)) return [plausible(nullable.ofType, name, own)];
  if (isEnumType(nullable)) return nullable.getValues()[0]?.name;
  if (isInputObjectType(nullable)) {
    const fields = Object.values(nullable.getFields());
    const given = nullable.isOneOf ? fields.slice(0, 1) : fields.filter((field) => isNonNullType(field.type));
    return Object.fromEntries(given.map((field) => [field.name, plausible(field.type, field.name, own)]));
  }
  switch (getNamedType(nullable).name) {
    case 'ID':
      return /source|destination/i.test(name)
        ? (own.ids[/source/i.test(name) ? 0 : 1] ?? randomUUID())
        : randomUUID();
    case 'Clabe':
      return digits(18);
    case 'MoneyAmount':
      return '1.00';
    case 'CurrencyCode':
      return 'MXN';
    case 'URL':
      // Nobody listens there, so that a delivery fails at once.
      return 'http://127.0.0.1:9/hook';
    case 'Int':
      return 1;
    case 'Boolean':
      return true;
    case 'JSON':
    case 'JSONObject':
      return {};
    default:
      return /reference/i.test(name) ? '1234567' : /number/i.test(name) ? digits(16) : `walk-${randomUUID()}`;
  }
}

function withValue(
  type: GraphQLInputType,
  below: readonly string[],
  value: string,
  own: Belongings,
): unknown {
  const [name, ...rest] = below;
  const nullable = getNullableType(type);
  if (isListType(nullable)) return [withValue(nullable.ofType, below, value, own)];
  if (name === undefined) return value;
  if (!isInputObjectType(nullable)) throw new Error('only input objects have something below');
  const field = nullable.getFields()[name];
  if (field === undefined) throw new Error(`there is no ${name}`);
  const base = nullable.isOneOf ? {} : (plausible(nullable, '', own) as object);
  return { ...base, [name]: withValue(field.type, rest, value, own) };
}

/** The document that writes one value into one place, and reads what comes of it. */
function requestFor(
  leaf: Leaf,
  value: string,
  own: Belongings,
): { query: string; variables: Record<string, unknown> } {
  const declared: string[] = [];
  const variables: Record<string, unknown> = {};
  const last = leaf.path.length - 1;
  const write = (index: number, parent: GraphQLOutputType | undefined): string => {
    const field = leaf.path[index];
    if (field === undefined) throw new Error('the path has an end');
    const args = field.args.flatMap((argument) => {
      const isIt = index === last && argument.name === leaf.argument.name;
      if (!isIt && !isRequiredArgument(argument)) return [];
      const variable = `v${declared.length}`;
      declared.push(`$${variable}: ${String(argument.type)}`);
      variables[variable] = isIt
        ? withValue(argument.type, leaf.below, value, own)
        : plausible(argument.type, argument.name, own);
      return [`${argument.name}: $${variable}`];
    });
    const call = `${field.name}${args.length > 0 ? `(${args.join(', ')})` : ''}`;
    const inner =
      index === last ? selectionOf(getNamedType(field.type), 1) : `{ ${write(index + 1, field.type)} }`;
    const owner = parent === undefined ? undefined : getNamedType(parent);
    const holder = owner && !isObjectType(owner) ? ownerOf(field) : undefined;
    return holder === undefined ? `${call} ${inner}` : `... on ${holder} { ${call} ${inner} }`;
  };
  const body = write(0, undefined);
  const head = declared.length > 0 ? `(${declared.join(', ')})` : '';
  return { query: `${leaf.kind} ${head} { ${body} }`, variables };
}

function ownerOf(field: GraphQLField<unknown, unknown>): string {
  for (const type of Object.values(schema.getTypeMap())) {
    if (isObjectType(type) && type.getFields()[field.name] === field) return type.name;
  }
  throw new Error(`nobody has the field ${field.name}`);
}

// ------------------------------------------------------------------------------------------------ answers

const digits = (count: number): string =>
  Array.from({ length: count }, () => Math.floor(Math.random() * 10)).join('');

/** Another value of the same form, that nobody has. */
const randomLike = (value: string): string => (/^\d+$/.test(value) ? digits(value.length) : randomUUID());

/** An answer but for the value that was given, and for what differs between any two answers. */
const comparable = (answer: unknown, given: string): string =>
  JSON.stringify(answer)
    .replaceAll(given, '<given>')
    .replace(/"requestId":"[^"]*"/g, '"requestId"')
    // Where the log begins and ends moves on meanwhile; for a narrowed caller no two cursors are alike.
    .replace(/"(oldest|head)":"[^"]*"/g, '"$1"')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '<uuid>')
    .replace(/SBX\d+/g, '<tracking>')
    .replace(/walk-<uuid>/g, '<text>')
    .replace(/\d{4}-\d{2}-\d{2}T[\d:.]+(Z|[+-]\d{2}:\d{2})/g, '<time>')
    .replace(/"[^"]*":"(?:\d{12,18})"/g, '<number>')
    .replace(/(totalCount":)\d+/g, '$1<count>');

let addresses = 0;
const nextAddress = (): string => {
  addresses += 1;
  return `10.0.${addresses >> 8}.${addresses & 255}`;
};

async function ask(caller: Caller, leaf: Leaf, value: string): Promise<unknown> {
  const { query, variables } = requestFor(leaf, value, caller.own);
  const isBootstrap = /credential/i.test(query);
  const send = () =>
    sendQuery(caller.gateway.graphql, query, variables, {
      authorization: `Bearer ${caller.token}`,
      // From an address of its own: those that have presented many refused keys are not answered.
      ...(isBootstrap
        ? { 'x-api-key': caller.gateway.sandbox.apiKey, 'x-forwarded-for': nextAddress() }
        : {}),
    });
  // A refused key is remembered for its client, whichever that is: the second answer says so of all alike.
  if (isBootstrap) await send();
  const { data, errors, status } = await send();
  return { data, errors, status };
}

// -------------------------------------------------------------------------------------------------- world

interface Seeded {
  readonly clientId: string;
  readonly name: string;
  readonly apiKey: string;
  readonly clientSecret: string;
  readonly accessToken: string;
  readonly customers: readonly { id: string; name: string }[];
  readonly accounts: readonly { id: string; instrumentId: string; ownerId: string; clabe: string }[];
  readonly instruments: readonly {
    id: string;
    ownerId: string;
    alias: string;
    holderName: string;
    status: string;
  }[];
  readonly transactions: Readonly<Record<string, string>>;
}

let sandbox: Sandbox;
const gateways: RunningGateway[] = [];
const callers: Caller[] = [];

/** What one owner has: the client itself, or one of its customers. */
async function belongingsOf(client: Seeded, ownerId: string): Promise<Belongings> {
  const accounts = client.accounts.filter((account) => account.ownerId === ownerId);
  // Internal instruments first: the walk pays from the first to the second.
  const instruments = client.instruments.filter((instrument) => instrument.ownerId === ownerId);
  const customer = client.customers.find(({ id }) => id === ownerId);
  const credits = await Promise.all(
    accounts.slice(0, 1).map(({ clabe }) =>
      control(sandbox, 'POST', '/sandbox/spei-credits', {
        clabe,
        amount: '500.00',
        concept: `Concepto ${ownerId}`,
      }),
    ),
  );
  const webhooks =
    customer === undefined
      ? await fetch(`${sandbox.url}/v1/clients/${client.clientId}/webhooks`, {
          headers: { authorization: `Bearer ${client.accessToken}` },
        }).then((response) => response.json() as Promise<{ data: { id: string }[] }>)
      : { data: [] };
  return {
    ids: [
      ...instruments.map(({ id }) => id),
      ...accounts.map(({ id }) => id),
      ...credits.map(({ transaction }) => transaction.id),
      ...(customer === undefined ? Object.values(client.transactions) : [customer.id]),
      ...webhooks.data.map(({ id }) => id),
    ],
    samples: [
      ...instruments.slice(0, 1).map(({ id }) => id),
      ...accounts.slice(0, 1).map(({ id }) => id),
      ...credits.map(({ transaction }) => transaction.id),
      ...(customer === undefined ? [client.transactions['pennyValidationId'] ?? ''] : [customer.id]),
      ...webhooks.data.slice(0, 1).map(({ id }) => id),
    ],
    clabes: accounts.map(({ clabe }) => clabe),
    numbers: accounts.map(({ clabe }) => clabe.slice(6)),
    marks: [
      ...instruments.flatMap(({ alias, holderName }) => [alias, holderName]),
      ...accounts.map(({ clabe }) => clabe),
      `Concepto ${ownerId}`,
      ...(customer === undefined ? [] : [customer.name]),
    ],
  };
}

const joined = (parts: readonly Belongings[]): Belongings => ({
  ids: parts.flatMap(({ ids }) => ids),
  samples: parts.flatMap(({ samples }) => samples),
  clabes: parts.flatMap(({ clabes }) => clabes),
  numbers: parts.flatMap(({ numbers }) => numbers),
  marks: parts.flatMap(({ marks }) => marks),
});

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const { otherClients, ...demo } = await control(sandbox, 'GET', '/sandbox');
  const clients: Seeded[] = [demo, otherClients[0]];
  // Sandbox, gateway and test are one process: where it stands still for some seconds, no call is given up that is under way.
  const config = { limits: NO_LIMITS, upstreamTimeoutMs: 9_500 };
  const passthrough = await startGateway({ sandbox, config });
  gateways.push(passthrough);
  const owners = new Map<string, Belongings>();
  // One gateway stands for both clients.
  const service = await startGateway({
    sandbox,
    config: { ...config, service: serviceForAll(demo, otherClients[0]) },
  });
  gateways.push(service);
  for (const client of clients) {
    for (const id of [client.clientId, ...client.customers.map((customer) => customer.id)]) {
      owners.set(id, await belongingsOf(client, id));
    }
  }
  for (const client of clients) {
    const all = [client.clientId, ...client.customers.map(({ id }) => id)];
    const split = (isOwn: (id: string) => boolean) => ({
      own: joined([...owners].flatMap(([id, has]) => (isOwn(id) ? [has] : []))),
      foreign: joined(
        [...owners].flatMap(([id, has]) => (isOwn(id) ? [] : [{ ...has, ids: [...has.ids, id] }])),
      ),
    });
    callers.push({
      name: `${client.name}, passthrough`,
      gateway: passthrough,
      token: client.accessToken,
      isNarrowed: false,
      ...split((id) => all.includes(id)),
    });
    callers.push({
      name: `${client.name}, service`,
      gateway: service,
      token: await callerToken({ merchant: client.clientId }),
      isNarrowed: false,
      ...split((id) => all.includes(id)),
    });
    for (const { id, name } of client.customers.slice(0, 1)) {
      const { own, foreign } = split((owner) => owner === id);
      callers.push({
        name: `${name}, of ${client.name}`,
        gateway: service,
        token: await callerToken({ customer_id: id, merchant: client.clientId }),
        isNarrowed: true,
        own,
        // Whose customer it is, every customer may know.
        foreign: {
          ...foreign,
          ids: foreign.ids.filter((foreignId) => foreignId !== client.clientId),
          samples: foreign.samples.filter((foreignId) => foreignId !== client.clientId),
        },
      });
    }
  }
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await sandbox.stop();
});

/** What tells of others, and of them alone: two owners may well have an alias in common. */
const foreignMarks = ({ own, foreign }: Caller): readonly string[] =>
  [...foreign.ids, ...foreign.marks].filter((mark) => !own.marks.some((ownMark) => ownMark.includes(mark)));

/** One value of each kind and owner, rather than all that an owner has: what differs is whose they are. */
function tried({ scalar }: Leaf, { samples, clabes, numbers }: Belongings): readonly string[] {
  const ids = [...new Set(samples)];
  if (scalar === 'Clabe') return clabes.slice(0, 4);
  if (scalar === 'ID') return ids;
  return [...numbers.slice(0, 3), ...clabes.slice(0, 3), ...ids.slice(0, 5)];
}

describe('everything that a caller can reach', () => {
  it('holds nothing that belongs to others', async () => {
    const roots = Object.values(schema.getQueryType()?.getFields() ?? {}).filter(
      (field) => !needsArguments(field),
    );
    expect(roots.length).toBeGreaterThan(2);
    const refused = new Set<string>();
    for (const caller of callers) {
      const body = roots
        .map((field) => `${field.name} ${selectionOf(getNamedType(field.type), 5)}`)
        .join(' ');
      const { data, errors } = await sendQuery(
        caller.gateway.graphql,
        `{ ${body} }`,
        {},
        {
          authorization: `Bearer ${caller.token}`,
        },
      );
      const unexpected = (errors ?? []).filter(({ path = [], extensions }) => {
        const isRefused = caller.isNarrowed && extensions['code'] === 'BAD_USER_INPUT';
        if (isRefused) refused.add(String(path.at(-1)));
        return !isRefused && extensions['code'] !== 'FORBIDDEN';
      });
      expect(unexpected).toEqual([]);
      const text = JSON.stringify(data);
      expect(text.length).toBeGreaterThan(1_000);
      const present = caller.own.marks.filter((mark) => text.includes(mark));
      expect(present.length).toBeGreaterThan(3);
      const leaked = foreignMarks(caller).filter((mark) => text.includes(mark));
      expect({ caller: caller.name, leaked }).toEqual({ caller: caller.name, leaked: [] });
    }
    // A field that a narrowed caller is refused without an argument stands here, such as 'Client_statements'.
    expect([...refused]).toEqual([]);
  });
});

describe('a walk over every argument of the schema, with the ids of others', () => {
  const leaves = allLeaves();

  it('finds them all by itself', () => {
    const names = leaves.map(nameOf);
    expect(names.length).toBeGreaterThan(40);
    expect(names).toContain('query client.instruments(customerId)');
    expect(names).toContain('mutation createMoneyOut(input.sourceInstrumentId)');
    expect(names).toContain('subscription cepStatus(transactionId)');
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(leaves.filter(({ kind }) => kind !== 'subscription').map((leaf) => [nameOf(leaf), leaf] as const))(
    '%s answers for them as for ids that nobody has',
    async (_, leaf) => {
      expect(callers).toHaveLength(6);
      for (const caller of callers) {
        const nobodys = new Map<number, string>();
        for (const value of tried(leaf, caller.foreign)) {
          // All values of one form are answered alike.
          if (!nobodys.has(value.length)) {
            const other = randomLike(value);
            nobodys.set(value.length, comparable(await ask(caller, leaf, other), other));
          }
          const theirs = await ask(caller, leaf, value);
          expect({ caller: caller.name, answer: comparable(theirs, value) }).toEqual({
            caller: caller.name,
            answer: nobodys.get(value.length),
          });
          const text = JSON.stringify(theirs).replaceAll(value, '');
          const leaked = [...caller.foreign.ids, ...caller.foreign.marks].filter((mark) =>
            text.includes(mark),
          );
          expect({ caller: caller.name, value, leaked }).toEqual({ caller: caller.name, value, leaked: [] });
        }
      }
    },
  );

  it.each(leaves.filter(({ kind }) => kind === 'subscription').map((leaf) => [nameOf(leaf), leaf] as const))(
    '%s streams for them what it streams for ids that nobody has',
    async (_, leaf) => {
      const isEndless = leaf.path[0]?.args.some(({ name }) => name === 'after') === true;
      const streams = callers.flatMap((caller) =>
        tried(leaf, caller.foreign)
          .slice(0, 6)
          .map((value) => {
            const other = randomLike(value);
            const open = (given: string) =>
              subscribeOverSse(caller.gateway.graphql, caller.token, requestFor(leaf, given, caller.own));
            return { caller, value, other, theirs: open(value), nobodys: open(other) };
          }),
      );
      const fence = subscribeOverSse(callers[0]?.gateway.graphql ?? '', callers[0]?.token ?? '', {
        query: 'subscription { moneyIn { amount { amount } } }',
      });
      // Something happens to everybody, again and again until the last of it has come through.
      const clabes = callers.flatMap(({ own }) => own.clabes.slice(0, 1));
      await until(async () => {
        for (const clabe of clabes)
          await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '7.77' });
        // A busy gateway is given no more of it before it has answered.
        for (const { gateway, token } of callers)
          await sendQuery(gateway.graphql, '{ eventCursor }', {}, { authorization: `Bearer ${token}` });
        return fence.results.length >= clabes.length;
      });
      if (!isEndless)
        for (const { theirs, nobodys } of streams)
          expect(String(await theirs.ended)).toBe(String(await nobodys.ended));
      for (const { caller, value, other, theirs, nobodys } of streams) {
        expect({ caller: caller.name, value, results: comparable(theirs.results, value) }).toEqual({
          caller: caller.name,
          value,
          results: comparable(nobodys.results, other),
        });
      }
      await Promise.all(
        [fence, ...streams.flatMap(({ theirs, nobodys }) => [theirs, nobodys])].map((one) => one.leave()),
      );
    },
  );
});
