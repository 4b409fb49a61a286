import { type GraphQLField, type GraphQLUnionType, getNamedType, isInputObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { SCOPES } from '../../src/auth/caller.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { KEYLESS_CHANGES } from '../helpers/keyless-changes.ts';
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

const schema = buildSchema();
const changes = Object.values(schema.getMutationType()?.getFields() ?? {});
const namesOf = (fields: readonly { readonly name: string }[]) => fields.map(({ name }) => name).toSorted();

/** The changes whose union has no `OutcomeUnknown`. */
const clear = changes.filter(({ type }) => {
  const members = schema.getPossibleTypes(getNamedType(type) as GraphQLUnionType);
  return members.every(({ name }) => name !== 'OutcomeUnknown');
});

const takesKey = ({ args }: GraphQLField<unknown, unknown>): boolean =>
  args.some(({ type }) => {
    const input = getNamedType(type);
    return isInputObjectType(input) && 'idempotencyKey' in input.getFields();
  });
const keyless = changes.filter((change) => !takesKey(change));

/** The changes that a text names. */
const changesIn = (text: string): readonly string[] =>
  [...new Set(named(text))].filter((word) => changes.some(({ name }) => name === word)).toSorted();

/** What stands beneath a heading of the second level. */
const part = async (page: string, heading: string): Promise<string> =>
  (await readPage(page)).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';

it('docs/graph.md and PROTOCOL.md name each change whose union has no OutcomeUnknown', async () => {
  for (const page of ['docs/graph.md', 'PROTOCOL.md']) {
    const sentence = /[^.]+ have no `OutcomeUnknown`/.exec(await readPage(page))?.[0] ?? '';
    expect(changesIn(sentence), page).toEqual(namesOf(clear));
  }
});

it('PROTOCOL.md says of each change without a key what a second call does', async () => {
  expect(changesIn(await part('PROTOCOL.md', 'Changes without a key'))).toEqual(namesOf(keyless));
});

it('docs/authentication.md names each change that is sent again after any 401', async () => {
  const sentence = /sent again after any 401:[^.]+/.exec(await readPage('docs/authentication.md'))?.[0] ?? '';
  expect(changesIn(sentence)).toEqual(namesOf(KEYLESS_CHANGES.filter(({ isRenewed }) => isRenewed)));
});

it('ARCHITECTURE.md names each change that is no OutcomeUnknown where it follows one', async () => {
  const told = changesIn(await part('ARCHITECTURE.md', 'Follow a change that moves no money'));
  expect(told).toEqual(expect.arrayContaining(namesOf(clear)));
});
