import { Environment, RecordSource, Store } from 'relay-runtime';
import { expect, it } from 'vitest';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import type { Details, Source } from '../../packages/client/src/source.ts';

/** Resolves with the name of the operation that is sent for a text. */
async function nameSent(text: string): Promise<string | undefined> {
  let sent: Details | undefined;
  const source: Source = {
    query(_document, _variables, _signal, details) {
      sent = details;
      return Promise.resolve({ data: null });
    },
    subscribe: () => () => {},
  };
  const store = new Store(new RecordSource());
  await relaySource(new Environment({ network: createNetwork(source), store })).query(text, {});
  return sent?.operationName || undefined;
}

it('through Relay the name of a text is that of its operation, or none is sent', async () => {
  expect(await nameSent('query Place { eventCursor }')).toBe('Place');
  expect(await nameSent('\n  mutation Pay($input: PayInput!) { pay(input: $input) { id } }')).toBe('Pay');
  for (const text of [
    '{ eventCursor }',
    'query { eventCursor }',
    'fragment Where on Query { eventCursor } query Place { ...Where }',
    '# the place\nquery Place { eventCursor }',
  ]) {
    expect(await nameSent(text), text).toBeUndefined();
  }
});
