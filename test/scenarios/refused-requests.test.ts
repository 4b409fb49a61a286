import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ webhooks: false });
});
afterAll(() => gateway.stop());

const QUERY = '{ client { id } }';
/** More than `LIMIT_ALIASES` are by default. */
const ALIASES = `{ ${Array.from({ length: 31 }, (_, at) => `a${at}: __typename`).join(' ')} }`;
const LONG = JSON.stringify({ query: QUERY.padEnd(300_000) });

type Row = readonly [
  what: string,
  status: number,
  code: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers?: Readonly<Record<string, string>>,
];

const ROWS: readonly Row[] = [
  ['a document that cannot be parsed', 200, 'GRAPHQL_PARSE_FAILED', JSON.stringify({ query: '{' })],
  ['one that is not valid', 200, 'GRAPHQL_VALIDATION_FAILED', JSON.stringify({ query: '{ nothing }' })],
  [
    'the same by Yoga’s own transport',
    400,
    'GRAPHQL_VALIDATION_FAILED',
    JSON.stringify({ query: '{ nothing }' }),
    { accept: 'application/graphql-response+json' },
  ],
  ['a body that is no JSON', 400, 'BAD_USER_INPUT', '{'],
  ['one without a document', 400, 'BAD_USER_INPUT', '{}'],
  ['one that is not UTF-8', 400, 'BAD_USER_INPUT', Buffer.from('{"query":"\u00f1"}', 'latin1')],
  ['one that is too long', 413, 'TOO_COMPLEX', LONG],
  ['one of another type', 415, 'BAD_USER_INPUT', QUERY, { 'content-type': 'text/plain' }],
  [
    'one of another type, and an answer of no form',
    415,
    'BAD_USER_INPUT',
    QUERY,
    { 'content-type': 'text/plain', accept: 'image/png' },
  ],
  ['an answer of no form', 406, 'BAD_USER_INPUT', JSON.stringify({ query: QUERY }), { accept: 'image/png' }],
  [
    'a document that is named by hash',
    200,
    'PERSISTED_QUERY_NOT_SUPPORTED',
    JSON.stringify({ extensions: { persistedQuery: { version: 1, sha256Hash: 'a' } } }),
  ],
];

it.each(ROWS.map(([what, status, code, body, headers = {}]) => ({ what, status, code, body, headers })))(
  '$what is refused with the id of its request, by which the log has it',
  async ({ status, code, body, headers }) => {
    const sent = await fetch(gateway.graphql, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
      body,
    });
    expect(sent.status).toBe(status);
    const requestId = sent.headers.get('x-request-id');
    const { errors } = (await sent.json()) as { errors: { extensions: object }[] };
    expect(errors).toHaveLength(1);
    expect(errors[0]?.extensions).toEqual({ code, requestId });
    const lines = gateway.log.map((line) => JSON.parse(line)).filter((line) => line.requestId === requestId);
    expect(lines).toMatchObject([
      { level: 'debug', message: 'A request was refused before its operation began', code },
    ]);
  },
);

it.each([
  ['a text beyond a limit', 400, ALIASES, {}],
  [
    'a cost above its limit',
    200,
    '{ client { accounts(first: 100) { nodes { moneyIn(first: 100) { nodes { id } } } } } }',
    {},
  ],
  [
    'a wrong variable',
    200,
    'query ($first: Int!) { client { accounts(first: $first) { totalCount } } }',
    { first: 'x' },
  ],
])(
  'in the form application/graphql-response+json %s is %i, by the fast path and by Yoga',
  async (_, status, query, variables) => {
    for (const accept of [
      'application/graphql-response+json',
      'application/graphql-response+json;q=0.9, text/html;q=0.1',
    ]) {
      const sent = await gateway.query(query, variables, { accept });
      expect(sent).toMatchObject({ status, errors: [{ extensions: { code: expect.any(String) } }] });
    }
  },
);

it('a stream that cannot be carried by its answer is refused with the id of its request', async () => {
  for (const accept of ['application/json', 'application/graphql-response+json']) {
    const sent = await fetch(gateway.graphql, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept,
        authorization: `Bearer ${gateway.sandbox.accessToken}`,
      },
      body: JSON.stringify({ query: 'subscription { moneyIn { cursor } }' }),
    });
    expect(sent.status).toBe(406);
    const requestId = sent.headers.get('x-request-id');
    expect(await sent.json()).toMatchObject({
      errors: [{ extensions: { code: 'BAD_USER_INPUT', requestId } }],
    });
  }
});
