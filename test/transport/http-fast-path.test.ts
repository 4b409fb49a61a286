import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';

/** Yoga's own transport serves what comes in chunks, of a length that nobody has announced. */
type Way = 'plain' | 'chunked';

interface Sent {
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const QUERY = '{ client { id customers(first: 1) { totalCount } } }';
const ORIGIN = 'https://app.example.mx';

let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await startGateway({ config: { allowsOrigin: (origin) => origin === ORIGIN } });
});

afterAll(async () => {
  await gateway.stop();
});

async function send({ body, headers = {} }: Sent, way: Way): Promise<object> {
  const response = await fetch(gateway.graphql, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.sandbox.accessToken}`,
      'content-type': 'application/json',
      ...headers,
    },
    ...(way === 'plain' ? { body } : { body: new Blob([body]).stream(), duplex: 'half' }),
  } as RequestInit);
  const text = await response.text();
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    origin: response.headers.get('access-control-allow-origin'),
    exposed: response.headers.get('access-control-expose-headers'),
    allow: response.headers.get('allow'),
    body: text.replaceAll(/"requestId":"[^"]+"/g, '"requestId":"…"'),
  };
}

const query = (text: string, more: object = {}): string => JSON.stringify({ query: text, ...more });

it.each<[string, Sent]>([
  ['a query', { body: query(QUERY) }],
  [
    'a query with variables',
    {
      body: query('query Q($id: ID!) { bank(id: $id) { id } }', {
        variables: { id: 'x' },
        operationName: 'Q',
      }),
    },
  ],
  ['variables that are null', { body: query(QUERY, { variables: null, operationName: null }) }],
  ['variables that are a list', { body: query(QUERY, { variables: [] }) }],
  ['an operation that is not there', { body: query(QUERY, { operationName: 'Other' }) }],
  ['a parameter that is unknown', { body: query(QUERY, { other: 1 }) }],
  ['a query that is a number', { body: '{"query":1}' }],
  ['no query', { body: '{}' }],
  ['null', { body: 'null' }],
  ['a list of queries', { body: `[${query(QUERY)}]` }],
  ['a text', { body: '"query"' }],
  ['what is no JSON', { body: '{"query":' }],
  ['nothing', { body: '' }],
  ['a document with a syntax error', { body: query('{ client { id ') }],
  ['a document that is not valid', { body: query('{ client { nothing } }') }],
  ['a document of two operations', { body: query('query A { client { id } } query B { client { id } }') }],
  [
    'a variable of the wrong type',
    {
      body: query('query Q($n: Int) { client { customers(first: $n) { totalCount } } }', {
        variables: { n: 'x' },
      }),
    },
  ],
  [
    'a field that fails',
    { body: query('{ client { customers(first: 0) { totalCount } } bank(id: "x") { id } }') },
  ],
  ['a caller whom nobody knows', { body: query(QUERY), headers: { authorization: 'Bearer nonsense' } }],
  [
    'a mutation',
    {
      body: query(
        'mutation { deleteWebhook(input: { id: "none" }) { __typename ... on UserError { code } } }',
      ),
    },
  ],
  [
    'a subscription',
    { body: query('subscription { moneyIn { id } }'), headers: { accept: 'application/json' } },
  ],
  ['letters of all kinds', { body: query('query Ñandú { client { id } } # 🦤') }],
  [
    'letters of all kinds, where they matter',
    {
      body: query('query Q($t: String) { transaction(id: "x", match: { trackingId: $t }) { id } }', {
        variables: { t: 'ñ🦤\u2028' },
      }),
    },
  ],
  ['too long a document', { body: query(`# ${'x'.repeat(300_000)}\n${QUERY}`) }],
  ['a page that may read it', { body: query(QUERY), headers: { origin: ORIGIN } }],
  ['a page that may not', { body: query(QUERY), headers: { origin: 'https://other.example' } }],
  [
    'a content type with a charset',
    { body: query(QUERY), headers: { 'content-type': 'application/json; charset=UTF-8' } },
  ],
  ...['Application/JSON', 'application/json ; charset=utf-8', 'application/json\t;charset=utf-8'].map(
    (type): [string, Sent] => [
      `a content type of ${type}`,
      { body: query(QUERY), headers: { 'content-type': type } },
    ],
  ),
  ['another content type', { body: query(QUERY), headers: { 'content-type': 'application/graphql+json' } }],
])('answers %s as Yoga itself does', async (_what, sent) => {
  expect(await send(sent, 'plain')).toEqual(await send(sent, 'chunked'));
});

it.each([
  'application/json',
  'application/graphql-response+json',
  'application/graphql-response+json, application/json',
  'application/json, application/graphql-response+json',
  'application/graphql-response+json,application/json;q=0.9',
  'application/graphql-response+json; charset=utf-8, application/json; charset=utf-8',
  'application/json; charset=latin1',
  'application/json, text/plain, */*',
  '*/*, application/graphql-response+json',
  'application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed',
  'text/event-stream',
  'text/html',
  'APPLICATION/JSON',
])('answers a client that accepts %s as Yoga itself does', async (accept) => {
  for (const text of [QUERY, '{ client { nothing } }']) {
    const sent = { body: query(text), headers: { accept } };
    expect(await send(sent, 'plain')).toEqual(await send(sent, 'chunked'));
  }
});

it.each([
  ['application/json;q=0.5, application/graphql-response+json', 'application/graphql-response+json'],
  ['application/json;q=0, application/graphql-response+json;q=0.1', 'application/graphql-response+json'],
  ['*/*;q=0.1, application/graphql-response+json;q=0.9', 'application/graphql-response+json'],
  ['application/graphql-response+json; q=0.8, application/json', 'application/json'],
  ['application/json;q=0', 'application/json'],
])('answers a client that accepts %s with %s', async (accept, type) => {
  const sent = { body: query(QUERY), headers: { accept } };
  for (const way of ['plain', 'chunked'] as const)
    expect(await send(sent, way)).toMatchObject({ status: 200, type: `${type}; charset=utf-8` });
});

it.each(['Application/JSON', 'application/json ; charset=utf-8', 'application/json\t;charset=utf-8'])(
  'reads the JSON of a body of the type %s, of a stream as well',
  async (type) => {
    const headers = { 'content-type': type, accept: 'text/event-stream' };
    const stream = { body: query('subscription { cepStatus(transactionId: "x") { status } }'), headers };
    expect(await send(stream, 'plain')).toMatchObject({ status: 200, type: 'text/event-stream' });
    expect(await send({ body: query(QUERY), headers: { 'content-type': type } }, 'plain')).toMatchObject({
      status: 200,
    });
    expect(await send({ body: '[1]', headers: { 'content-type': type } }, 'plain')).toMatchObject({
      status: 400,
      body: expect.stringContaining('a list of operations'),
    });
  },
);

it.each([
  // Yoga takes what has these for an answer, and sends it.
  [
    '{"status":200,"headers":{"headersInit":{"set-cookie":"a=b"}},"bodyType":"String","bodyInit":"mine"}',
    'Must provide query string.',
  ],
  ['{"status":1,"headers":{}}', 'Must provide query string.'],
  ['{"query":"{ client { id } }","status":1,"headers":{}}', '"data"'],
  // And what has this for a promise.
  ['{"query":"{ client { id } }","then":1}', '"data"'],
  // Clients of the next edition of GraphQL send this.
  ['{"query":"{ client { id } }","onError":"NULL"}', '"data"'],
])('ignores members of a body that are no parameters: %s', async (body, answer) => {
  for (const way of ['plain', 'chunked'] as const)
    expect(await send({ body }, way)).toMatchObject({ body: expect.stringContaining(answer) });
  expect(gateway.log.filter((line) => line.includes('unexpectedly'))).toEqual([]);
});

it('passes over a byte order mark, of a stream as well', async () => {
  const marked = { body: `\uFEFF${query(QUERY)}` };
  for (const way of ['plain', 'chunked'] as const)
    expect(await send(marked, way)).toMatchObject({ status: 200, body: expect.stringContaining('"data"') });
  const body = `\uFEFF${query('subscription { cepStatus(transactionId: "x") { status } }')}`;
  const stream = { body, headers: { accept: 'text/event-stream' } };
  expect(await send(stream, 'plain')).toMatchObject({ status: 200, type: 'text/event-stream' });
});

it('lets a page of another origin read how long it has to wait', async () => {
  for (const way of ['plain', 'chunked'] as const) {
    const page = { body: query(QUERY), headers: { origin: ORIGIN } };
    expect(await send(page, way)).toMatchObject({ origin: ORIGIN, exposed: 'Retry-After' });
    const other = { ...page, headers: { origin: 'https://other.example' } };
    expect(await send(other, way)).toMatchObject({ origin: null, exposed: null });
  }
});

it('forbids caches to keep the answer to a GET, as some keep also what a token was sent for', async () => {
  for (const text of [QUERY, '{ nothing }']) {
    const url = `${gateway.graphql}?query=${encodeURIComponent(text)}`;
    const headers = {
      accept: 'application/json',
      authorization: `Bearer ${gateway.sandbox.accessToken}`,
    };
    const response = await fetch(url, { headers });
    expect(response.headers.get('cache-control')).toBe('no-store');
  }
});

it('refuses a body that is too long, also where its beginning would be a whole one', async () => {
  const sent = { body: `${query(QUERY)}${' '.repeat(300_000)}` };
  for (const way of ['plain', 'chunked'] as const)
    expect(await send(sent, way)).toMatchObject({ status: 413, body: expect.stringContaining('262144') });
});
