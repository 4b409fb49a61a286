import { type ExecutionArgs, type ExecutionResult, parse } from 'graphql';
import { createSchema } from 'graphql-yoga';
import { expect, it } from 'vitest';
import { PushStream, type Sink } from '../../../src/common/push-stream.ts';
import { originOf, useGraphQLJs } from '../../../src/graphql/executor/graphql-js.ts';

/** A stream whose items the test hands on. */
class Handed extends PushStream<unknown> {
  sink: Sink<unknown> | undefined;

  override connect(sink: Sink<unknown>): void {
    this.sink = sink;
  }

  override stop(): void {}
}

const EVENT = { type: 'CEP', receivedAt: '2026-01-01T00:00:00Z', cursor: 'a' };

it.each([
  ['events themselves goes on behind each', EVENT, EVENT],
  [
    'states goes on behind none, as it begins with the state',
    { event: EVENT },
    { ...EVENT, cursor: undefined },
  ],
  ['what came of no event', { event: null }, undefined],
])('a stream of %s', async (_what, item, origin) => {
  const source = new Handed();
  const schema = createSchema({
    typeDefs: 'type Query { word: String } type Subscription { word: String }',
    resolvers: { Subscription: { word: { subscribe: () => source, resolve: () => 'w' } } },
  });
  let ended = 0;
  const contextValue = { reads: { end: () => (ended += 1) } };
  const args: ExecutionArgs = { schema, document: parse('subscription { word }'), contextValue };
  let subscribe: ((args: ExecutionArgs) => Promise<PushStream<ExecutionResult>>) | undefined;
  const plugin = useGraphQLJs({ hideSuggestions: true, plansQueries: false });
  plugin.onSubscribe?.({ args, setSubscribeFn: (own: never) => (subscribe = own) } as never);
  const results: ExecutionResult[] = [];
  (await subscribe?.(args))?.connect({ take: (one) => void results.push(one), finish: () => undefined });
  await source.sink?.take(item);
  expect(results).toMatchObject([{ data: { word: 'w' } }]);
  expect(results.map(originOf)).toEqual([origin]);
  // What was read for it serves no later event, and is let go of while the stream waits.
  expect(ended).toBe(1);
});
