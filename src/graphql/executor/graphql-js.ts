import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  mapSourceToResponseEvent,
  validate,
  validateSubscriptionArgs,
} from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { IdentifiedContext } from '../plugins/prepared-operation.ts';
import { createPlannedExecution } from './planned-queries.ts';

/** On each result of a stream of events: the cursor of the event that it was made from. Not part of what is sent. */
export const CURSOR: unique symbol = Symbol('cursor');

export interface GraphQLJsOptions {
  /** Whether errors leave out the names that were nearly hit, those of a document as well as of a variable. */
  readonly hideSuggestions: boolean;
}

/** After so many errors of one document, or of its variables, nothing more is looked for. */
const MAX_ERRORS = 10;

/**
 * Runs operations on graphql-js itself instead of Yoga's executor: its messages name the variable at fault, and there is
 * one reference for what an operation means. Must stand before plugins that wrap the execution.
 */
export function useGraphQLJs({ hideSuggestions }: GraphQLJsOptions): Plugin {
  // The type of a context is told to plugins, and not to what executes.
  const executePlanned = createPlannedExecution(
    execute,
    (context) => (context as IdentifiedContext).isIdentified,
  );
  const bounds = { hideSuggestions, options: { maxCoercionErrors: MAX_ERRORS } };
  return {
    onValidate({ setValidationFn }) {
      setValidationFn((schema, document, rules) =>
        validate(schema, document, rules, { maxErrors: MAX_ERRORS, hideSuggestions }),
      );
    },
    onExecute({ args, setExecuteFn }) {
      Object.assign(args, bounds);
      setExecuteFn(executePlanned);
    },
    onSubscribe({ args, setSubscribeFn }) {
      Object.assign(args, bounds);
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
