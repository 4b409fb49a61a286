import {
  createSourceEventStream,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  executeSubscriptionEvent,
  GraphQLError,
  validate,
  validateSubscriptionArgs,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { MappedStream, PushStream } from '../../common/push-stream.ts';
import type { Budget } from '../../operation/budget.ts';
import type { IdentifiedContext } from '../../operation/identity.ts';
import type { Reads } from '../../operation/reads.ts';
import type { Report } from '../../operation/report.ts';
import {
  createPlannedExecution,
  createUnplannedExecution,
  type PlannedExecutionOptions,
} from './planned-queries.ts';

/** The event that a result of a stream was made from. */
export interface Origin {
  readonly type: string;
  /** RFC 3339, when the gateway received it. */
  readonly receivedAt: string;
  /** Where the stream goes on after it; undefined for a stream that begins with the state of things instead. */
  readonly cursor: string | undefined;
}

/** On each result that was made from an event. Not part of what is sent. */
export const ORIGIN: unique symbol = Symbol('origin');

/** The event that a result was made from. */
export const originOf = (result: ExecutionResult): Origin | undefined => Reflect.get(result, ORIGIN);

export interface GraphQLJsOptions {
  /** Whether errors leave out the names that were nearly hit, those of a document as well as of a variable. */
  readonly hideSuggestions: boolean;
  /** Whether queries that come again are executed by plans. */
  readonly plansQueries: boolean;
}

/** After so many errors of one document, or of its variables, nothing more is looked for. */
const MAX_ERRORS = 10;

/**
 * Runs operations on graphql-js itself instead of Yoga's executor: its messages name the variable at fault, and there is
 * one reference for what an operation means. Must stand before plugins that wrap the execution.
 */
export function useGraphQLJs({ hideSuggestions, plansQueries }: GraphQLJsOptions): Plugin {
  // The type of a context is told to plugins, and not to what executes.
  const options: PlannedExecutionOptions = {
    interpret: execute,
    isIdentified: (context) => (context as ExecutedContext).identity.isIdentified,
    recount: (context) => (context as ExecutedContext).budget.recount(),
    note: (context, executor, because) => (context as ExecutedContext).report.executedBy(executor, because),
  };
  const chosen = plansQueries ? createPlannedExecution(options) : createUnplannedExecution(options);
  const bounds = { hideSuggestions, options: { maxCoercionErrors: MAX_ERRORS } };
  return {
    onValidate({ setValidationFn }) {
      setValidationFn((schema, document, rules) =>
        validate(schema, document, rules, { maxErrors: MAX_ERRORS, hideSuggestions }),
      );
    },
    onExecute({ args, setExecuteFn }) {
      Object.assign(args, bounds);
      setExecuteFn(chosen);
    },
    onSubscribe({ args, setSubscribeFn }) {
      Object.assign(args, bounds);
      setSubscribeFn(subscribe);
    },
  };
}

type MaybePromise<T> = T | Promise<T>;

/** What this plugin needs of an operation's context. */
interface ExecutedContext extends IdentifiedContext {
  readonly budget: Pick<Budget, 'recount'>;
  readonly report: Pick<Report, 'executedBy'>;
}

/** What this plugin needs of a stream's context. */
interface StreamContext {
  readonly reads: Pick<Reads, 'end'>;
}

/** graphql-js' own `subscribe`, but for streams that push, and for the event that each result carries. */
async function subscribe(args: ExecutionArgs): Promise<ExecutionResult | PushStream<ExecutionResult>> {
  const validated = validateSubscriptionArgs(args);
  if (!('schema' in validated)) return { errors: validated };
  const source = await createSourceEventStream(validated);
  if (source instanceof PushStream) return new MappedStream(source, executionOf(args));
  if (!(Symbol.asyncIterator in source)) return source;
  throw new GraphQLError('A field of Subscription gave another stream than one that pushes.');
}

/** Executes an operation for each event. What it is validated to is as large as a socket: it is let go of in between. */
function executionOf(args: ExecutionArgs): (rootValue: unknown) => MaybePromise<ExecutionResult> {
  // The operation's own context: plugins that stand before this one have put it there.
  const context = args.contextValue as StreamContext;
  return (rootValue) => {
    const validated = validateSubscriptionArgs(args);
    if (!('schema' in validated)) return { errors: validated };
    const origin = eventOf(rootValue);
    const finished = (result: ExecutionResult): ExecutionResult => {
      context.reads.end();
      return origin === undefined ? result : Object.assign(result, { [ORIGIN]: origin });
    };
    const result = executeSubscriptionEvent({ ...validated, rootValue });
    return result instanceof Promise ? result.then(finished) : finished(result);
  };
}

/** `moneyIn` and `events` give the events themselves; `cepStatus` gives what names the event that it was made from. */
function eventOf(rootValue: unknown): Origin | undefined {
  if (typeof rootValue !== 'object' || rootValue === null) return undefined;
  if (isOrigin(rootValue)) return rootValue;
  const event = Reflect.get(rootValue, 'event');
  return isOrigin(event) ? { type: event.type, receivedAt: event.receivedAt, cursor: undefined } : undefined;
}

const isOrigin = (value: unknown): value is Origin =>
  typeof value === 'object' &&
  value !== null &&
  'cursor' in value &&
  'type' in value &&
  'receivedAt' in value;
