import { readFile } from 'node:fs/promises';
import { buildSchema, isInputObjectType, isObjectType } from 'graphql';
import { beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { folder } from '../helpers/packages.ts';

// What the page does without drawing anything, where a browser would be: with a storage and an address.
const kept = new Map<string, string>();
const localStorage = new Proxy(
  {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  },
  {
    ownKeys: () => [...kept.keys()],
    getOwnPropertyDescriptor: (_target, key) =>
      kept.has(String(key))
        ? { enumerable: true, configurable: true, value: kept.get(String(key)) }
        : undefined,
  },
);
const here = { href: 'http://here/graphql' };
const location = {
  get href() {
    return here.href;
  },
  get hash() {
    return new URL(here.href).hash;
  },
  get search() {
    return new URL(here.href).search;
  },
};
const history = {
  replaceState: (_state: unknown, _title: string, address: URL) => {
    here.href = address.href;
  },
};
vi.stubGlobal('localStorage', localStorage);
vi.stubGlobal('location', location);
vi.stubGlobal('history', history);
vi.stubGlobal('document', { documentElement: { lang: '' } });
vi.stubGlobal('navigator', { language: 'en-US' });

/** A file of the page, which the compiler of the rest does not read: it knows no browser. */
const fileOf = (name: string, visit = '') => import(`${folder(`workbench/src/${name}`)}?${visit}`);

let page: Readonly<
  Record<'described' | 'story' | 'link' | 'credentials' | 'resume', Awaited<ReturnType<typeof fileOf>>>
>;
beforeAll(async () => {
  page = {
    described: await fileOf('described.ts'),
    story: await fileOf('story.ts'),
    link: await fileOf('link.ts'),
    credentials: await fileOf('credentials.ts'),
    resume: await fileOf('net/resume.ts'),
  };
});
beforeEach(() => kept.clear());

const watch = { query: '', variables: { transactionId: 'the watched' } };
const cep = { status: 'COMPLETED', beneficiaryName: 'Ana', url: 'https://cep.example/1' };

it.each([
  [
    'an error by its code',
    { errors: [{ message: 'No.', extensions: { code: 'DRAINING' } }] },
    ['DRAINING', 'No.'],
  ],
  ['an error without a code', { errors: [{ message: 'No.' }] }, ['ERROR', 'No.']],
  ['nothing', {}, ['event', '']],
  ['a field that is null', { data: { moneyIn: null } }, ['moneyIn', '']],
  [
    'a credit',
    {
      data: {
        moneyIn: { amount: { amount: '1.00', currency: 'MXN' }, payer: { name: 'Ana' }, rawStatus: '' },
      },
    },
    ['moneyIn', '1.00 MXN from Ana'],
  ],
  ['a state', { data: { e: { type: 'T', kind: 'K', rawStatus: 'REFUNDED' } } }, ['T', 'REFUNDED']],
  ['a receipt', { data: { c: { kind: 'K', rawStatus: 'X', cep } } }, ['COMPLETED', 'Ana']],
])('a row tells of %s', (_what, result, [type, says]) => {
  expect(page.described.described(result, watch)).toMatchObject({ type, says });
});

it.each([
  ['a receipt that is complete', cep, cep.url],
  ['one that is not', { ...cep, status: 'PENDING' }, undefined],
  ['what is no address', { ...cep, url: 'soon' }, undefined],
  ['what would run on the page', { ...cep, url: 'javascript:alert(1)' }, undefined],
])('%s has the button that it should', (_what, receipt, address) => {
  const { described } = page.described;
  expect(described({ data: { c: { cep: receipt } } }, watch).receipt).toBe(address);
});

it('the payment of a row is its own before that of the watch', () => {
  const idIn = (payload: object, operation: object = watch) =>
    page.described.described({ data: { e: payload } }, operation).transactionId;
  expect(idIn({ transactionId: 'a', transaction: { id: 'b' } })).toBe('a');
  expect(idIn({ transaction: { id: 'b' } })).toBe('b');
  expect(idIn({})).toBe('the watched');
  expect(idIn({ transactionId: '' }, { query: '', variables: { transactionId: '' } })).toBeUndefined();
  expect(page.described.paymentOf({ data: { a: null, b: { transaction: { id: 'c' } } } })).toBe('c');
  expect(page.described.paymentOf({ data: { client: { id: 'd' } } })).toBeUndefined();
});

it('cursors are told apart by what differs in them', () => {
  const labels = (cursors: readonly string[]) => cursors.map(page.described.toldApart(cursors));
  expect(labels(['0000-abcdef', '0000-xbcdef'])).toEqual(['…abcdef…', '…xbcdef…']);
  // What differs behind six characters, and in one that goes on alone.
  expect(new Set(labels(['0000-abcdefg1', '0000-abcdefg2', '0000-xbcdef00'])).size).toBe(3);
  expect(labels(['0000-abcdef', '0000-abcdef'])).toEqual(['…abcdef…', '…abcdef…']);
});

it('a filter finds ids and texts in any case, of its type alone', () => {
  const result = { data: { moneyIn: { transactionId: 'AB-1', payer: { name: 'Íñigo' } } } };
  const finds = (type: string, text: string) =>
    page.described.matches(result, { type: 'moneyIn' }, { type, text });
  expect([finds('', ''), finds('moneyIn', ' ab-1 '), finds('', 'íÑIGO')]).toEqual([true, true, true]);
  expect([finds('other', ''), finds('moneyIn', 'zz')]).toEqual([false, false]);
});

it('a new key takes the place of any that was written, and of nothing else', () => {
  const { withOtherKey, withNewKeys } = page.story;
  const renewed = withOtherKey('{ "idempotencyKey" : "mine", "concept": "mine" }');
  expect(renewed).toMatch(/^\{ "idempotencyKey" : "workbench-[0-9a-f-]{36}", "concept": "mine" \}$/);
  expect(withOtherKey(renewed)).not.toBe(renewed);
  expect(withOtherKey('{"concept": "mine"}')).toBeUndefined();
  // Each visit of a sandbox has keys of its own, and one that stood twice still does. What a person wrote stays.
  const key = /workbench-[0-9a-f-]{36}/.exec(renewed)?.[0] ?? '';
  const visit = withNewKeys(`${key} ${key} mine`);
  expect(visit).not.toContain(key);
  expect(visit).toMatch(/^(workbench-\S+) \1 mine$/);
});

it('a page of plain http, which has no randomUUID, makes keys', () => {
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) });
  expect(page.story.withOtherKey('{"idempotencyKey": "mine"}')).toMatch(/"workbench-[0-9a-f-]{36}"/);
});

it('a link brings an operation, and leaves what else the address asks for', () => {
  const { linkTo, linkedHere, forgetLink } = page.link;
  const linked = { query: '{ a(b: "ü&#") }', variables: '{"x": 1}' };
  here.href = 'http://here/graphql?subscriptions=WS&query=old&variables=1&operationName=o';
  expect(linkedHere()).toEqual({ query: 'old', variables: '1' });
  here.href = linkTo(linked);
  expect(linkedHere()).toEqual(linked);
  forgetLink();
  expect(here.href).toBe('http://here/graphql?subscriptions=WS');
  expect(linkedHere()).toBeUndefined();
});

it.each([
  [
    'of several, with what the open one holds',
    '{"tabs":[{"query":"a"},{"query":"b"}],"activeTabIndex":1}',
    'b',
    true,
  ],
  ['whose open one is gone', '{"tabs":[{"query":"a"}],"activeTabIndex":3}', '', true],
  ['that nobody can read', 'spoilt', null, false],
])('the tabs of the visit before come back: %s', async (_what, state, query, areKept) => {
  // Each visit loads the page anew.
  const { renewKeys, storage } = await fileOf('storage.ts', encodeURIComponent(state));
  kept.set('others', 'stays');
  storage.setItem('graphiql:tabState', state);
  storage.setItem('graphiql:query', 'of another tab');
  renewKeys(false);
  expect(storage.getItem('graphiql:query')).toBe(query);
  // A page that begins anew writes none as it is left.
  storage.setItem('graphiql:tabState', state);
  expect(storage.getItem('graphiql:tabState') !== null).toBe(areKept);
  storage.setItem('graphiql:theme', 'dark');
  expect(storage.length).toBe(areKept ? 4 : 1);
  storage.clear();
  expect([...kept]).toEqual([['others', 'stays']]);
});

const PAY = { id: '1', title: 'Pay', query: 'mutation Pay { pay }', variables: '' };
const keptTab = (storage: { getItem(key: string): string | null }) =>
  JSON.parse(storage.getItem('graphiql:tabState') ?? '{}').tabs?.[0];

it('a sandbox at the address of a real service renews its own keys, and none of that service', async () => {
  const visit = (name: string) => fileOf('storage.ts', name);
  const pay = { ...PAY, variables: '{"idempotencyKey": "workbench-00112233445566778899aabbccddeeff0011"}' };
  const service = await visit('service');
  service.renewKeys(false);
  service.writeTabs({ tabs: [pay], activeTabIndex: 0 });
  const demo = await visit('demo');
  demo.renewKeys(true);
  expect(keptTab(demo.storage)).toBeUndefined();
  demo.writeTabs({ tabs: [pay], activeTabIndex: 0 });
  const demoAgain = await visit('demo again');
  demoAgain.renewKeys(true);
  expect(keptTab(demoAgain.storage).variables).toMatch(/workbench-[0-9a-f]{36}/);
  expect(keptTab(demoAgain.storage).variables).not.toBe(pay.variables);
  expect(demoAgain.storage.getItem('graphiql:variables')).toBe(keptTab(demoAgain.storage).variables);
  demoAgain.forgetTabs();
  const serviceAgain = await visit('service again');
  serviceAgain.renewKeys(false);
  expect(keptTab(serviceAgain.storage).variables).toBe(pay.variables);
  expect(serviceAgain.storage.getItem('graphiql:variables')).toBe(pay.variables);
});

it.each([
  ['that the page has filled in is watched no more', 'WatchCep', 'filled', ''],
  ['that a person has written stays', 'WatchCep', 'written', 'written'],
  ['of another operation stays', 'Refund', 'filled', 'filled'],
])('after a reload in front of a sandbox, a payment %s', async (what, title, id, after) => {
  const { renewKeys, storage, rememberFilledIn, writeTabs } = await fileOf('storage.ts', `left ${what}`);
  renewKeys(true);
  rememberFilledIn('filled');
  for (let more = 0; more < 10; more += 1) rememberFilledIn(`more ${more}`.replace(' ', '-'));
  writeTabs({
    tabs: [{ ...PAY, title, variables: JSON.stringify({ transactionId: id, other: 1 }, null, 2) }],
    activeTabIndex: 0,
  });
  const again = await fileOf('storage.ts', `back ${what}`);
  again.renewKeys(true);
  expect(JSON.parse(keptTab(storage).variables)).toEqual({ transactionId: after, other: 1 });
  expect(again.storage.getItem('graphiql:variables')).toBe(keptTab(storage).variables);
  expect([again.isFilledIn('filled'), again.isFilledIn(''), again.isFilledIn('written')]).toEqual([
    true,
    true,
    false,
  ]);
});

const ANSWER = { result: { data: { a: 'the secret' } } };

it.each([
  ['a query of a secret', 'query Mine { credentials { id secret: clientSecret } }', '{"a": 1}'],
  [
    'an exchange for a token',
    'mutation T($i: I!) { issueCredentialToken(input: $i) { ... on C { t: token } } }',
    '{}',
  ],
  [
    'an exchange that asks for no token',
    'mutation T($i: I!) { a(input: $i) { id } }',
    '{"i": {"clientSecret": "the secret"}}',
  ],
  ['a secret in the text itself', 'mutation { a(input: { clientSecret: "the \\" secret" }) { id } }', ''],
  ['one in a block', 'mutation { a(input: { token: """\nthe secret""" }) { id } }', ''],
])('a session holds of %s its text alone', (_what, query, variables) => {
  const cut = page.credentials.withoutCredentials({
    title: 'T',
    query,
    variables,
    answer: ANSWER,
    stream: { entries: [ANSWER], operation: { query, variables } },
  });
  expect(cut.isCut).toBe(true);
  expect(cut.query).toMatch(/^(query|mutation).*\}$/s);
  expect(JSON.stringify(cut)).not.toMatch(/the.*secret/);
});

const EXCHANGE = 'mutation T($i: I!) { issueCredentialToken(input: $i) { ... on C { t: token } } }';
const SENT = [
  { query: EXCHANGE, variables: {} },
  { query: 'mutation T($i: I!) { a(input: $i) { id } }', variables: { i: { clientSecret: 'the secret' } } },
  { query: `${EXCHANGE} subscription S { moneyIn { id } }` },
];

it.each(SENT)('a session holds nothing that came of $query once its text was changed', (operation) => {
  const { withoutCredentials, sendsCredential } = page.credentials;
  const answer = { ...ANSWER, hasCredential: sendsCredential(operation) };
  const tab = { title: 'C', query: '{ client { id } }', variables: '{"secret": "the secret"}' };
  for (const came of [{ answer }, { stream: { entries: [ANSWER], operation } }]) {
    const cut = withoutCredentials({ ...tab, ...came });
    expect(cut).toMatchObject({ title: 'C', query: '{ client { id } }', isCut: true });
    expect(JSON.stringify(cut)).not.toMatch(/the secret|Credential/);
  }
});

it('a session holds all of what has no credential, and no name of the graph for one is forgotten', async () => {
  const tab = {
    title: 'P',
    query: 'query P { payment(tokens: "x") { id } }',
    variables: '{"a": 1}',
    answer: { ...ANSWER, hasCredential: page.credentials.sendsCredential({ query: '{ a }' }) },
    stream: { entries: [], operation: { query: 'subscription { moneyIn { id } }' } },
  };
  expect(page.credentials.withoutCredentials(tab)).toBe(tab);
  const schema = buildSchema(await readFile(folder('schema.graphql'), 'utf8'));
  const secrets = Object.values(schema.getTypeMap()).flatMap((type) =>
    isObjectType(type) || isInputObjectType(type)
      ? Object.values(type.getFields())
          .filter(
            ({ name, type: of }) =>
              /token|secret|password|apikey/i.test(name) && /^String!?$/.test(String(of)),
          )
          .map(({ name }) => name)
      : [],
  );
  expect(secrets.length).toBeGreaterThan(3);
  for (const name of secrets)
    expect(page.credentials.hasCredential({ query: `{ ${name} }`, variables: '' }), name).toBe(true);
});

it.each([
  [
    'a feed that takes a cursor and tells it',
    'subscription ($after: Cursor) { moneyIn(after: $after) { cursor } }',
    true,
  ],
  ['a feed that takes none', 'subscription { moneyIn { cursor } }', false],
  ['a feed that does not tell it', 'subscription { events(after: null) { at: cursor id } }', false],
  ['a state', 'subscription { s: cepStatus(transactionId: "1") { kind } }', true],
  ['what is not known', 'subscription { other { kind } }', false],
])('whether a stream loses nothing over a socket: %s', (_what, query, is) => {
  expect(page.resume.resumesOverSocket({ query })).toBe(is);
});

it('neither the history nor the tabs keep a header, nor what an earlier version kept', async () => {
  const { renewKeys, storage, writeTabs } = await fileOf('storage.ts', 'history');
  const item = { query: '{ headers }', variables: '{"headers": 1}', headers: '{"a": "the token"}' };
  const history = JSON.stringify({ favorites: [item] });
  kept.set('pasarela:graphiql:favorites', history);
  renewKeys(false);
  storage.setItem('graphiql:queries', JSON.stringify({ queries: [item] }));
  writeTabs({ tabs: [{ ...item, id: '1', hash: 'h', response: 'r', title: 't' }], activeTabIndex: 0 });
  expect([...kept.values()].join()).not.toContain('the token');
  const { query, variables } = item;
  expect(JSON.parse(storage.getItem('graphiql:favorites'))).toEqual({ favorites: [{ query, variables }] });
  expect(JSON.parse(storage.getItem('graphiql:queries'))).toEqual({ queries: [{ query, variables }] });
  expect(JSON.parse(storage.getItem('graphiql:tabState')).tabs[0]).toMatchObject({ query, variables });
});
