import type { ExecutionArgs } from 'graphql';
import type { Graph } from '../../graphql/yoga.ts';

type Outcome = ReturnType<ReturnType<Graph['yoga']['getEnveloped']>['execute']>;

/** How an operation is run. It travels as the root value, which no resolver of the schema reads. */
interface Run {
  run(): Outcome;
}

/** Returns the execution arguments of an operation that is run by `run`. */
export const running = (args: ExecutionArgs, run: Run['run']): ExecutionArgs => ({
  ...args,
  contextValue: undefined,
  rootValue: { run } satisfies Run,
});

// Only protocol.ts makes these arguments, by `running`.
export const runOf = (args: ExecutionArgs): Run => args.rootValue as Run;

/** Returns a function that holds nothing but the value, as long as the stream lasts. */
export const just =
  <T>(outcome: T) =>
  (): T =>
    outcome;
