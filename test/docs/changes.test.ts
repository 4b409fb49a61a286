import { type GraphQLUnionType, getNamedType } from 'graphql';
import { expect, it } from 'vitest';
import { SCOPES } from '../../src/auth/caller.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { readPage } from './pages.ts';

/** The words in backticks of a text. */
const named = (text: string): readonly string[] =>
  [...text.matchAll(/`([\w:]+)`/g)].map(([, word = '']) => word);

it('docs/authentication.md has a row for each scope', async () => {
  const page = await readPage('docs/authentication.md');
  const table = page.split('| scope | grants |')[1]?.split('\n\n')[0] ?? '';
  const rows = [...table.matchAll(/^\| (`.+?) \|/gm)].flatMap(([, cell = '']) => named(cell));
  // Parts of money:move are written by their ends.
  const scopes = rows.map((word) => (word.startsWith(':') ? `money:move${word}` : word));
  expect(scopes.toSorted()).toEqual([...SCOPES].toSorted());
});

it('docs/graph.md names each change whose union has no OutcomeUnknown', async () => {
  const schema = buildSchema();
  const changes = Object.values(schema.getMutationType()?.getFields() ?? {});
  const without = changes.filter(({ type }) => {
    const members = schema.getPossibleTypes(getNamedType(type) as GraphQLUnionType);
    return members.every(({ name }) => name !== 'OutcomeUnknown');
  });
  const sentence = /[^.]+ have no `OutcomeUnknown`/.exec(await readPage('docs/graph.md'))?.[0] ?? '';
  const told = named(sentence).filter((word) => word !== 'OutcomeUnknown');
  expect(told.toSorted()).toEqual(without.map(({ name }) => name).toSorted());
});
