import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { GraphQLEnumType, isInputObjectType, isObjectType } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSandbox } from '../../../packages/sandbox/src/index.ts';
import { buildSchema } from '../../../src/schema/index.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';

const SEED = 20_261_120;
/** All told, in even parts. */
const RUNS = 10_000;
const PARTS = 5;
const AT_ONCE = 20;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

let gateway: RunningGateway;
beforeAll(async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({ sandbox, webhooks: false, config: { introspection: false } });
});
afterAll(async () => {
  await gateway.stop();
  await gateway.sandbox.stop();
});

// Words of the schema, so that documents come close to valid ones.
const schema = buildSchema();
const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith('__'));
const fieldNames = types.flatMap((type) =>
  isObjectType(type) || isInputObjectType(type) ? Object.keys(type.getFields()) : [],
);
const word = fc.constantFrom(
  ...new Set([
    ...fieldNames,
    ...types.map(({ name }) => name),
    '__typename',
    '__schema',
    '__proto__',
    'constructor',
    'first',
    'on',
  ]),
);
const enumValue = fc.constantFrom(
  ...types.flatMap((type) =>
    type instanceof GraphQLEnumType ? type.getValues().map(({ name }) => name) : [],
  ),
);

const hostile = fc.constantFrom(
  ...[
    '',
    ' ',
    '\u0000',
    '\ud800',
    '../banks',
    '%2e%2e',
    '?x=1',
    '#',
    "' OR 1=1 --",
    '<script>',
    '\r\nX: 1',
    '💥',
    '{{7*7}}',
    'null',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '9'.repeat(400),
    'x'.repeat(5_000),
    '-1',
    '1e999',
    '0x10',
    'NaN',
    randomUUID(),
  ],
);
const text = fc.oneof(hostile, fc.string(), fc.string({ unit: 'binary' }), fc.uuid());
const json = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.dictionary(fc.oneof(word, hostile), fc.oneof(text, fc.jsonValue(), fc.double(), fc.integer())),
);

const { document } = fc.letrec<{ value: string; args: string; selection: string; document: string }>(
  (tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      text.map((value) => JSON.stringify(value)),
      fc.constantFrom(
        'null',
        'true',
        '1',
        '-0',
        '1.5e300',
        '$v',
        '$missing',
        '{}',
        '[]',
        '"""block"""',
        '""',
      ),
      enumValue,
      fc.tuple(word, tie('value')).map(([name, value]) => `{ ${name}: ${value} }`),
      fc.array(tie('value'), { maxLength: 3 }).map((values) => `[${values.join(' ')}]`),
    ),
    args: fc
      .array(fc.tuple(word, tie('value')), { maxLength: 3 })
      .map((pairs) =>
        pairs.length === 0 ? '' : `(${pairs.map(([name, value]) => `${name}: ${value}`).join(', ')})`,
      ),
    selection: fc
      .array(
        fc.oneof(
          { maxDepth: 5, depthSize: 'small' },
          word,
          fc.tuple(word, tie('args')).map(([name, args]) => `${name}${args}`),
          fc
            .tuple(word, tie('args'), tie('selection'))
            .map(([name, args, inner]) => `${name}${args} ${inner}`),
          fc.tuple(word, tie('selection')).map(([name, inner]) => `... on ${name} ${inner}`),
          fc.constantFrom(
            '...F',
            '...G',
            '... @include(if: $v) { __typename }',
            'a: __typename',
            'a: client { id }',
            '@skip(if: true)',
          ),
        ),
        { minLength: 1, maxLength: 4 },
      )
      .map((parts) => `{ ${parts.join(' ')} }`),
    document: fc
      .tuple(
        fc.constantFrom(
          '',
          'query',
          'query ($v: Boolean = true)',
          'query Q($v: ID!)',
          'mutation',
          'subscription',
        ),
        tie('selection'),
        fc.constantFrom(
          '',
          ' fragment F on Query { ...F client { id } }',
          ' fragment G on Client { ...F } fragment F on Query { ...G }',
        ),
      )
      .map(([head, body, tail]) => `${head} ${body}${tail}`),
  }),
);

// Requests that mean something to begin with, so that hostile values reach resolvers and not only the parser.
const aimed = fc.tuple(
  fc.constantFrom(
    ...['instrument', 'transaction', 'customer', 'bank', 'webhook'].map(
      (field) => `query ($a: ID!) { ${field}(id: $a) { id } }`,
    ),
    'query ($a: AccountBy!) { account(by: $a) { id owner { __typename } } }',
    'query ($a: Int) { client { instruments(first: $a) { nodes { id } } } }',
    'query ($a: String) { client { customers(after: $a) { nodes { id } } } }',
    'query ($a: Cursor) { events(after: $a) { nodes { id } } }',
    'query ($a: TransactionMatch) { transaction(id: "11111111-2222-4333-8444-555555555555", match: $a) { id } }',
    ...Object.values(schema.getMutationType()?.getFields() ?? {}).map(
      ({ name, args: [input] }) => `mutation ($a: ${input?.type}) { ${name}(input: $a) { __typename } }`,
    ),
  ),
  fc.oneof(json, text, fc.integer(), fc.double()),
);

type Shot = () => Promise<{ readonly what: unknown; readonly status: number; readonly body: string }>;

/** What nobody may be told: stacks, paths, the names of inner errors and of the words for what went wrong inside. */
const INSIDES =
  /\n\s+at |node_modules|\.ts:\d|TypeError|RangeError|SyntaxError|ReferenceError|is not a function|Cannot read prop|ECONN|ENOENT|sqlite|ioredis|undefined \(reading/i;

const send = async (what: unknown, path: string, init: RequestInit): ReturnType<Shot> => {
  const response = await fetch(`${gateway.url}${path}`, init);
  return { what, status: response.status, body: await response.text() };
};

const authorized = () => ({
  authorization: `Bearer ${gateway.sandbox.accessToken}`,
  'content-type': 'application/json',
});
const post =
  (body: object): Shot =>
  () => {
    // Lone surrogates and the like are as welcome as anything.
    const written = JSON.stringify(body);
    return send(written, '/graphql', { method: 'POST', headers: authorized(), body: written });
  };

const SHOTS: Readonly<Record<string, fc.Arbitrary<Shot>>> = {
  documents: fc.tuple(document, json).map(([query, variables]) => post({ query, variables })),
  variables: aimed.map(([query, a]) => post({ query, variables: { a } })),
  bodies: fc
    .oneof(
      text,
      json.map((value) => JSON.stringify(value)),
      fc
        .record({ query: json, variables: json, extensions: json, operationName: json }, { requiredKeys: [] })
        .map((value) => JSON.stringify(value)),
    )
    .map(
      (body): Shot =>
        () =>
          send(body, '/graphql', { method: 'POST', headers: authorized(), body }),
    ),
  'headers and paths': fc
    .tuple(
      fc.constantFrom(
        'authorization',
        'accept',
        'x-request-id',
        'origin',
        'x-api-key',
        'last-event-id',
        'content-type',
        'cookie',
        'traceparent',
      ),
      fc.oneof(
        text,
        fc.constant(`Bearer ${'x'.repeat(3_000)}`),
        fc.base64String().map((value) => `Bearer ${value}.${value}.${value}`),
      ),
      fc.oneof(
        fc.constant('/graphql?query={client{id}}'),
        fc
          .tuple(fc.constantFrom('/graphql', '/webhooks', '', '/healthz'), text, text)
          .map(
            ([path, part, query]) =>
              `${path}/${encodeURIComponent(part.toWellFormed())}?variables=${encodeURIComponent(query.toWellFormed())}`,
          ),
      ),
    )
    .map(
      ([name, value, path]): Shot =>
        () => {
          // What cannot stand in a header at all is for other tests, which write bytes.
          const clean = value.replace(/[^\x20-\x7e]/g, '').trim();
          return send([name, clean, path], path, {
            headers: { accept: 'application/json', [name]: clean },
            redirect: 'manual',
          });
        },
    ),
  webhooks: fc
    .tuple(
      fc.constantFrom('MONEY_IN', 'CEP', 'STATUS_UPDATE'),
      fc.boolean(),
      fc.oneof(
        text,
        json.map((value) => JSON.stringify(value)),
        fc
          .record(
            { id_msg: json, client_id: json, msg_date: json, body: json, payload: json },
            { requiredKeys: [] },
          )
          .map((value) => JSON.stringify(value)),
        fc.tuple(json, json, json).map(([id, amount, status]) =>
          JSON.stringify({
            id_msg: randomUUID(),
            body: { id, amount, status },
            payload: { body: { status } },
          }),
        ),
      ),
    )
    .map(
      ([type, isSigned, body]): Shot =>
        () => {
          const url = new URL(gateway.ingress.url(gateway.sandbox.clientId, type as 'CEP') ?? '');
          return send(body, isSigned ? url.pathname : url.pathname.slice(0, -2), { method: 'POST', body });
        },
    ),
};

async function fire(shots: readonly Shot[]): Promise<void> {
  for (let start = 0; start < shots.length; start += AT_ONCE) {
    const answers = await Promise.all(shots.slice(start, start + AT_ONCE).map((shot) => shot()));
    for (const { what, status, body } of answers) {
      const isWell = status < 500 && !INSIDES.test(body) && !body.includes('Unexpected error');
      if (!isWell) expect({ what, status, body }).toBe('an answer that a stranger may have');
    }
  }
}

it('ten thousand hostile requests bring no crash, no failure of the server, no word of its insides, and cost no memory', async () => {
  const all = Object.entries(SHOTS).map(([, arbitrary]) =>
    fc.sample(arbitrary, { seed: SEED, numRuns: RUNS / PARTS }),
  );
  expect(all.flat()).toHaveLength(RUNS);
  const used: number[] = [];
  for (let part = 0; part < PARTS; part += 1) {
    for (const shots of all)
      await fire(shots.slice((part * shots.length) / PARTS, ((part + 1) * shots.length) / PARTS));
    collectGarbage();
    used.push(process.memoryUsage().heapUsed / 1e6);
  }
  // What is kept for good, compiled code and caches that are bounded, is there after the second fifth.
  const [, filled = 0, ...later] = used;
  expect(Math.max(...later) - filled).toBeLessThan(25);
  const ready = await fetch(`${gateway.url}/readyz`);
  expect(ready.status).toBe(200);
  const { data } = await gateway.query('{ client { id } }');
  expect(data.client.id).toBe(gateway.sandbox.clientId);
  expect(gateway.log.filter((line) => /failed unexpectedly/.test(line))).toEqual([]);
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
});
