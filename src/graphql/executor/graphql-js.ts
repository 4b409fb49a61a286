import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  mapSourceToResponseEvent,
  validateSubscriptionArgs,
} from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { createPlannedExecution } from './planned-queries.ts';

/** On each result of a stream of events: the cursor of the event that it was made from. Not part of what is sent. */
export const CURSOR: unique symbol = Symbol('cursor');

/**
 * Runs operations on graphql-js itself instead of Yoga's executor: its messages name the variable at fault, and there is
 * one reference for what an operation means. Must stand before plugins that wrap the execution.
 */
export function useGraphQLJs(): Plugin {
  const executePlanned = createPlannedExecution(execute);
  return {
    onExecute({ setExecuteFn }) {
      setExecuteFn(executePlanned);
    },
    onSubscribe({ setSubscribeFn }) {
      setSubscribeFn(subscribe);
    },
  };
}

/** graphql-js' own `subscribe`, but for the cursor that each result carries. */
async function subscribe(
  args: ExecutionArgs,
): Promise<ExecutionResult | AsyncGenerator<ExecutionResult, void>> {
  const validated = validateSubscriptionArgs(args);
  if (!('schema' in validated)) return { errors: validated };
  const source = await createSourceEventStream(validated);
  if (!isAsyncIterable(source)) return source;
  return mapSourceToResponseEvent(validated, source, (eventArgs) => {
    const cursor = cursorOf(eventArgs.rootValue);
    const result = executeSubscriptionEvent(eventArgs);
    if (cursor === undefined) return result;
    return result instanceof Promise
      ? result.then((made) => ({ ...made, [CURSOR]: cursor }))
      : { ...result, [CURSOR]: cursor };
  });
}

/** The source of `moneyIn` and `events` yields the events themselves; that of `cepStatus` yields what has no cursor. */
function cursorOf(event: unknown): string | undefined {
  const cursor = typeof event === 'object' && event !== null && 'cursor' in event ? event.cursor : undefined;
  return typeof cursor === 'string' ? cursor : undefined;
}
