import { parse, validate } from 'graphql';
import { createSchema, createYoga, type Plugin } from 'graphql-yoga';
import { expect, it } from 'vitest';
import { DocumentCache } from '../../../src/graphql/documents/document-cache.ts';
import { preparedDocument, preparedOperation } from '../../../src/graphql/documents/prepared-operation.ts';
import { useKeptDocuments } from '../../../src/graphql/plugins/kept-documents.ts';
import { startGateway } from '../../helpers/gateway.ts';

interface Caller {
  readonly isIdentified: boolean;
  readonly identity: { readonly isIdentified: boolean };
}

const schema = createSchema<Caller>({
  typeDefs: 'type Query { word(text: String): String } type Subscription { word: String }',
  resolvers: { Query: { word: () => 'w' } },
});

const KEPT_BYTES = 100_000;

/** A server that keeps documents, and what it parsed and validated so far. */
function counting() {
  const made: string[] = [];
  const counts: Plugin = {
    onParse: ({ setParseFn }) =>
      setParseFn((source: string, options: object) => {
        made.push('parsed');
        return parse(source, options);
      }),
    onValidate: ({ setValidationFn }) =>
      setValidationFn((...args: Parameters<typeof validate>) => {
        made.push('validated');
        return validate(...args);
      }),
  };
  const yoga = createYoga<Caller>({
    schema,
    plugins: [useKeptDocuments(new DocumentCache(KEPT_BYTES)), counts],
    parserAndValidationCache: false,
    logging: false,
  });
  /** What is made for one request. */
  const ask = async (query: string, isIdentified: boolean): Promise<string[]> => {
    made.length = 0;
    const url = `http://x/graphql?${new URLSearchParams({ query })}`;
    await (await yoga.fetch(url, {}, { isIdentified, identity: { isIdentified } })).json();
    return [...made];
  };
  return ask;
}

const ANEW = ['parsed', 'validated'];

it('keeps what an identified caller has run, for everybody', async () => {
  const ask = counting();
  expect(await ask('{ word }', false)).toEqual(ANEW);
  expect(await ask('{ word }', false)).toEqual(ANEW);
  expect(await ask('{ word }', true)).toEqual(ANEW);
  expect(await ask('{ word }', true)).toEqual([]);
  expect(await ask('{ word }', false)).toEqual([]);
});

it('keeps nothing that is invalid, whoever sends it', async () => {
  const ask = counting();
  for (let time = 0; time < 3; time += 1) expect(await ask('{ nothing }', true)).toEqual(ANEW);
});

it('keeps what identified callers use, however much strangers send, and whatever of it they ask again', async () => {
  const ask = counting();
  await ask('{ word }', true);
  for (let index = 0; index < 200; index += 1)
    await ask(`{ a${index}: word(text: "${'x'.repeat(1_000)}") }`, false);
  expect(await ask('{ word }', true)).toEqual([]);
});

it('keeps no more than may be kept, and what was used last', async () => {
  const ask = counting();
  const document = (index: number) => `{ a${index}: word(text: "${'x'.repeat(200)}") }`;
  for (let index = 0; index < 20; index += 1) await ask(document(index), true);
  expect(await ask(document(19), true)).toEqual([]);
  expect(await ask(document(0), true)).toEqual(ANEW);
  expect(await ask(`{ word(text: "${'x'.repeat(KEPT_BYTES)}") }`, true)).toEqual(ANEW);
  expect(await ask(document(19), true)).toEqual([]);
});

it('counts what was derived of a document since it was kept', () => {
  const cache = new DocumentCache(KEPT_BYTES);
  const [one, other] = ['{ word }', '{ a: word }'].map((text) => preparedDocument(schema, parse(text)));
  if (one === undefined || other === undefined) throw new Error('there are two');
  for (const document of [one, other]) cache.keep(document);
  other.addPlan(KEPT_BYTES - other.bytes);
  cache.keep(other);
  expect([cache.find(one.text), cache.find(other.text)]).toEqual([undefined, other.node]);
});

it('derives each thing once', () => {
  const document = parse('query A { word } query B { word } fragment F on Query { word }');
  const prepared = preparedDocument(schema, document);
  expect(preparedDocument(schema, document)).toBe(prepared);
  expect([...prepared.fragments.keys()]).toEqual(['F']);
  const operation = preparedOperation({ schema, document, operationName: 'B' });
  let made = 0;
  const derive = () => {
    made += 1;
    return undefined;
  };
  operation?.derived(derive);
  operation?.derived(derive);
  expect([made, operation?.name, operation?.type]).toEqual([1, 'B', 'query']);
});

it('knows an operation by its text and name, whether it is kept or not', () => {
  const id = (text: string, operationName?: string) =>
    preparedOperation({ schema, document: parse(text), operationName })?.id;
  expect(id('{ word }')).toBe(id('{ word }'));
  expect(new Set([id('{ word }'), id('{word}'), id('query A { word }')]).size).toBe(3);
  const two = 'query A { word } query B { word }';
  expect(id(two, 'A')).not.toBe(id(two, 'B'));
  expect([id(two), id(two, 'C')]).toEqual([undefined, undefined]);
});

it.each([
  ['an unknown field', '{ client { nonsense } }', 'GRAPHQL_VALIDATION_FAILED'],
  [
    'too much',
    `{ ${Array.from({ length: 60 }, (_, i) => `a${i}: client { id }`).join(' ')} }`,
    'TOO_COMPLEX',
  ],
])('refuses %s in the same words, however often it is sent', async (_what, query, code) => {
  await using gateway = await startGateway();
  const words = new Set<string>();
  for (let time = 0; time < 3; time += 1) {
    const { errors = [], status } = await gateway.query(query);
    words.add(
      JSON.stringify([status, ...errors.map(({ message, extensions }) => [message, extensions?.['code']])]),
    );
  }
  expect(words.size).toBe(1);
  expect([...words][0]).toContain(`"${code}"`);
});
