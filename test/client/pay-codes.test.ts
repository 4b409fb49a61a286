import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { memoryIntents, pay } from '../../packages/client/src/index.ts';
import { readPage } from '../docs/pages.ts';
import { folder } from '../helpers/packages.ts';
import { done, INPUT, MUTATION, refusedCall, scripted } from './scripted.ts';

/** The codes of docs/graph.md, and those of GraphQL itself for a document that may not run. */
const page = await readPage('docs/graph.md');
const LISTED = [
  ...[...(page.split('\n## Error codes\n')[1] ?? '').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(
    ([, code = '']) => code,
  ),
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
];
const MOVED_NOTHING = LISTED.filter((code) => code !== 'INTERNAL');

it.each(MOVED_NOTHING)('a call that is answered with %s has moved nothing', async (code) => {
  const { source } = scripted(refusedCall(code));
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents(), patienceMs: 0 });
  expect(outcome).toMatchObject({ status: 'refused', code });
});

it.each([
  'INTERNAL',
  // Of the errors that the gateway leaves out, which may be the payment's.
  'MORE_ERRORS',
  // Of a proxy that speaks GraphQL, and may have forwarded the call.
  'GATEWAY_TIMEOUT',
  'INTERNAL_SERVER_ERROR',
  'NOT_FOUND',
  // The client gives up for it, and it is on no list.
  'STORE_REMOVED',
])('a call that is answered with %s may have moved money: the next press has the same key', async (code) => {
  const first = scripted(refusedCall(code));
  const store = memoryIntents();
  const outcome = await pay(first.source, MUTATION, INPUT, { store, patienceMs: 0 });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true });
  const second = scripted(done);
  expect(await pay(second.source, MUTATION, INPUT, { store })).toMatchObject({ status: 'done' });
  expect(second.keys).toEqual([first.keys[0]]);
});

it.each(['conformance/clients/python.py', 'conformance/clients/go.go'])(
  '%s has the same list',
  async (client) => {
    const text = await readFile(folder(client), 'utf8');
    const [, list = ''] = /^(?:var movedNothing = set\(`|MOVED_NOTHING = \{)([^`}]*)[`}]/m.exec(text) ?? [];
    expect(list.match(/[A-Z_]+/g)?.sort()).toEqual(MOVED_NOTHING.toSorted());
  },
);
