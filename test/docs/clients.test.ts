import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { control, sendQuery } from '../helpers/gateway.ts';
import { folder, installWithClient, run } from '../helpers/packages.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { compile, PHONE, page, snippets, typed } from './client-pages.ts';
import { Client } from './page-program.ts';
import { composes, connects, draws, drawsOnServer, shows, subscribes } from './screens.ts';

const PACKAGES = 'test/clients';
const CLIENTS = ['graphql-ws', 'apollo', 'urql', 'relay', 'server-sent-events'] as const;
/** What the others import; they follow nothing themselves. */
const SHARED = ['app', 'store'];
/** What a program of this test's own runs: components, and a store. */
const RUN_BY = ['react', 'next', 'svelte', 'vue'];
/** What an app may need besides, in more lines. */
const LONGER = [
  'pay',
  'accounts',
  'get-state',
  'one-account',
  'unsettled',
  'payments',
  'pay-spei',
  'draft',
  'form',
  'backend-intents',
  'part',
  'refund',
  'use-press',
  'sign-out',
  'unit-test',
  'gateway-test',
  'app-test',
  'refund-test',
];
/** What `test/e2e/once.test.ts` runs in a browser. */
const IN_BROWSERS = ['once', 'banners'];
/** What an app writes, besides its GraphQL. A payment goes with its receipt. */
const LINES = { ...Object.fromEntries([...CLIENTS, ...RUN_BY].map((name) => [name, 10])), pay: 15 };
/** Tests outlive it. The sandbox gives one token until a fifth of its time is left: a process that stands still for a while can use it then. */
const TOKEN_TTL_SECONDS = 60;

let gateway: RestartableGateway;
let work: string;
let clients: Client[];

beforeAll(async () => {
  await installWithClient(PACKAGES);
  gateway = await startRestartable({}, { tokenTtlSeconds: TOKEN_TTL_SECONDS });
  work = await mkdtemp(folder(`${PACKAGES}/run-`));
  await prepare();
  clients = CLIENTS.map((name) => new Client(name, work));
  await Promise.all(clients.map((client) => client.start()));
});
afterAll(async () => {
  await Promise.all((clients ?? []).map((client) => client.kill()));
  await gateway?.[Symbol.asyncDispose]();
  if (work !== undefined) await rm(work, { recursive: true, force: true });
});

/** Writes the pages' files as a reader would, with the addresses of this test; what they generate is generated. */
async function prepare(): Promise<void> {
  for (const [name, code] of snippets) {
    const here = code
      .replaceAll('http://127.0.0.1:4000/graphql', gateway.graphql)
      .replaceAll(/http:\/\/127\.0\.0\.1:4010\b/g, gateway.sandbox.url)
      .replace("'@pasarela/sandbox'", `'${folder('packages/sandbox/src/index.ts')}'`)
      .replace("'pasarela/testing'", `'${folder('src/app/testing.ts')}'`);
    await writeFile(join(work, `${name}.js`), here);
  }
  await copyFile(folder('schema.graphql'), join(work, 'schema.graphql'));
  const [, relayConfig = ''] = /^```json\n(\{\n {2}"src".*?)^```$/ms.exec(page) ?? [];
  await writeFile(join(work, 'relay.config.json'), relayConfig);
  await run(folder(`${PACKAGES}/node_modules/.bin/relay-compiler`), [], work);
  await run(process.execPath, [folder(`${PACKAGES}/compile-relay.js`), join(work, 'relay.js')], work);
}

async function credits(...concepts: string[]): Promise<void> {
  for (const concept of concepts) await gateway.credit(concept);
}

/** Waits until every client has kept exactly this. */
async function allKeep(...expected: string[]): Promise<void> {
  const kept = async () =>
    Object.fromEntries(await Promise.all(clients.map(async (client) => [client.name, await client.kept()])));
  const wanted = Object.fromEntries(CLIENTS.map((name) => [name, expected]));
  await expect.poll(kept).toEqual(wanted);
}

it('every block of the pages is a file that is run here, or compiled', () => {
  expect(snippets.size + typed.size).toBe(
    [...page.matchAll(/^```(js|javascript|jsx|ts|tsx|typescript)\b/gm)].length,
  );
  expect([...typed.keys()].toSorted()).toEqual(
    [...PHONE, 'first-file.ts', 'first-screen.tsx', 'session.ts', 'sqlite-store.ts'].toSorted(),
  );
  expect([...snippets.keys()].toSorted()).toEqual(
    [...CLIENTS, ...SHARED, ...RUN_BY, ...LONGER, ...IN_BROWSERS].toSorted(),
  );
});

it('the README shows the lines that are run here', async () => {
  const readme = await readFile(folder('README.md'), 'utf8');
  expect([...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code)).toEqual([
    snippets.get('graphql-ws'),
  ]);
});

it.each(Object.entries(LINES))('%s takes at most %i lines, besides its GraphQL', (name, most) => {
  const code = snippets.get(name)?.replace(/graphql`.*?`|typed\(`.*?`\)/gs, '') ?? '';
  const lines = code.split('\n').filter((line) => !/^\s*(\/\/.*|[})\];]*)?$/.test(line));
  expect(lines.length).toBeGreaterThan(3);
  expect(lines.length).toBeLessThanOrEqual(most);
});

it.each(['nodenext', 'bundler'])('the TypeScript of the pages compiles as %s', (resolution) =>
  compile(work, resolution),
);

describe('every client of the pages', () => {
  it('queries where the log ends, and keeps the credits that arrive after that', async () => {
    await allKeep('start');
    await credits('one', 'two', 'three');
    await allKeep('start', 'one', 'two', 'three');
  });

  it('goes on without a gap or a repeat when the gateway was killed', async () => {
    await gateway.kill();
    await credits('four');
    await gateway.start();
    await gateway.allDelivered();
    await credits('five');
    await allKeep('start', 'one', 'two', 'three', 'four', 'five');
  });

  it('goes on with another token when the one that it connected with has expired', async () => {
    // The one that is given now: no client is connected with a later one.
    const { accessToken } = await control(gateway.sandbox, 'GET', '/sandbox');
    const headers = { authorization: `Bearer ${accessToken}` };
    const code = async () => {
      const { errors } = await sendQuery(gateway.graphql, '{ client { id } }', {}, headers);
      return errors?.[0]?.extensions['code'];
    };
    await expect.poll(code, { interval: 500 }).toBe('UNAUTHENTICATED');
    await credits('six');
    await allKeep('start', 'one', 'two', 'three', 'four', 'five', 'six');
  });

  it('goes on without a gap or a repeat when it was killed itself, amid a line of its store', async () => {
    await Promise.all(clients.map((client) => client.killWriting()));
    await credits('seven', 'eight');
    await Promise.all(clients.map((client) => client.start()));
    await credits('nine');
    await allKeep('start', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine');
  });

  it('learns of a gap when the log was lost, and goes on from what it holds', async () => {
    await gateway.allDelivered();
    await gateway.kill();
    await gateway.loseLog();
    await gateway.start();
    await credits('ten');
    const before = ['start', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
    await allKeep(...before, 'gap', 'ten');
  });
});

/** Runs a program of the test's own beside the page's files, until it ends by itself. */
async function runBeside(name: string, code: string): Promise<string> {
  const file = join(work, `${name}-runner.js`);
  await writeFile(file, code);
  return run(process.execPath, [file], work);
}

it.each([
  ['react', shows],
  ['next', shows],
  ['svelte', subscribes],
  ['vue', composes],
])('what the page of %s makes shows what comes in', async (name, program) => {
  let isOver = false;
  const over = runBeside(name, program(name)).finally(() => {
    isOver = true;
  });
  // What comes before it is live is not its own to show: credits come until it has shown two of them.
  for (let number = 0; !isOver; number += 1) await gateway.credit(`credit ${number}`);
  expect(await over).toMatch(/live\ncredit \d+,credit \d+/);
});

it('what the page of Vue makes follows nothing on a server, which never disposes of what a component has begun', async () => {
  expect(await runBeside('vue-server', drawsOnServer('vue'))).toBe('<ul status="offline"></ul>\n');
});

it('the example for phones can pay where React begins its effects again, and leaves its payments as the screens go', async () => {
  await copyFile(folder('examples/mobile/src/graph/use-connection.ts'), join(work, 'use-connection.ts'));
  // React's renderer warns of itself in between.
  const told = (await runBeside('connection', connects)).match(/^.*, left .*$/gm);
  expect([...new Set(told)]).toEqual([
    'begins, left false',
    'hidden, left true',
    'shown, left false',
    'gone, left true',
  ]);
});

it('what the pages draw says in a sentence where credits are missing', async () => {
  const screens = ['react', 'next'].map((name) => new Client(`${name}-gap`, work));
  const all = (text: string) =>
    expect
      .poll(async () => Promise.all(screens.map((screen) => screen.kept())))
      .toEqual(screens.map(() => [expect.stringContaining(text)]));
  try {
    for (const name of ['react', 'next']) await writeFile(join(work, `${name}-gap.js`), draws(name));
    await Promise.all(screens.map((screen) => screen.start()));
    await all('live');
    await gateway.kill();
    await gateway.loseLog();
    await gateway.start();
    await all('Some credits are missing here.');
  } finally {
    await Promise.all(screens.map((screen) => screen.kill()));
  }
});

it('the payment of the page is done once, however often it is asked for until its receipt was seen', async () => {
  const { centralizing, clabeInstrumentIds } = gateway.sandbox;
  const input = {
    sourceInstrumentId: centralizing.instrumentId,
    destinationInstrumentId: clabeInstrumentIds[0],
  };
  const output = await runBeside(
    'pay',
    `import { verify } from './pay.js';
const input = ${JSON.stringify(input)};
const show = ({ status }, { status: receipt, final }) => final && console.log(status, receipt);
// Here the screen has gone before anybody saw the end of the receipt.
let first;
await verify(input, ({ result }) => {
  first = result.transaction.id;
  throw new Error('gone');
}).catch(({ message }) => console.log(message));
const both = await Promise.all([verify(input, show), verify(input, show)]);
console.log(new Set([first, ...both.map(({ result }) => result.transaction.id)]).size);
process.exit();`,
  );
  expect(output).toBe('gone\ndone COMPLETED\ndone COMPLETED\n1\n');
});

it('a draft is paid once, by whichever browser, and also where a browser has lost its store', async () => {
  const { centralizing, clabeInstrumentIds } = gateway.sandbox;
  const input = {
    sourceInstrumentId: centralizing.instrumentId,
    destinationInstrumentId: clabeInstrumentIds[0],
    externalReference: '7654321',
  };
  const output = await runBeside(
    'draft',
    `import { memoryIntents, typed } from '@pasarela/client';
import { createFetch } from '@pasarela/client/fetch';
import { token, url } from './app.js';
import { payDraft } from './draft.js';
const Verify = typed(\`mutation Verify($input: CreatePennyValidationInput!) { createPennyValidation(input: $input) {
  __typename
  ... on CreatePennyValidationSuccess { transaction { id } }
  ... on UserError { code message }
  ... on OutcomeUnknown { message safeToRetry retryUntil }
} }\`);
const source = createFetch({ url, token });
const press = () => payDraft(source, Verify, { id: '7f3a', createdAt: new Date().toISOString(), input: ${JSON.stringify(input)} }, memoryIntents(), ({ status }) => console.log(status));
const both = await Promise.all([press(), press()]);
console.log(new Set([...both, await press()].map(({ result }) => result.transaction.id)).size);
process.exit();`,
  );
  expect(output).toBe('done\ndone\ndone\n1\n');
});

it('a form alone is the same payment after a reload, until its end is known', async () => {
  const { centralizing, clabeInstrumentIds } = gateway.sandbox;
  const ids = {
    sourceInstrumentId: centralizing.instrumentId,
    destinationInstrumentId: clabeInstrumentIds[0],
  };
  const output = await runBeside(
    'form',
    `import { memoryIntents, typed } from '@pasarela/client';
import { createFetch } from '@pasarela/client/fetch';
import { token, url } from './app.js';
import { openForm } from './form.js';
const Verify = typed(\`mutation Verify($input: CreatePennyValidationInput!) { createPennyValidation(input: $input) {
  __typename
  ... on CreatePennyValidationSuccess { transaction { id } }
  ... on UserError { code message }
  ... on OutcomeUnknown { message safeToRetry retryUntil }
} }\`);
const kept = new Map();
const storage = {
  // As AsyncStorage of a phone answers.
  getItem: async (name) => kept.get(name) ?? null,
  setItem: async (name, value) => void kept.set(name, value),
  removeItem: async (name) => void kept.delete(name),
};
const source = createFetch({ url, token });
const store = memoryIntents();
const open = () => openForm(storage, 'ana', '7f3a', { sourceInstrumentId: '${ids.sourceInstrumentId}' }, store);
await (await open()).keep({ destinationInstrumentId: '${ids.destinationInstrumentId}' });
const { fields } = await open();
const paid = [];
const see = ({ result }) => void paid.push(result.transaction.id);
const gone = ({ message }) => console.log(message);
const press = async (form) => {
  const outcome = await form.press(source, Verify, {});
  see(outcome);
  await outcome.acknowledge();
};
// The first screen has gone before anybody saw the end, and the app ends as the second one drops its fields. The third is another tab.
see(await (await open()).press(source, Verify, {}));
const { removeItem } = storage;
storage.removeItem = async () => { throw new Error('ended'); };
await press(await open()).catch(gone);
storage.removeItem = removeItem;
await press(await open());
console.log(new Set(paid).size, (await open()).fields.externalReference === fields.externalReference);
const createPennyValidation = { __typename: 'OutcomeUnknown', message: 'Nobody knows.', safeToRetry: false, retryUntil: null };
const unclear = { query: async () => ({ data: { createPennyValidation } }) };
const { status } = await (await openForm(storage, 'ana', '8c21', {}, store)).press(unclear, Verify, {});
console.log(status, kept.has('form 8c21 of ana'));
process.exit();`,
  );
  expect(output).toBe('ended\n1 false\nunknown true\n');
});

it('a form whose payment has ended elsewhere sends nothing more, and its address opens a new one', async () => {
  const output = await runBeside(
    'form-ended',
    `import { forgetSettled, memoryIntents } from '@pasarela/client';
import { openForm } from './form.js';
import { finishAll } from './unsettled.js';
const document = 'mutation ($input: In!) { createMoneyOut(input: $input) { __typename } }';
const kept = new Map();
const storage = {
  getItem: (name) => kept.get(name) ?? null,
  setItem: (name, value) => void kept.set(name, value),
  removeItem: (name) => void kept.delete(name),
};
const keys = new Set();
let isUp = false;
const source = {
  async query(text, { input }) {
    keys.add(input.idempotencyKey);
    if (!isUp) throw new Error('The answer is lost.');
    return { data: { createMoneyOut: { __typename: 'PaidSuccess' } } };
  },
};
const memory = memoryIntents();
let isFull = false;
let beforeSaving = async () => {};
const store = {
  load: () => memory.load(),
  async save(...given) {
    if (isFull) throw new Error('The disk is full.');
    await beforeSaving();
    return memory.save(...given);
  },
};
const open = (id) => openForm(storage, 'ana', id, {}, store);
const press = async (form) => {
  const outcome = await form.press(source, document, { patienceMs: 0 });
  await outcome?.acknowledge();
  return outcome?.status;
};
const isNew = async (id, { fields }) => (await open(id)).fields.externalReference !== fields.externalReference;
const ids = ['told', 'dropped'];
const tabs = [];
for (const id of ids) {
  const [form, other] = [await open(id), await open(id)];
  console.log(id, await Promise.all([form, form].map(press)), await isNew(id, form), (await open(id)).pressed);
  await other.keep({ amount: '9.00' });
  tabs.push(form, other);
}
isUp = true;
await finishAll(source, { createMoneyOut: document }, store, () => {});
console.log(await press(tabs[0]), await press(tabs[1]), await isNew('told', tabs[0]));
await forgetSettled(store);
console.log(await press(tabs[2]), await press(tabs[3]), await isNew('dropped', tabs[2]), keys.size);
const full = await open('full');
isFull = true;
console.log(await press(full).catch(({ message }) => message), await isNew('full', full));
isFull = false;
console.log(await press(full), await press(full), keys.size);
// Another tab hears that the form was pressed before its payment is kept.
const heard = await open('heard');
let isOther;
beforeSaving = async () => {
  isOther ??= await isNew('heard', heard);
};
console.log(await press(heard), isOther, keys.size);
// As an earlier version has kept one that it has paid.
kept.set('form old of ana', '{"externalReference":"1"}');
console.log(await isNew('old', { fields: { externalReference: '1' } }), (await open('old')).pressed, keys.size);`,
  );
  expect(output).toBe(
    [
      "told [ 'unknown', 'unknown' ] false true",
      "dropped [ 'unknown', 'unknown' ] false true",
      'undefined undefined true',
      'undefined undefined true 2',
      'The disk is full. false',
      'done undefined 3',
      'done false 4',
      'true false 4',
      '',
    ].join('\n'),
  );
});

it('a list that was there before is shown once, and the feed goes on behind it', async () => {
  for (const concept of ['first', 'second', 'third']) await gateway.credit(concept);
  const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
  const other = { clabe: accounts.at(-1).clabe, amount: '1.00', concept: 'to another account' };
  await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', other);
  await gateway.allDelivered();
  // Two on a page, so that these take more than one.
  const code = await readFile(join(work, 'get-state.js'), 'utf8');
  await writeFile(join(work, 'get-state-in-pages.js'), code.replace('last: 100', 'last: 2'));
  const client = new Client('get-state-in-pages', work);
  try {
    await client.start();
    await expect.poll(() => client.kept()).toEqual(['gap']);
    await gateway.credit('later');
    await expect.poll(() => client.kept()).toEqual(['gap', 'later']);
    // The list itself, as the gap brings it: oldest first.
    const [, gap = ''] = (await readFile(join(work, 'get-state-in-pages', 'credits.jsonl'), 'utf8')).split(
      '\n',
    );
    const shown = JSON.parse(gap).events.map(
      ({ paymentConcept }: { paymentConcept: string }) => paymentConcept,
    );
    expect(shown.slice(-4)).toEqual(['first', 'second', 'third', 'to another account']);
    expect(new Set(shown).size).toBe(shown.length);
  } finally {
    await client.kill();
  }
});

it('a feed of one account has its credits, and none of another', async () => {
  const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
  const [one, other] = [accounts[0].clabe, accounts.at(-1).clabe];
  const output = await runBeside(
    'one-account',
    `import { memoryStore } from '@pasarela/client';
import { creditsTo } from './one-account.js';
const send = (clabe, concept) => fetch('${gateway.sandbox.url}/sandbox/spei-credits', {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ clabe, amount: '1.00', concept }),
});
const feed = creditsTo('${one}', memoryStore());
const live = new Promise((resolve) => feed.onChange(() => feed.status === 'live' && resolve()));
live.then(async () => { for (const clabe of ['${one}', '${other}', '${one}']) await send(clabe, clabe); });
for await (const { paymentConcept } of feed) {
  console.log(paymentConcept);
  if ((globalThis.count = (globalThis.count ?? 0) + 1) === 2) process.exit();
}`,
  );
  expect(output).toBe(`${one}\n${one}\n`);
});

it('a payment by SPEI is followed to its end, and each of one person is one, however often it is asked for', async () => {
  const { centralizingInstrumentId, cardInstrumentIds } = await control(gateway.sandbox, 'GET', '/sandbox');
  await writeFile(
    join(work, 'pay-spei-runner.js'),
    `import { newInput, payOut } from './pay-spei.js';
const input = newInput(${JSON.stringify(centralizingInstrumentId)}, ${JSON.stringify(cardInstrumentIds[0])}, '12.50');
const show = ({ status }, { status: state, trackingId }) => console.log(status, state, typeof trackingId);
const both = await Promise.all([payOut(input, show), payOut(input, show)]);
console.log(new Set(both.map(({ result }) => result.transaction.id)).size, 'moved');
process.exit();`,
  );
  const screen = new Client('pay-spei-runner', work);
  const tells = (text: string) => expect.poll(async () => (await screen.kept()).join()).toContain(text);
  const clock = (method: string, change: object) =>
    control(gateway.sandbox, method, '/sandbox/clock', change);
  // Its clock runs 60 times faster, and would settle the payment before the app asks for its first state.
  await clock('PATCH', { speed: 0 });
  try {
    await screen.start();
    await tells('done INITIALIZED string');
    await clock('POST', { advanceSeconds: 60 });
    await tells('done LIQUIDATED string');
    await tells('1 moved');
  } finally {
    await screen.kill();
    await clock('PATCH', { speed: 60 });
  }
});

it('a list of the page of Apollo Client grows, and shows a balance that is read again, as long as it was', async () => {
  const code = await readFile(join(work, 'accounts.js'), 'utf8');
  await writeFile(join(work, 'accounts-in-pages.js'), code.replace('first: 20', 'first: 1'));
  const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
  const { clabe } = accounts[0];
  const output = await runBeside(
    'accounts',
    `import { createElement } from 'react';
import { act, create } from 'react-test-renderer';
import { AccountList, readAgain } from './accounts-in-pages.js';
import { createFetch } from '@pasarela/client/fetch';
import { token, url } from './app.js';
const query = '{ account(by: { clabe: "${clabe}" }) { id availableBalance { amount } } }';
const read = async () => (await createFetch({ url, token }).query(query, {})).data.account;
const before = await read();
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
let tree;
await act(async () => { tree = create(createElement(AccountList)); });
globalThis.IS_REACT_ACT_ENVIRONMENT = false;
const items = () => tree.root.findAllByType('li').map(({ props }) => props.children);
const holds = async (is) => { while (!is()) await new Promise((again) => setTimeout(again, 20)); };
for (let count = 1; !items().includes(before.availableBalance.amount) || count < 3; count += 1) {
  await holds(() => items().length === count);
  tree.root.findByType('button').props.onClick();
  await holds(() => items().length === count + 1);
}
const { length } = items();
const credit = { clabe: '${clabe}', amount: '7.77' };
const headers = { 'content-type': 'application/json' };
await fetch('${gateway.sandbox.url}/sandbox/spei-credits', { method: 'POST', headers, body: JSON.stringify(credit) });
let now = before;
while (now.availableBalance.amount === before.availableBalance.amount) now = await read();
await readAgain([before.id]);
await holds(() => items().includes(now.availableBalance.amount));
console.log(items().length === length && length > 2);
process.exit();`,
  );
  expect(output).toMatch(/true\n$/);
});

const LATEST_CREDIT =
  '{ events(types: [MONEY_IN], last: 1) { nodes { ... on MoneyInEvent { transactionId decision amount { amount } } } } }';

it('a refund that two people press for, each in an own browser, is made once, and told to both', async () => {
  await gateway.credit('to be returned');
  const output = await runBeside(
    'refund',
    `import { memoryIntents } from '@pasarela/client';
import { createFetch } from '@pasarela/client/fetch';
import { token, url } from './app.js';
import { mayRefund, refund } from './refund.js';
const source = createFetch({ url, token });
const { data } = await source.query('${LATEST_CREDIT}', {});
const [credit] = data.events.nodes;
const nameless = { ...credit, transactionId: null };
while (!(await mayRefund(source, credit)));
for (const other of [nameless, { ...credit, decision: 'REJECTED' }]) console.log(await mayRefund(source, other));
const show = ({ status }) => console.log(status);
const press = (from = source) => refund(from, memoryIntents(), credit, show);
const refusing = { query: async () => ({ data: { payment: null }, errors: [{ message: 'Not now.' }] }) };
await refund(source, memoryIntents(), nameless, show).catch(({ message }) => console.log(message));
await press(refusing).catch(({ message }) => console.log(message));
const both = await Promise.all([press(), press()]);
console.log(new Set(both.map(({ result }) => result.refund.id)).size, 'returned', await mayRefund(source, credit));
process.exit();`,
  );
  expect(output).toBe(
    'false\nfalse\nThe event names no credit. Nothing was sent.\nNot now.\ndone\ndone\n1 returned false\n',
  );
});

it('a refund goes under the last key of its credit that the gateway knows, or under the next where that one was refused', async () => {
  const output = await runBeside(
    'refund-keys',
    `import { memoryIntents } from '@pasarela/client';
import { refund } from './refund.js';
const credit = { transactionId: 'credit', amount: { amount: '10.00' } };
const knowing = (...states) => ({
  async query(_document, { key, input }) {
    if (input === undefined) {
      const state = states[Number(key.slice('refund-credit-'.length) || 1) - 1];
      return { data: { payment: state === undefined ? null : { state } } };
    }
    console.log(input.idempotencyKey);
    return { data: { refundTransaction: { __typename: 'RefundTransactionSuccess', refund: { id: 'one' } } } };
  },
});
const press = (...states) => refund(knowing(...states), memoryIntents(), credit, () => {});
await press();
await press('UNKNOWN');
await press('REFUSED');
// The gateway forgets a key after 30 days, the first one first.
await press(undefined, 'UNKNOWN');
await press(undefined, 'REFUSED');
await press(...Array(10).fill('REFUSED')).catch(({ message }) => console.log(message));
process.exit();`,
  );
  expect(output.split('\n')).toEqual([
    ...['refund-credit', 'refund-credit', 'refund-credit-2', 'refund-credit-2', 'refund-credit-3'],
    ...['The service has refused 10 refunds of this credit. Nothing was sent.', ''],
  ]);
});

it('the button of Vue tells how a refund ended, and counts it as seen once the person says so', async () => {
  await gateway.credit('to be returned');
  const [, component = ''] = /^```vue\n(.*?)^```$/ms.exec(page) ?? [];
  await writeFile(join(work, 'RefundButton.vue'), component);
  const output = await runBeside(
    'vue-refund',
    `import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { memoryIntents } from '@pasarela/client';
import { createFetch } from '@pasarela/client/fetch';
import { h } from 'vue';
import { compileScript, parse } from 'vue/compiler-sfc';
import { mount } from '../show-in-vue.js';
import { token, url } from './app.js';
import { mayRefund } from './refund.js';
const { descriptor } = parse(readFileSync(new URL('RefundButton.vue', import.meta.url), 'utf8'));
const compiled = new URL('RefundButton.js', import.meta.url);
writeFileSync(compiled, compileScript(descriptor, { id: 'refund', inlineTemplate: true }).content);
const { default: RefundButton } = await import(compiled);
const [source, store] = [createFetch({ url, token }), memoryIntents()];
const { data } = await source.query('${LATEST_CREDIT}', {});
const [credit] = data.events.nodes;
while (!(await mayRefund(source, credit)));
const root = mount({ render: () => h(RefundButton, { source, store, credit }) });
const all = (node) => [node, ...node.children.flatMap(all)];
const texts = () => all(root).map(({ text }) => text.trim()).filter((text) => text !== '').join();
const press = async (text) => {
  let button;
  while (!(button = all(root).find((node) => node.name === 'button' && node.text === text))) await setTimeout(10);
  button.props.onClick();
};
const isSeen = async () => (await store.load())[0].acknowledgedAt !== undefined;
await press('Refund');
while (!texts().includes('OK')) await setTimeout(10);
console.log(texts(), await isSeen());
await press('OK');
while (!(await isSeen())) await setTimeout(10);
while (texts() !== '') await setTimeout(10);
process.exit();`,
  );
  expect(output).toBe('On its way back.,OK false\n');
});

it.each([
  ['unit-test', 2],
  ['gateway-test', 2],
  ['app-test', 5],
  ['refund-test', 2],
])('the tests of the page pass: %s', async (name, count) => {
  const output = await run(process.execPath, [join(work, `${name}.js`)], work);
  expect(output).toContain(`pass ${count}\n`);
});

it('what was not shown goes to the mutation that it was sent with, although both have one input', async () => {
  const output = await runBeside(
    'unsettled',
    `import { memoryIntents, pay } from '@pasarela/client';
import { finishAll } from './unsettled.js';
const document = (field) => \`mutation ($input: In!) { \${field}(input: $input) { __typename } }\`;
const mutations = Object.fromEntries(['createMoneyOut', 'createInternalTransaction'].map((field) => [field, document(field)]));
const keys = {};
let isUp = false;
const source = {
  async query(text, { input }) {
    (keys[text] ??= new Set()).add(input.idempotencyKey);
    if (!isUp) throw new Error('The network is gone.');
    return { data: { paid: { __typename: 'PaidSuccess' } } };
  },
};
const store = memoryIntents();
for (const mutation of Object.values(mutations)) await pay(source, mutation, { amount: '1.00' }, { store, patienceMs: 0 });
isUp = true;
await finishAll(source, mutations, store, ({ status, intent }) => console.log(intent.mutation, status));
console.log(Object.values(keys).map(({ size }) => size).join());`,
  );
  expect(output).toBe('createMoneyOut done\ncreateInternalTransaction done\n1,1\n');
});

it('a start shows first the refusals that nobody has seen, and sends nothing that is a day old or was never paid', async () => {
  const output = await runBeside(
    'start',
    `import { memoryIntents, pay } from '@pasarela/client';
import { finishAll } from './unsettled.js';
const document = 'mutation ($input: In!) { createMoneyOut(input: $input) { __typename } }';
const answers = { refused: { __typename: 'ValidationError', code: 'INVALID_INPUT', message: 'No.' }, done: { __typename: 'PaidSuccess' } };
const sent = [];
let isUp = true;
const source = {
  async query(text, { input }) {
    sent.push(input?.description);
    if (!isUp) throw new Error('The network is gone.');
    return { data: { paid: answers[input.description] ?? answers.done } };
  },
};
const store = memoryIntents();
const press = (description) => pay(source, document, { description }, { store, patienceMs: 0 });
for (const description of ['refused', 'done']) await press(description);
isUp = false;
for (const description of ['lost', 'a day old', 'ready']) await press(description);
const hours = (count) => new Date(Date.now() - count * 3_600_000).toISOString();
const changes = { refused: { createdAt: hours(2) }, 'a day old': { createdAt: hours(24) }, ready: { unanswered: 0 } };
const before = await store.load();
await store.save(before.map((intent) => ({ ...intent, ...changes[intent.input.description] })), before);
[isUp, sent.length] = [true, 0];
const show = ({ status, intent }) => console.log(status, intent.input.description);
const names = (intents) => intents.map(({ input }) => input.description).toSorted().join();
console.log(names(await finishAll(source, { createMoneyOut: document }, store, show)), '|', sent.join());
const left = new AbortController();
left.abort();
await finishAll(source, { createMoneyOut: document }, store, show, left.signal).catch(() => {});
console.log(sent.join());`,
  );
  expect(output).toBe('refused refused\ndone done\ndone lost\na day old,ready | lost\nlost\n');
});

it('a sign-out leaves the payment that is under way: its key stays, and nothing more of it is sent', async () => {
  const output = await runBeside(
    'sign-out',
    `import { pay, unsettled } from '@pasarela/client';
import { signIn } from './sign-out.js';
import { token } from './app.js';
const kept = new Map();
const storage = {
  getItem: async (key) => kept.get(key) ?? null,
  setItem: async (key, value) => void kept.set(key, value),
  removeItem: async (key) => void kept.delete(key),
};
const { payments, signal, signOut } = signIn('ana', token, storage, () => {});
let sent = 0;
let isSent;
const first = new Promise((resolve) => { isSent = resolve; });
const source = {
  async query() {
    sent += 1;
    isSent();
    throw new Error('The network is gone.');
  },
};
const document = 'mutation ($input: In!) { createMoneyOut(input: $input) { __typename } }';
const paying = pay(source, document, { amount: '1.00' }, { store: payments, signal });
await first;
await signOut();
const before = sent;
console.log((await paying).status, (await unsettled(payments)).length, sent === before);
process.exit();`,
  );
  expect(output).toBe('unknown 1 true\n');
});

/** SQLite's number of `synchronous = EXTRA`: the folder is synced too once the journal is gone from it. */
const EXTRA = 3;

it('two processes of a backend on one store pay an input once, and the one that is late writes nothing', async () => {
  const output = await runBeside(
    'backend-intents',
    `import { pay, typed, unsettled } from '@pasarela/client';
import { DatabaseSync } from 'node:sqlite';
import { sqliteIntents } from './backend-intents.js';
const path = new URL('intents.sqlite', import.meta.url).pathname;
const { prepare } = DatabaseSync.prototype;
let database;
DatabaseSync.prototype.prepare = function (sql) {
  database = this;
  return prepare.call(this, sql);
};
const [one, two] = [sqliteIntents(path, 'backend'), sqliteIntents(path, 'backend')];
const before = two.load();
console.log(one.save([{ idempotencyKey: 'of one' }], before), two.save([], before), two.load().length, sqliteIntents(path, 'another').load().length, database.prepare('PRAGMA synchronous').get().synchronous);
one.save([], one.load());
const document = typed('mutation ($input: In!) { createMoneyOut(input: $input) { __typename } }');
const keys = new Set();
let made = 0;
const newKey = () => 'part-of-a-credit-' + ++made;
const source = {
  query: async (text, { input }) => {
    keys.add(input.idempotencyKey);
    throw new Error('The network is gone.');
  },
};
const outcomes = await Promise.all([one, two].map((store) => pay(source, document, { amount: '1.00' }, { store, newKey, patienceMs: 0 })));
console.log(outcomes.map(({ status }) => status).join(), keys.size, (await unsettled(two)).length);`,
  );
  expect(output).toBe(`true false 1 0 ${EXTRA}\nunknown,unknown 1 1\n`);
});

it('parts of a credit are each paid once and come to no more than it, beside no refund, and one that was lost is not called refused', async () => {
  await gateway.credit('given back in parts');
  const { centralizingInstrumentId, cardInstrumentIds } = await control(gateway.sandbox, 'GET', '/sandbox');
  const code = await readFile(join(work, 'part.js'), 'utf8');
  await writeFile(
    join(work, 'impatient-part.js'),
    code.replace('sharedKey: true', 'sharedKey: true, patienceMs: 0'),
  );
  const output = await runBeside(
    'part',
    `import { memoryIntents } from '@pasarela/client';
import { createFetch } from '@pasarela/client/fetch';
import { token, url } from './app.js';
import { sqliteIntents } from './backend-intents.js';
import { claimRefund, givePart, noteCredit, openParts } from './part.js';
import { givePart as tryPart } from './impatient-part.js';
const path = new URL('parts.sqlite', import.meta.url).pathname;
const [database, other] = [openParts(path), openParts(path)];
if (database.prepare('PRAGMA synchronous').get().synchronous !== ${EXTRA}) console.log('a loss of power takes back a part');
const store = sqliteIntents(path, 'backend');
const gateway = createFetch({ url, token });
const credits = '{ events(types: [MONEY_IN], last: 1) { nodes { ... on MoneyInEvent { transactionId decision amount { amount } } } } }';
const [credit] = (await gateway.query(credits, {})).data.events.nodes;
const state = async () => (await gateway.query('query ($id: ID!) { transaction(id: $id) { status } }', { id: credit.transactionId })).data.transaction.status;
while ((await state()) !== 'LIQUIDATED');
const all = Math.round(credit.amount.amount * 100);
const part = (id, centavos) => ({ id, credit: credit.transactionId, centavos, source: '${centralizingInstrumentId}', destination: '${cardInstrumentIds[0]}' });
const one = part('3e0a6c1e-0d3c-4d0a-9f65-3f6b8f0f8d01', Math.floor(all / 2));
const two = part('3e0a6c1e-0d3c-4d0a-9f65-3f6b8f0f8d02', 1);
const told = [];
const show = (what) => void told.push(what);
const refused = (giving) => giving.catch(({ message }) => console.log(message.split('.')[0]));
const sent = async () => (await gateway.query('{ payments(first: 100) { nodes { id } } }', {})).data.payments.nodes.length;
const before = await sent();
await refused(givePart(gateway, database, store, one, show));
noteCredit(database, credit);
await Promise.all([database, other].map((each) => givePart(gateway, each, store, one, show)));
console.log(told.filter((what) => what === 'done').length, told.at(-1), (await sent()) - before);
await refused(givePart(gateway, database, store, { ...one, centavos: 2 }, show));
await refused(givePart(gateway, database, store, part('3e0a6c1e-0d3c-4d0a-9f65-3f6b8f0f8d03', all - one.centavos + 1), show));
console.log(claimRefund(database, credit.transactionId));
// The answer to the second and the store are lost, and the next calls are refused.
const loses = { query: async (text, variables) => {
  const result = await gateway.query(text, variables);
  if (text.includes('mutation')) throw new Error('The answer is lost.');
  return result;
} };
const refuses = { query: (text, variables) => text.includes('mutation')
  ? Promise.resolve({ errors: [{ message: 'No record.', extensions: { code: 'STORE_UNAVAILABLE' } }] })
  : gateway.query(text, variables) };
for (const source of [loses, refuses]) await tryPart(source, database, memoryIntents(), two, (state) => console.log(state));
await givePart(gateway, database, memoryIntents(), two, show);
console.log(told.at(-1), (await sent()) - before);
process.exit();`,
  );
  expect(output).toBe(
    [
      'The credit is not accepted, is refunded, or has less left',
      '2 LIQUIDATED 1',
      'The part with this id is another one',
      'The credit is not accepted, is refunded, or has less left',
      'false',
      'open',
      'open',
      'LIQUIDATED 2',
      '',
    ].join('\n'),
  );
});

it('a person who signs out leaves no list and no connection, and the key of what is unclear, which another person is not shown', async () => {
  const [account] = gateway.sandbox.clabeInstrumentIds;
  const source = gateway.sandbox.centralizing.instrumentId;
  let isOver = false;
  const over = runBeside(
    'sign-out',
    `import { pay, typed } from '@pasarela/client';
import { token } from './app.js';
import { verify } from './pay.js';
import { listPayments } from './payments.js';
import { signIn } from './sign-out.js';
const kept = new Map();
const storage = {
  getItem: (key) => kept.get(key) ?? null,
  setItem: (key, value) => void kept.set(key, value),
  removeItem: (key) => void kept.delete(key),
};
let seen;
const first = new Promise((resolve) => { seen = resolve; });
const one = signIn('one', token, storage, seen);
const { paymentConcept } = await first;
console.log(paymentConcept.replace(/ .*/, ''), [...kept.keys()].join());
const document = typed('mutation ($input: In!) { createMoneyOut(input: $input) { __typename } }');
const answering = (answer) => ({ query: answer });
const options = { store: one.payments, patienceMs: 0 };
const done = await pay(answering(async () => ({ data: { paid: { __typename: 'PaidSuccess' } } })), document, { amount: '1.00' }, options);
await done.acknowledge();
await pay(answering(() => Promise.reject(new Error('gone'))), document, { amount: '2.00' }, options);
await verify({ sourceInstrumentId: '${source}', destinationInstrumentId: '${account}' }, () => {});
const list = async ({ socket, payments }) => {
  const { toFinish, sent } = await listPayments(socket, payments);
  console.log(toFinish.map(({ input }) => input.amount).join(), sent.nodes[0].state, sent.nodes[0].transaction.id.length);
};
await list(one);
await one.signOut();
console.log([...kept.keys()].join(), JSON.parse(kept.get('payments of one')).map(({ input }) => input.amount).join());
const two = signIn('two', token, storage, () => {});
await list(two);
await two.signOut();
// Nothing is left that keeps the program from ending.`,
  ).finally(() => {
    isOver = true;
  });
  while (!isOver) await gateway.credit('credit');
  expect(await over).toBe('credit credits of one\n2.00 DONE 36\npayments of one 2.00\n DONE 36\n');
});
