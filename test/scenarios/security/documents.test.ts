import { createHash } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTrustedDocuments, readTrustedDocuments } from '../../../src/app/trusted-documents-file.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { ASKING } from '../../helpers/raw.ts';
import { until } from '../../helpers/until.ts';

const many = (count: number, part: (index: number) => string, separator = ' ') =>
  Array.from({ length: count }, (_, index) => part(index)).join(separator);

/** A chain of instruments and their owners, this deep. */
const deep = (levels: number): string =>
  levels === 0 ? '{ id }' : `{ instrument { account ${deep(levels - 1)} } }`;

const fragments = (count: number) =>
  `{ ...F0 } ${many(count, (i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`)} fragment F${count} on Query { client { id } }`;

const LIMITED: readonly (readonly [string, string, RegExp])[] = [
  [
    '20,000 aliases',
    `{ ${many(20_000, (i) => `a${i}: __typename`)} }`,
    /longer than|more tokens than the 2000/,
  ],
  ['20,000 directives', `{ __typename ${many(20_000, () => '@a')} }`, /more tokens than the 2000/],
  ['2,001 lines', `${'\n'.repeat(2_000)}{ __typename }`, /more lines than the 2000 that are allowed/],
  ['2,001 lines of another system', `${'\r\n'.repeat(2_000)}{ __typename }`, /more lines than the 2000/],
  ['600 aliases', `{ ${many(600, (i) => `a${i}: __typename`)} }`, /has 600 aliases; at most 30 are/],
  ['31 aliases', `{ ${many(31, (i) => `a${i}: __typename`)} }`, /has 31 aliases; at most 30 are/],
  [
    '51 directives',
    `{ __typename ${many(51, () => '@include(if: true)')} }`,
    /has 51 directives; at most 50 are/,
  ],
  ['a depth of 18', `{ account(by: { clabe: "646180157000000004" }) ${deep(8)} }`, /depth is 18; at most 15/],
  [
    'pages of pages',
    '{ client { customers(first: 100) { nodes { accounts(first: 100) { nodes { id instrument { id } } } } } } }',
    /cost is \d{5,}; at most 10000/,
  ],
  [
    'fragments that double',
    fragments(40).replace('client { id }', 'client { instruments(first: 100) { nodes { id } } }'),
    /cost is .*; at most 10000/,
  ],
];

let gateway: RunningGateway;
let production: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ webhooks: false });
  production = await startGateway({
    sandbox: gateway.sandbox,
    webhooks: false,
    config: { introspection: false },
  });
});
afterAll(async () => {
  await production.stop();
  await gateway.stop();
});

describe.each(ASKING)('over %s', (transport, ask) => {
  it.each(LIMITED)(
    'a document of %s is refused, with the limit and what it had',
    async (_, query, message) => {
      // A document that long is no message of a socket to begin with.
      if (transport === 'WebSocket' && query.length > 64 * 1024) {
        await expect(ask(gateway.graphql, gateway.sandbox.accessToken, { query })).rejects.toThrow('1009');
        return;
      }
      const answer = await ask(gateway.graphql, gateway.sandbox.accessToken, { query });
      expect(answer.data ?? null).toBeNull();
      expect(answer.errors).toHaveLength(1);
      expect(answer.errors?.[0]).toMatchObject({
        message: expect.stringMatching(message),
        extensions: { code: 'TOO_COMPLEX' },
      });
    },
  );

  it.each([
    ['of another name', { query: 'query A { client { id } }', operationName: 'B' }],
    ['of no name among several', { query: 'query A { client { id } } query B { client { id } }' }],
  ])('an operation %s is refused, with what operationName must be', async (_, asked) => {
    const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, asked);
    expect(errors).toMatchObject([
      {
        message: expect.stringContaining('"operationName" must name'),
        extensions: { code: 'BAD_USER_INPUT' },
      },
    ]);
  });

  it('a document that cannot be parsed is refused with the code that says so', async () => {
    const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, { query: '{ client {' });
    expect(errors).toMatchObject([{ extensions: { code: 'GRAPHQL_PARSE_FAILED' } }]);
  });

  it('the page of a variable counts, given or by default', async () => {
    const body =
      '{ client { customers(first: $n) { nodes { instruments(first: $n) { nodes { id bank { id } account { id } } } } } } }';
    for (const [declared, variables] of [
      ['$n: Int', { n: 100 }],
      ['$n: Int = 100', {}],
    ] as const) {
      const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, {
        query: `query (${declared}) ${body}`,
        variables,
      });
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'TOO_COMPLEX' });
    }
    const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, {
      query: `query ($n: Int) ${body}`,
      variables: { n: 5 },
    });
    expect(errors).toBeUndefined();
  });

  it.each([
    ['__schema', '{ __schema { types { name } } }'],
    ['__type', '{ __type(name: "Query") { name } }'],
    ['a nested __schema', '{ client { id } ... on Query { s: __schema { queryType { name } } } }'],
  ])('introspection is refused where it is off: %s', async (_, query) => {
    const { data, errors } = await ask(production.graphql, production.sandbox.accessToken, { query });
    expect(data ?? null).toBeNull();
    // One error, whose sentence says where the schema is: tools that generate code show it.
    expect(errors).toMatchObject([
      { message: expect.stringMatching(/introspection.*"npx pasarela schema"/) },
    ]);
    const open = await ask(gateway.graphql, gateway.sandbox.accessToken, { query });
    expect(open.errors).toBeUndefined();
  });

  it.each<[string, { query: string; variables?: object }]>([
    ['field', { query: '{ clientt { id } }' }],
    ['argument', { query: '{ client { instruments(frist: 1) { totalCount } } }' }],
    ['type', { query: 'query ($a: AccountByy!) { account(by: $a) { id } }' }],
    ['enum value', { query: '{ events(types: [MONEY_INN]) { nodes { id } } }' }],
    ['input field', { query: '{ account(by: { clab: "1" }) { id } }' }],
    [
      'field of a variable',
      { query: 'query ($by: AccountBy!) { account(by: $by) { id } }', variables: { by: { clab: '1' } } },
    ],
    [
      'enum value of a variable',
      {
        query: 'query ($t: [EventType!]) { events(types: $t) { nodes { id } } }',
        variables: { t: ['MONEY_INN'] },
      },
    ],
    [
      'enum value of a variable of a stream',
      {
        query: 'subscription ($t: [EventType!]) { events(types: $t) { id } }',
        variables: { t: ['MONEY_INN'] },
      },
    ],
    ['fragment type', { query: '{ ...F } fragment F on Clientt { id }' }],
  ])('a mistyped %s is answered without a suggestion where introspection is off', async (_, request) => {
    const { errors } = await ask(production.graphql, production.sandbox.accessToken, request);
    expect(errors?.length).toBeGreaterThan(0);
    expect(JSON.stringify(errors)).not.toMatch(/did you mean/i);
    const open = await ask(gateway.graphql, gateway.sandbox.accessToken, request);
    expect(JSON.stringify(open.errors)).toMatch(/did you mean/i);
  });
});

describe('trusted documents', () => {
  const hash = (text: string) => createHash('sha256').update(text).digest('hex');
  const LISTED = 'query Me { client { id } }';
  const OTHER = 'query Other { client { id accounts { totalCount } } }';
  let strict: RunningGateway;
  beforeAll(async () => {
    strict = await startGateway({
      sandbox: gateway.sandbox,
      webhooks: false,
      config: { trustedDocuments: new Map([[hash(LISTED), LISTED]]) },
    });
  });
  afterAll(() => strict.stop());

  describe.each(ASKING)('over %s', (transport, ask) => {
    // A socket's messages hold a text in `query`, if only an empty one (graphql-transport-ws).
    const empty = transport === 'WebSocket' ? { query: '' } : {};
    const run = (request: object) =>
      ask(strict.graphql, strict.sandbox.accessToken, { ...empty, ...request });

    it.each([
      [
        'the extension of persisted queries',
        { extensions: { persistedQuery: { version: 1, sha256Hash: hash(LISTED) } } },
      ],
      ['documentId', { documentId: `sha256:${hash(LISTED)}` }],
      ['documentId without a prefix', { documentId: hash(LISTED) }],
    ])('run by %s', async (_, request) => {
      const { data, errors } = await run(request);
      expect(errors).toBeUndefined();
      expect(data.client.id).toBe(strict.sandbox.clientId);
    });

    it.each([
      ['a hash that is not listed', { documentId: hash(OTHER) }],
      ['a text that is not listed', { query: OTHER }],
      [
        'a text that is not listed, under the hash of one that is',
        { query: OTHER, documentId: hash(LISTED) },
      ],
      ['a hash that is no text', { documentId: { $ne: '' } }],
      ['the name of a property that every object has', { documentId: '__proto__' }],
      ['nothing', {}],
    ])('and nothing else runs: %s', async (_, request) => {
      const { data, errors } = await run(request);
      expect(data ?? null).toBeNull();
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining('Only listed documents run here'),
        extensions: { code: 'FORBIDDEN' },
      });
      expect(errors?.[0]?.extensions).not.toHaveProperty('http');
    });
  });

  it('run over GET too', async () => {
    const url = new URL(strict.graphql);
    url.searchParams.set('documentId', hash(LISTED));
    const headers = { authorization: `Bearer ${strict.sandbox.accessToken}`, accept: 'application/json' };
    const { data } = (await (await fetch(url, { headers })).json()) as { data: { client: { id: string } } };
    expect(data.client.id).toBe(strict.sandbox.clientId);
  });

  it('are read from files of Relay, graphql-codegen and Apollo, whose hashes must be those of their documents', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pasarela-documents-'));
    const write = async (name: string, content: unknown) => {
      const file = join(folder, name);
      await writeFile(file, JSON.stringify(content));
      return file;
    };
    const THIRD = 'query Third { banks { id } }';
    const codegen = await write('codegen.json', {
      [hash(LISTED)]: LISTED,
      [`sha256:${hash(OTHER).toUpperCase()}`]: OTHER,
    });
    const md5 = createHash('md5').update(OTHER).digest('hex');
    const relay = await write('relay.json', { [md5]: OTHER, 'Third-1': THIRD });
    const apollo = await write('apollo.json', {
      format: 'apollo-persisted-query-manifest',
      version: 1,
      operations: [{ id: hash(THIRD), name: 'Third', type: 'query', body: THIRD }],
    });
    const documents = readTrustedDocuments([codegen, relay, apollo]);
    expect(Object.fromEntries(documents)).toEqual({
      [hash(LISTED)]: LISTED,
      [hash(OTHER)]: OTHER,
      [hash(THIRD)]: THIRD,
      [md5]: OTHER,
      'Third-1': THIRD,
    });

    const stale = await write('stale.json', { [hash(LISTED)]: OTHER });
    expect(() => readTrustedDocuments([stale])).toThrow(/TRUSTED_DOCUMENTS.*is not the SHA-256/s);
    const clash = await write('clash.json', { 'Third-1': LISTED });
    expect(() => readTrustedDocuments([relay, clash])).toThrow(/"Third-1" stands for two documents/);
    const list = await write('list.json', ['not', 'an object']);
    expect(() => readTrustedDocuments([codegen, list])).toThrow(/neither a JSON object/);
    expect(() => readTrustedDocuments([join(folder, 'missing.json')])).toThrow(
      /TRUSTED_DOCUMENTS: got ".*missing\.json", which cannot be read; wants JSON files/,
    );
    await rm(folder, { recursive: true });
  });

  it('are read again when their files change; a file that cannot be read leaves those before in force', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pasarela-documents-'));
    const file = join(folder, 'documents.json');
    // At once: one that is written in its place is empty for a moment, in which it may be read.
    const put = async (text: string) => {
      await writeFile(`${file}.new`, text);
      await rename(`${file}.new`, file);
    };
    await put(JSON.stringify({ 'listed-1': LISTED }));
    await using live = await startGateway({
      sandbox: gateway.sandbox,
      webhooks: false,
      config: { trustedDocuments: openTrustedDocuments([file], 20) },
    });
    const reloads = (outcome: string) =>
      readMetric(live.url, 'pasarela_trusted_documents_reloads_total', `outcome="${outcome}"`);
    const codeOf = async (document: string) => (await live.query(document)).errors?.[0]?.extensions['code'];
    expect([await codeOf(LISTED), await codeOf(OTHER)]).toEqual([undefined, 'FORBIDDEN']);

    await put('{ "listed-1": ');
    await until(async () => (await reloads('error')) === 1);
    expect([await codeOf(LISTED), await codeOf(OTHER)]).toEqual([undefined, 'FORBIDDEN']);
    expect(live.log.join('\n')).toContain('those read before stay in force');

    await put(JSON.stringify({ 'other-1': OTHER }));
    await until(async () => (await reloads('ok')) === 1);
    expect([await codeOf(LISTED), await codeOf(OTHER)]).toEqual(['FORBIDDEN', undefined]);
    await rm(folder, { recursive: true });
  });
});

describe.each(ASKING)('where no documents are listed, over %s', (transport, ask) => {
  const empty = transport === 'WebSocket' ? { query: '' } : {};
  const sha256Hash = createHash('sha256').update('{ client { id } }').digest('hex');

  it.each([
    ['the extension of persisted queries', { extensions: { persistedQuery: { version: 1, sha256Hash } } }],
    ['documentId', { documentId: sha256Hash }],
  ])('a hash in %s is answered so that clients send the text', async (_, request) => {
    const named = await ask(gateway.graphql, gateway.sandbox.accessToken, { ...empty, ...request });
    expect(named.errors?.[0]).toMatchObject({
      message: 'PersistedQueryNotSupported',
      extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' },
    });
    const written = await ask(gateway.graphql, gateway.sandbox.accessToken, {
      query: '{ client { id } }',
      ...request,
    });
    expect(written.data.client.id).toBe(gateway.sandbox.clientId);
  });
});
