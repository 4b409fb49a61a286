import { parse } from 'graphql';
import { expect, it } from 'vitest';
import { namesOf } from '../../packages/client/src/documents.ts';
import { finish, type Intent, memoryIntents, pay, unsettled } from '../../packages/client/src/index.ts';
import { done, INPUT, lost, type MUTATION, scripted } from './scripted.ts';

/** Under which name the store keeps a mutation, whatever its document looks like. */

const FIELD = 'createMoneyOut';
const text = (before: string, field = FIELD) =>
  `mutation Pay($input: PayInput!) {${before} ${field}(input: $input) { __typename } }`;
/** Documents of which version 0.2.0 has found another field, or none. */
const MISREAD: Readonly<Record<string, string>> = {
  'a comment': text('\n  # to a CLABE\n'),
  'comments around `__typename`': text(' # to\n __typename # a CLABE, {or not}\n'),
  'a comment that names the mutation': text('\n  # this mutation pays\n'),
  'a comment with a bracket before it': `# the mutation { that }\n${text('')}`,
};
const of = (document: string | object) => document as unknown as typeof MUTATION;

/** A store that version 0.2.0 has left a payment in whose answer it did not see. */
function leftBy(mutation: string, more: Partial<Intent> = {}) {
  const intent: Intent = {
    idempotencyKey: 'the first key',
    mutation,
    input: INPUT,
    createdAt: new Date().toISOString(),
    unanswered: 1,
    ...more,
  };
  const store = memoryIntents();
  void store.save([intent], []);
  return { store, intent };
}

it.each(Object.keys(MISREAD))('a text with %s has the name of its parsed form', (which) => {
  const document = MISREAD[which] ?? '';
  expect(namesOf(document)[0]).toBe(FIELD);
  expect(namesOf(parse(document))[0]).toBe(FIELD);
  expect(namesOf({ params: { text: document } })[0]).toBe(FIELD);
});

it('a comment in a string is none', () => {
  const document =
    'mutation Pay($input: PayInput!, $note: String = "#1") { createMoneyOut(input: $input) { id } }';
  expect(namesOf(document)[0]).toBe(FIELD);
});

it('two mutations with a comment before their fields are two payments, also with one input', async () => {
  const { source, keys } = scripted(done);
  const store = memoryIntents();
  for (const field of [FIELD, 'createInternalTransaction']) {
    const { intent } = await pay(source, of(text('\n# a comment\n', field)), INPUT, { store });
    expect(intent.mutation).toBe(field);
  }
  expect(new Set(keys).size).toBe(2);
});

it('a payment is the same one once a later version of the app has taken the comment out, or parses the text', async () => {
  const { source, keys } = scripted(lost, lost, done);
  const store = memoryIntents();
  const commented = text('\n# a comment\n');
  for (const document of [commented, text(''), parse(commented)])
    await pay(source, of(document), INPUT, { store, patienceMs: 0 });
  expect(keys).toHaveLength(3);
  expect(new Set(keys).size).toBe(1);
});

it.each([...Object.entries(MISREAD), ['no comment any more', text('')]])(
  'a payment that 0.2.0 has left keeps its key with %s',
  async (_, document) => {
    for (const name of namesOf(document)) {
      const { store, intent } = leftBy(name);
      const { source, keys } = scripted(done);
      const outcome = await pay(source, of(document), INPUT, { store });
      expect(outcome.status).toBe('done');
      expect(keys).toEqual([intent.idempotencyKey]);
      // A tab with the old version finds it still.
      expect(await unsettled(store)).toMatchObject([
        { mutation: name, idempotencyKey: intent.idempotencyKey },
      ]);
      await outcome.acknowledge();
      expect(await unsettled(store)).toEqual([]);
    }
  },
);

it('what 0.2.0 has kept without a field is finished by the document of the app', async () => {
  const { store, intent } = leftBy('mutation');
  const { source, keys } = scripted(done);
  const none = undefined as unknown as typeof MUTATION;
  await expect(finish(source, none, intent, { store })).rejects.toThrow('Nothing was sent.');
  expect(keys).toEqual([]);
  expect((await finish(source, of(text('')), intent, { store })).status).toBe('done');
  expect(keys).toEqual([intent.idempotencyKey]);
});

it('a derived key that 0.2.0 has paid with is no other payment’s', async () => {
  const { store, intent } = leftBy('mutation', {
    result: { __typename: 'PaySuccess' },
    acknowledgedAt: new Date().toISOString(),
  });
  const { source, keys } = scripted(done);
  const newKey = () => intent.idempotencyKey;
  expect((await pay(source, of(text('')), INPUT, { store, newKey })).status).toBe('done');
  expect(keys).toEqual([intent.idempotencyKey]);
});

it.each([
  [
    'in a fragment',
    'mutation Pay($input: PayInput!) { ... on Mutation { createMoneyOut(input: $input) { id } } }',
  ],
  ['in a fragment of a name', 'mutation Pay { ...Paid } fragment Paid on Mutation { createMoneyOut { id } }'],
  ['nowhere', 'query Pay { eventCursor }'],
  ['left out by relay-compiler', { params: { text: null } }],
])('a document whose field is %s is refused before anything is sent', async (_, document) => {
  const { source, keys } = scripted(done);
  const store = memoryIntents();
  await expect(pay(source, of(document), INPUT, { store })).rejects.toThrow('Nothing was sent.');
  expect(keys).toEqual([]);
  expect(await store.load()).toEqual([]);
});
