import { type GraphQLResolveInfo, getNamedType, graphql, isObjectType } from 'graphql';
import { describe, expect, it } from 'vitest';
import { countPage, readsOfItem } from '../../src/resolvers/answer-size.ts';
import { TooManyItemsError } from '../../src/resolvers/errors.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { resolveFor } from '../helpers/field-reads.ts';

const schema = buildSchema();

/** What the field `client { accounts }` is told of its selection. */
async function infoOf(document: string): Promise<GraphQLResolveInfo> {
  let told: GraphQLResolveInfo | undefined;
  const accounts = (_args: object, _context: object, info: GraphQLResolveInfo) => {
    told = info;
    return null;
  };
  const own = buildSchema();
  const [client, query] = [own.getType('Client'), own.getQueryType()];
  if (!isObjectType(client) || query == null) throw new Error('both are there');
  for (const field of [client.getFields()['accounts'], query.getFields()['client']]) delete field?.resolve;
  await graphql({ schema: own, source: document, rootValue: { client: { accounts } } });
  if (told === undefined) throw new Error('it was asked for');
  return told;
}

const accounts = (item: string) => `{ client { accounts { ${item} } } }`;
const CREDITS = 'moneyIn { nodes { ... on MoneyInEvent { payerBank { name } transaction { status } } } }';

describe('for an item of a page', () => {
  it.each([
    [
      'nothing is read alone that it has, or that a list brings',
      'nodes { id bank { id } availableBalance { amount } owner { __typename } }',
      0,
    ],
    ['an instrument may be', 'nodes { instrument { id } }', 1],
    ['the same counts in an edge', 'edges { node { instrument { id } } }', 1],
    ['what is read for the items of a page within it counts with these', `nodes { ${CREDITS} }`, 0],
    [
      'what stands in fragments counts as often as they do',
      'nodes { ...B ...B } ... on AccountConnection { nodes { ...B } }',
      3,
    ],
    [
      'an object that is read beneath another counts too',
      'nodes { instrument { account { instrument { id } } } }',
      2,
    ],
    ['nothing is read where no item is selected', 'totalCount pageInfo { endCursor }', 0],
  ])('%s', async (_what, item, reads) => {
    const fragment = item.includes('...B') ? 'fragment B on Account { instrument { id } }' : '';
    expect(readsOfItem(await infoOf(`${accounts(item)} ${fragment}`))).toBe(reads);
  });
});

it('a page is refused once its items, and what may be read for them alone, are more than the answer may hold', async () => {
  let items = 0;
  const budget = {
    maxItems: 9,
    countItems(count: number) {
      items += count;
      return items;
    },
  };
  const info = await infoOf(accounts('nodes { instrument { id } }'));
  const page = { nodes: [1, 2, 3] };
  expect(countPage(page, info, budget)).toBe(page);
  countPage({ edges: page.nodes }, await infoOf(accounts('totalCount')), budget);
  expect(items).toBe(9);
  expect(() => countPage({ nodes: [1] }, info, budget)).toThrow(new TooManyItemsError(9));
});

it('each field of the graph that leads to a connection counts the page that it has found', async () => {
  const counted: string[] = [];
  const uncounted: string[] = [];
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      if (!getNamedType(field.type).name.endsWith('Connection')) continue;
      const { reads, failure } = await resolveFor(field, () => true);
      const name = `${type.name}.${field.name}`;
      if (reads.has('budget.countItems')) counted.push(name);
      else if (failure === undefined) uncounted.push(name);
    }
  }
  expect(uncounted).toEqual([]);
  expect(counted).toContain('Customer.accounts');
});
