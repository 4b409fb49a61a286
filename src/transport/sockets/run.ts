import type { ExecutionArgs } from 'graphql';
import type { Graph } from '../../graphql/yoga.ts';

type Outcome = ReturnType<ReturnType<Graph['getEnveloped']>['execute']>;

/** How an operation is run. Carried as the root value, which no resolver of the schema reads. */
interface Run {
  run(): Outcome;
}

/** The arguments of an operation that is run in its own way. */
export const running = (args: ExecutionArgs, run: Run['run']): ExecutionArgs => ({
  ...args,
  contextValue: undefined,
  rootValue: { run } satisfies Run,
});

// Only protocol.ts makes these arguments, by `running`.
export const runOf = (args: ExecutionArgs): Run => args.rootValue as Run;

/** Holds on to nothing else, as long as the stream lasts. */
export const just =
  <T>(outcome: T) =>
  (): T =>
    outcome;
