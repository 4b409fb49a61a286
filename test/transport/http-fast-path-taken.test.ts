import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { execute, GraphQLError } from 'graphql';
import { createSchema, createYoga } from 'graphql-yoga';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { Bodies } from '../../src/common/bodies.ts';
import { createFastPath } from '../../src/transport/http-fast-path.ts';
import { until } from '../helpers/until.ts';

/** How often Yoga's own transport was handed a request. */
let byYoga = 0;
/** How often anything was executed. */
let executed = 0;
/** With what Yoga's own transport was handed the last one. */
let handed: { releaseBody?(): void } | undefined;
/** What each request waits for. */
let turn: (() => Promise<void>) | undefined;

const schema = createSchema({
  typeDefs: 'type Query { word: String }',
  resolvers: {
    Query: {
      word: () => {
        executed += 1;
        return 'sí';
      },
    },
  },
});
const yoga = createYoga<object>({ schema, logging: false });
const counted = new Proxy(yoga, {
  apply(target, self, args) {
    byYoga += 1;
    [, , handed] = args;
    return Reflect.apply(target, self, args);
  },
});
const bodies = new Bodies({ total: 10_000, strangers: 0, perKey: 10_000 });
const serve = createFastPath(counted, {
  schema,
  execute,
  isOn: true,
  maxBodyBytes: 1_000,
  readBody: (request) => bodies.read(request, { key: 'one', isKnown: true, maxBytes: 1_000 }),
  turn: () => turn?.(),
  allowsOrigin: () => false,
  stringify: JSON.stringify,
  documentOf: ({ query }) => query,
  findKept: () => undefined,
  mask: (error) => new GraphQLError(String(error)),
  requestIdOf: () => 'r1',
  tellRefused: () => undefined,
});
const server = createServer((request, response) => void serve(request, response, {}));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
afterAll(() => server.close());
beforeEach(() => {
  byYoga = 0;
  executed = 0;
  turn = undefined;
});

const QUERY = JSON.stringify({ query: '{ word }' });
const JSON_CONTENT = { 'content-type': 'application/json' };

it('an everyday POST takes the fast path', async () => {
  const response = await fetch(url, { method: 'POST', headers: JSON_CONTENT, body: QUERY });
  expect(await response.json()).toEqual({ data: { word: 'sí' } });
  expect(byYoga).toBe(0);
});

it.each([
  'application/json, text/plain, */*',
  'application/graphql-response+json, application/json;q=0.9',
  'application/graphql-response+json; charset=utf-8, application/json; charset=utf-8',
])(
  'a POST that accepts “%s”, as clients do, takes the fast path unless it names a charset',
  async (accept) => {
    const headers = { ...JSON_CONTENT, accept };
    const response = await fetch(url, { method: 'POST', headers, body: QUERY });
    expect(await response.json()).toEqual({ data: { word: 'sí' } });
    expect(byYoga).toBe(accept.includes('charset') ? 1 : 0);
  },
);

it.each([
  ['a GET', { method: 'GET' }, `?query=${encodeURIComponent('{ word }')}`],
  [
    'a stream',
    { method: 'POST', headers: { ...JSON_CONTENT, accept: 'text/event-stream' }, body: QUERY },
    '',
  ],
  ['a long body', { method: 'POST', headers: JSON_CONTENT, body: QUERY + ' '.repeat(1_000) }, ''],
] as const)('%s is left to Yoga', async (_what, init, search) => {
  const response = await fetch(`${url}${search}`, init);
  expect(await response.text()).toContain('sí');
  expect(byYoga).toBe(1);
});

it.each([
  ['an everyday POST', { method: 'POST', headers: JSON_CONTENT, body: QUERY }, ''],
  ['a GET', { method: 'GET' }, `?query=${encodeURIComponent('{ word }')}`],
])('%s whose client has left while it waited for its turn is not executed', async (_what, init, query) => {
  const waiting = Promise.withResolvers<void>();
  let isWaiting = false;
  turn = () => {
    isWaiting = true;
    return waiting.promise;
  };
  const left = new AbortController();
  const closed = new Promise((resolve) =>
    server.once('request', (_request, response) => response.once('close', resolve)),
  );
  const asked = fetch(`${url}${query}`, { ...init, signal: left.signal }).catch(() => 'left');
  await until(() => isWaiting);
  left.abort();
  expect(await asked).toBe('left');
  await closed;
  waiting.resolve();
  await new Promise(setImmediate);
  expect([executed, byYoga]).toEqual([0, 0]);
});

it('a body that is handed on is let go of as soon as a stream begins, and not only once its answer has ended', async () => {
  for (const _time of ['first', 'second']) {
    const before = bodies.held;
    const headers = { ...JSON_CONTENT, accept: 'text/event-stream' };
    const answer = await fetch(url, { method: 'POST', headers, body: QUERY });
    expect(await answer.text()).toContain('sí');
    expect(bodies.held).toBeGreaterThan(before);
    // As the plugin of streams does.
    handed?.releaseBody?.();
    expect(bodies.held).toBe(before);
  }
});
