import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';

/** A list of the graph, asked for with some arguments. */
interface List {
  readonly name: string;
  document(args: string): string;
}

const PAGE = 'edges { cursor } pageInfo { startCursor endCursor }';
const ofClient = (field: string, filter = ''): List => ({
  name: `client.${field}${filter}`,
  document: (args) => `{ client { list: ${field}(${args}${filter}) { ${PAGE} } } }`,
});
const ofCustomer = (id: string, field: string): List => ({
  name: `customer(${id}).${field}`,
  document: (args) => `{ customer(id: "${id}") { list: ${field}(${args}) { ${PAGE} } } }`,
});
const EVENTS: List = {
  name: 'events',
  document: (args) => `{ list: events(${args}) { ${PAGE} } }`,
};

let sandbox: Sandbox;
let gateway: RunningGateway;
let customers: readonly string[];

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({ sandbox, config: { service: serviceFor(sandbox) } });
  const { customerIds, accounts } = await control(sandbox, 'GET', '/sandbox');
  customers = customerIds;
  for (const ownerId of customerIds) {
    const { clabe } = accounts.find((account: { readonly ownerId: string }) => account.ownerId === ownerId);
    await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '1.00' });
  }
});

afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

const listsFor = (ids: readonly string[]): readonly List[] => [
  ...['accounts', 'customers', 'instruments', 'webhooks'].map((field) => ofClient(field)),
  ...ids.flatMap((id) => [
    ofClient('instruments', ` customerId: "${id}"`),
    ofCustomer(id, 'accounts'),
    ofCustomer(id, 'instruments'),
  ]),
  EVENTS,
];

/** Asks for a page as a caller; gives its cursors, or the codes of its errors. */
async function cursorsOf(list: List, args: string, token: string): Promise<readonly string[]> {
  const { data, errors } = await gateway.query(list.document(args), {}, { authorization: `Bearer ${token}` });
  if (errors !== undefined) return errors.map(({ extensions }) => String(extensions['code']));
  const { list: page } = data.client ?? data.customer ?? data;
  const { edges, pageInfo } = page;
  const cursors: readonly string[] = edges.map(({ cursor }: { readonly cursor: string }) => cursor);
  expect([pageInfo.startCursor, pageInfo.endCursor]).toEqual([cursors[0] ?? null, cursors.at(-1) ?? null]);
  return cursors;
}

it('a cursor is taken by its own list alone, forward and back, by all callers of the list alike', async () => {
  const [one = '', other = ''] = customers;
  const callers = [
    { token: await callerToken(), lists: listsFor(customers) },
    { token: await callerToken({ customer_id: one }), lists: listsFor([one]) },
    { token: await callerToken({ customer_id: other }), lists: listsFor([other]) },
  ];
  const given: { readonly cursor: string; readonly of: string }[] = [];
  for (const [index, { token, lists }] of callers.entries()) {
    for (const list of lists) {
      const [cursor] = await cursorsOf(list, 'first: 2', token);
      if (cursor !== undefined) given.push({ cursor, of: `${index} ${list.name}` });
    }
  }
  expect(given.length).toBeGreaterThan(12);
  for (const [index, { token, lists }] of callers.entries()) {
    for (const list of lists) {
      for (const { cursor, of } of given) {
        const pages = [`first: 2, after: "${cursor}"`, `last: 2, before: "${cursor}"`];
        for (const args of pages) {
          const answer = await cursorsOf(list, args, token);
          const what = `${of} in ${index} ${list.name} (${args})`;
          if (of === `${index} ${list.name}`) expect(answer, what).not.toContain('CURSOR_INVALID');
          else expect(answer, what).toEqual(['CURSOR_INVALID']);
        }
      }
    }
  }
});

it.each(['bzE6MA', 'bzE6MQ', 'x'])('the cursor %s, which names no list, is refused', async (cursor) => {
  const token = await callerToken();
  for (const list of listsFor(customers)) {
    expect(await cursorsOf(list, `first: 2, after: "${cursor}"`, token)).toEqual(['CURSOR_INVALID']);
  }
});

it('what cannot be a cursor at all is refused before anything is read', async () => {
  const token = await callerToken();
  for (const list of listsFor(customers)) {
    for (const cursor of ['', 'x'.repeat(1_025)]) {
      expect(await cursorsOf(list, `first: 2, after: "${cursor}"`, token)).not.toContain('INTERNAL');
      expect(await cursorsOf(list, `first: 2, after: "${cursor}"`, token)).toHaveLength(1);
    }
  }
});
