import { getNamedType, isObjectType } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';

/** A list of the graph, asked for several times in one document, each time with other arguments. */
interface List {
  readonly name: string;
  document(pages: readonly string[]): string;
}

const PAGE = 'edges { cursor } pageInfo { startCursor endCursor }';
const aliased = (field: string, pages: readonly string[], filter: string): string =>
  pages.map((args, index) => `a${index}: ${field}(${args}${filter}) { ${PAGE} }`).join(' ');
const ofClient = (field: string, filter = ''): List => ({
  name: `client.${field}${filter}`,
  document: (pages) => `{ of: client { ${aliased(field, pages, filter)} } }`,
});
const ofCustomer = (id: string, field: string, filter = ''): List => ({
  name: `customer(${id}).${field}${filter}`,
  document: (pages) => `{ of: customer(id: "${id}") { ${aliased(field, pages, filter)} } }`,
});
const ofRoot = (field: string, filter = ''): List => ({
  name: `${field}${filter}`,
  document: (pages) => `{ ${aliased(field, pages, filter)} }`,
});
const PAGE_ARGUMENTS: ReadonlySet<string> = new Set(['first', 'after', 'last', 'before']);
/** As many pages of events as one operation of a narrowed caller may ask for. */
const AT_ONCE = 4;

let sandbox: Sandbox;
let gateway: RunningGateway;
let customers: readonly string[];

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({ sandbox, config: { ...PATIENT, service: serviceFor(sandbox) } });
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
  ofRoot('events'),
];

/** Asks for pages as a caller; gives the cursors of each, or the code of its error. */
async function cursorsOf(
  list: List,
  pages: readonly string[],
  token: string,
): Promise<readonly (readonly string[])[]> {
  const answers: (readonly string[])[] = [];
  for (let index = 0; index < pages.length; index += AT_ONCE) {
    const some = pages.slice(index, index + AT_ONCE);
    const { data, errors = [] } = await gateway.query(
      list.document(some),
      {},
      { authorization: `Bearer ${token}` },
    );
    for (const at of some.keys()) {
      const page = (data?.of ?? data)?.[`a${at}`];
      const error = errors.find(({ path }) => path === undefined || path.includes(`a${at}`));
      if (error !== undefined) {
        answers.push([String(error.extensions['code'])]);
        continue;
      }
      const { edges, pageInfo } = page;
      const cursors: readonly string[] = edges.map(({ cursor }: { readonly cursor: string }) => cursor);
      expect([pageInfo.startCursor, pageInfo.endCursor]).toEqual([
        cursors[0] ?? null,
        cursors.at(-1) ?? null,
      ]);
      answers.push(cursors);
    }
  }
  return answers;
}

/** The gateway's own, of the event log and of its record: their cursors are no offsets, and each field has tests of its own. */
const OWN_CONNECTIONS: ReadonlySet<string> = new Set(['EventConnection', 'PaymentConnection']);

/** The lists of the service that the graph shows, such as `Client.accounts`, each with the arguments that are not of paging. */
const listsOfSchema = () =>
  Object.values(buildSchema().getTypeMap())
    .filter(isObjectType)
    .flatMap((owner) => Object.values(owner.getFields()).map((field) => ({ owner: owner.name, field })))
    .filter(({ field }) => {
      const { name } = getNamedType(field.type);
      return name.endsWith('Connection') && !OWN_CONNECTIONS.has(name);
    })
    .map(({ owner, field: { name, args } }) => ({
      // A field of the root has no parent: its list bears the field's name alone.
      list: owner === 'Query' ? name : `${owner}.${name}`,
      args: args.map((arg) => arg.name).filter((arg) => !PAGE_ARGUMENTS.has(arg)),
    }));

it('each list of the service is tried here, and with each argument by which it is selected or ordered', () => {
  // An id of a parent stands in brackets: customer(id).accounts is of Customer.accounts.
  const tried = listsFor(['id']).map(({ name }) => name.replace(/\(.*?\)/, ''));
  const found = listsOfSchema();
  for (const { list, args } of found) {
    expect(tried).toContainEqual(expect.stringMatching(new RegExp(`^${list}$`, 'i')));
    for (const argument of args) {
      const selected = new RegExp(`^${list} .*\\b${argument}:`, 'i');
      expect(tried, `${list} takes ${argument}`).toContainEqual(expect.stringMatching(selected));
    }
  }
  expect(found).toContainEqual({ list: 'Client.instruments', args: ['customerId'] });
  expect(found.map(({ list }) => list)).toContain('Customer.accounts');
});

it('a cursor is taken by its own list alone, forward and back, by all callers of the list alike', async () => {
  const [one = '', other = ''] = customers;
  const callers = [
    { token: await callerToken(), lists: listsFor(customers) },
    { token: await callerToken({ customer_id: one }), lists: listsFor([one]) },
    { token: await callerToken({ customer_id: other }), lists: listsFor([other]) },
  ];
  const given: { readonly cursor: string; readonly of: string }[] = [];
  const refused: string[] = [];
  for (const [index, { token, lists }] of callers.entries()) {
    for (const list of lists) {
      const [[cursor] = []] = await cursorsOf(list, ['first: 2'], token);
      const of = `${index} ${list.name}`;
      if (cursor === 'BAD_USER_INPUT') refused.push(of);
      else if (cursor !== undefined) given.push({ cursor, of });
    }
  }
  // A list that a narrowed caller is refused without an argument stands here, such as '1 client.statements'.
  expect(refused).toEqual([]);
  expect(given.length).toBeGreaterThan(12);
  for (const [index, { token, lists }] of callers.entries()) {
    for (const list of lists.filter(({ name }) => !refused.includes(`${index} ${name}`))) {
      for (const ask of [
        (cursor: string) => `first: 2, after: "${cursor}"`,
        (cursor: string) => `last: 2, before: "${cursor}"`,
      ]) {
        const answers = await cursorsOf(
          list,
          given.map(({ cursor }) => ask(cursor)),
          token,
        );
        for (const [at, { of }] of given.entries()) {
          const what = `${of} in ${index} ${list.name}`;
          if (of === `${index} ${list.name}`) expect(answers[at], what).not.toContain('CURSOR_INVALID');
          else expect(answers[at], what).toEqual(['CURSOR_INVALID']);
        }
      }
    }
  }
});

it.each(['bzE6MA', 'bzE6MQ', 'x'])('the cursor %s, which names no list, is refused', async (cursor) => {
  const token = await callerToken();
  for (const list of listsFor(customers)) {
    expect(await cursorsOf(list, [`first: 2, after: "${cursor}"`], token)).toEqual([['CURSOR_INVALID']]);
  }
});

it('what cannot be a cursor at all is refused before anything is read', async () => {
  const token = await callerToken();
  for (const list of listsFor(customers)) {
    for (const cursor of ['', 'x'.repeat(1_025)]) {
      const { data, errors } = await gateway.query(
        list.document([`first: 2, after: "${cursor}"`]),
        {},
        { authorization: `Bearer ${token}` },
      );
      expect(data).toBeUndefined();
      expect(errors?.[0]?.extensions['code']).not.toBe('INTERNAL');
    }
  }
});
