import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GraphQLError } from 'graphql';
import { createSchema, createYoga } from 'graphql-yoga';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { Bodies } from '../../src/common/bodies.ts';
import { createJsonPost } from '../../src/transport/http-fast-path.ts';

/** How often Yoga's own transport was handed a request. */
let byYoga = 0;

const yoga = createYoga<object>({
  schema: createSchema({
    typeDefs: 'type Query { word: String }',
    resolvers: { Query: { word: () => 'sí' } },
  }),
  logging: false,
});
const counted = new Proxy(yoga, {
  apply(target, self, args) {
    byYoga += 1;
    return Reflect.apply(target, self, args);
  },
});
const bodies = new Bodies({ total: 10_000, strangers: 0, perKey: 10_000 });
const serve = createJsonPost(counted, {
  isOn: true,
  maxBodyBytes: 1_000,
  readBody: (request) => bodies.read(request, { key: 'one', isKnown: true, maxBytes: 1_000 }),
  turn: () => undefined,
  allowsOrigin: () => false,
  stringify: JSON.stringify,
  documentOf: ({ query }) => query,
  findKept: () => undefined,
  mask: (error) => new GraphQLError(String(error)),
});
const server = createServer((request, response) => void serve(request, response, {}));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
afterAll(() => server.close());
beforeEach(() => {
  byYoga = 0;
});

const QUERY = JSON.stringify({ query: '{ word }' });
const JSON_CONTENT = { 'content-type': 'application/json' };

it('an everyday POST takes the fast path', async () => {
  const response = await fetch(url, { method: 'POST', headers: JSON_CONTENT, body: QUERY });
  expect(await response.json()).toEqual({ data: { word: 'sí' } });
  expect(byYoga).toBe(0);
});

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
