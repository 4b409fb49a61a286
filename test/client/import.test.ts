import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { folder, run } from '../helpers/packages.ts';

const { exports } = JSON.parse(await readFile(folder('packages/client/package.json'), 'utf8')) as {
  exports: Readonly<Record<string, string | { readonly default: string }>>;
};
/** Every module that an app imports, as its source. */
const ENTRIES = Object.entries(exports).flatMap(([name, entry]) =>
  typeof entry === 'string'
    ? []
    : [[name, entry.default.replace('./dist/', 'packages/client/src/').replace(/\.js$/, '.ts')] as const],
);
/** What browsers have, and some server or phone has not. */
const MISSING = [
  'window',
  'self',
  'document',
  'navigator',
  'location',
  'localStorage',
  'sessionStorage',
  'indexedDB',
  'addEventListener',
  'removeEventListener',
  'WebSocket',
  'EventSource',
  'fetch',
  'crypto',
];

const WITHOUT = `for (const name of ${JSON.stringify(MISSING)}) {
  delete globalThis[name];
  if (name in globalThis) throw new Error(name + ' is still there');
}`;

/** Runs a program where all of that is missing. @returns the JSON that it prints */
async function runWithout(program: string): Promise<unknown> {
  const script = `${WITHOUT}\n${program}`;
  const output = await run(process.execPath, ['--input-type=module', '--eval', script], folder('.'));
  return JSON.parse(output);
}
const source = (file: string) => JSON.stringify(folder(file));

it.each(ENTRIES)('importing %s needs nothing of a browser, and starts nothing', async (_, file) => {
  const seen = await runWithout(`
const before = process.getActiveResourcesInfo().toSorted();
await import(${source(file)});
const after = process.getActiveResourcesInfo().toSorted();
console.log(JSON.stringify({ before, after }));`);
  const { before, after } = seen as { readonly before: unknown; readonly after: unknown };
  expect(after).toEqual(before);
});

/** What a file of the package loads that is none of its files. */
async function libraries(file: string): Promise<string[]> {
  const text = await readFile(folder(file), 'utf8');
  const loaded = [...text.matchAll(/^(?:import|export)(?! type) .*?from '([^']+)';$|^import '([^']+)';$/gms)];
  const found = loaded.map(([, from = '', alone]) => alone ?? from);
  const own = found.filter((name) => name.startsWith('.'));
  const beneath = await Promise.all(own.map((name) => libraries(`packages/client/src/${name.slice(2)}`)));
  return [...new Set([...found.filter((name) => !own.includes(name)), ...beneath.flat()])];
}

it('the feed, payments and fetch need no library, and each binding none but its own', async () => {
  const needed = await Promise.all(
    ENTRIES.map(async ([name, file]) => [name, await libraries(file)] as const),
  );
  expect(Object.fromEntries(needed.filter(([, names]) => names.length > 0))).toEqual({
    './apollo': ['@apollo/client', '@apollo/client/errors', 'graphql'],
    './graphql-sse': ['graphql-sse'],
    './graphql-ws': ['graphql-ws'],
    './react': ['react'],
    './relay': ['relay-runtime'],
    './urql': ['@urql/core', 'wonka', 'graphql'],
  });
});

it('covers every entry', () => expect(ENTRIES.length).toBeGreaterThan(10));

it('a feed follows, and keeps no process from ending, where nothing tells of the network or the page', async () => {
  const seen = await runWithout(`
const { follow, typed, watch } = await import(${source('packages/client/src/index.ts')});
const { createFakeGateway } = await import(${source('packages/client/src/testing.ts')});
const gateway = createFakeGateway();
const events = typed('subscription S($after: Cursor) { events(after: $after) { cursor } }');
const seen = [];
const feed = follow(gateway.connect(), events);
feed.onChange(() => feed.status === 'live' && seen.length === 0 && gateway.deliver({ id: 'one' }));
for await (const { id } of feed) {
  seen.push(id);
  break;
}
// Nobody closes this one. It holds no process that has nothing else to do: the program ends by itself.
watch(gateway.connect(), typed('subscription { cepStatus { id } }'), {});
console.log(JSON.stringify(seen));`);
  expect(seen).toEqual(['one']);
});

it('a socket is made where there is no WebSocket, and says so where it is used', async () => {
  const seen = await runWithout(`
const { follow, typed } = await import(${source('packages/client/src/index.ts')});
const { createSocket } = await import(${source('packages/client/src/graphql-ws.ts')});
const socket = createSocket({ url: 'http://127.0.0.1:9/graphql', token: () => 'none' });
const told = ({ name, code, message }) => ({ name, code, message });
const asked = await socket.query('{ __typename }', {}).catch(told);
const feed = follow(socket, typed('subscription { events { id } }'));
const followed = await feed[Symbol.asyncIterator]().next().catch(told);
socket.check();
socket.close();
console.log(JSON.stringify([asked, followed]));`);
  const refused = {
    name: 'Refused',
    code: 'BAD_USER_INPUT',
    message: 'No WebSocket: pass `webSocketImpl`, or use createFetch.',
  };
  expect(seen).toEqual([refused, refused]);
});
