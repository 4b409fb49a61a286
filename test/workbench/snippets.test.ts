import { expect, it } from 'vitest';
import { FORMATS } from '../../workbench/src/code/formats.ts';
import { aloneIn } from '../../workbench/src/code/snippet.ts';

const KINDS = {
  query:
    'query Banks($first: Int!, $after: Cursor) { banks(first: $first, after: $after) { nodes { ...Name } } }',
  mutation: 'mutation Pay($input: PayInput!) { pay(input: $input) { ...Name } }',
  subscription: 'subscription Watch($after: Cursor) { moneyIn(after: $after) { cursor } }',
};
type KindName = keyof typeof KINDS;

const NAMES: Readonly<Record<KindName, string>> = { query: 'Banks', mutation: 'Pay', subscription: 'Watch' };

const codeOf = (format: string, kind: KindName, more: object = {}): string => {
  const found = FORMATS.find(({ name }) => name === format);
  if (found === undefined) throw new Error(`There is no format ${format}.`);
  const graphUrl = 'http://127.0.0.1:4000/graphql';
  return found.write({
    query: KINDS[kind],
    variables: {},
    operationName: NAMES[kind],
    kind,
    graphUrl,
    ...more,
  });
};

it.each([
  ['curl', 'query', ["curl -s '", '"operationName":"Banks"'], ['event-stream']],
  ['curl', 'subscription', ["curl -sN '", 'accept: text/event-stream'], []],
  ['fetch', 'mutation', ['await fetch(', "method: 'POST'"], ['graphql-sse']],
  [
    'fetch',
    'subscription',
    ["from 'graphql-sse'", 'retryAttempts: 0', 'client.iterate({ query, variables })'],
    ['await fetch('],
  ],
  ['Apollo', 'query', ['useQuery(BANKS, {', 'function Banks()'], ['useMutation']],
  ['Apollo', 'mutation', ['const [run, ', 'useMutation(PAY)', '// run({ variables:'], ['useQuery']],
  ['Apollo', 'subscription', ['useSubscription(WATCH, {'], ['useQuery']],
  ['urql', 'query', ['const [{ data, error, fetching }] = useQuery({', 'query: BANKS'], ['useMutation']],
  ['urql', 'mutation', ['const [{ data, error, fetching }, run] = useMutation(PAY)'], ['useQuery']],
  ['urql', 'subscription', ['useSubscription({', 'query: WATCH'], ['useQuery']],
  ['Relay', 'query', ['query BanksQuery(', 'useLazyLoadQuery<BanksQuery>', '// Banks.tsx'], ['useMutation']],
  ['Relay', 'mutation', ['mutation PayMutation(', 'useMutation<PayMutation>', 'function usePay()'], []],
  ['Relay', 'subscription', ['subscription WatchSubscription(', 'useSubscription<WatchSubscription>'], []],
  ['Kotlin', 'query', ['apollo.query(BanksQuery(', '.execute()'], ['toFlow', 'WebSocket']],
  ['Kotlin', 'mutation', ['apollo.mutation(PayMutation('], ['toFlow']],
  ['Kotlin', 'subscription', ['apollo.subscription(WatchSubscription(', '.toFlow().collect'], ['.execute()']],
  // The gateway takes `graphql-transport-ws` alone, and a socket's token in its first message.
  ['Kotlin', 'subscription', ['.serverUrl("ws://', 'GraphQLWsProtocol { mapOf("authorization" to'], []],
] as const)('%s writes a %s as its library wants it', (format, kind, holds, lacks) => {
  const code = codeOf(format, kind);
  for (const part of holds) expect(code).toContain(part);
  for (const part of lacks) expect(code).not.toContain(part);
});

it.each(['query', 'mutation', 'subscription'] as const)(
  'every format names a %s that has no name',
  (kind) => {
    const query = `${kind === 'query' ? '' : kind} { one }`;
    const name = `My${kind.slice(0, 1).toUpperCase()}${kind.slice(1)}`;
    for (const format of ['Apollo', 'urql']) {
      const code = codeOf(format, kind, { query, operationName: undefined });
      expect(code).toContain(`function ${name}()`);
    }
    // Relay's compiler wants the name in the document too.
    expect(codeOf('Relay', kind, { query, operationName: undefined })).toContain(`${kind} ${name} { one }`);
    expect(codeOf('curl', kind, { query, operationName: undefined })).not.toContain('operationName');
  },
);

it('what fetch sends is the operation with its variables, whatever signs are in them', async () => {
  const query = `query Odd { find(text: "\`\${1}\` \\\\ 'x'") }`;
  const variables = { text: `a \`b\` \${c} \\ "d"`, none: null };
  const sent: { readonly address: string; readonly body: unknown }[] = [];
  const fetch = async (address: string, { body }: { readonly body: string }) => {
    sent.push({ address, body: JSON.parse(body) });
    return Response.json({ data: {} });
  };
  const code = codeOf('fetch', 'query', { query, variables });
  const run = new Function('fetch', 'token', `return (async () => { ${code} })()`);
  await run(fetch, 'a.b.c');
  const [{ address, body } = { address: '', body: {} }] = sent;
  expect(address).toBe('http://127.0.0.1:4000/graphql');
  expect(body).toMatchObject({ variables });
  expect((body as { query: string }).query.trim()).toBe(query);
});

it('Kotlin says which variables may be absent, and builds inputs by their types', () => {
  expect(codeOf('Kotlin', 'query', { variables: { first: 5, after: 'x$y' } })).toContain(
    'BanksQuery(first = 5, after = Optional.present("x\\$y"))',
  );
  expect(codeOf('Kotlin', 'query', { variables: { first: 5, after: null } })).toContain(
    'after = Optional.absent()',
  );
  expect(codeOf('Kotlin', 'mutation', { variables: { input: { ids: ['a'], to: { b: true } } } })).toContain(
    'PayMutation(input = PayInput(ids = listOf("a"), to = Input(b = true)))',
  );
});

it('of a document with several operations one is written, with the fragments that it uses', () => {
  const document = `${KINDS.query} ${KINDS.mutation} fragment Name on Bank { name } fragment Other on Bank { id }`;
  const alone = aloneIn(document, 'Pay');
  expect(alone).toMatch(/mutation Pay/);
  expect(alone).toMatch(/fragment Name/);
  expect(alone).not.toMatch(/query Banks|fragment Other/);
  // One is left as it was written.
  expect(aloneIn(`# mine\n${KINDS.query}`, 'Banks')).toBe(`# mine\n${KINDS.query}`);
});
