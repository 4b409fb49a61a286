import type { Fetcher } from '@graphiql/toolkit';
import { type DocumentNode, type ExecutionResult, Kind, type OperationDefinitionNode, parse } from 'graphql';
import { useAnswers } from './answers.ts';
import { execute } from './net/execute.ts';
import type { Operation } from './net/result.ts';
import { lacksValidation } from './story.ts';
import { dropStream, startStream } from './streams.ts';

/** The tab that operations come from. */
let activeTab = '';

export const setActiveTab = (id: string): void => {
  activeTab = id;
};

/** What GraphiQL is told where there is no result: of a stream, which has its own place. */
const NO_RESULT = { data: null };

/** Whether a text of GraphiQL's is that. */
export const isNoResult = (response: string): boolean => response === JSON.stringify(NO_RESULT, null, 2);

const INTROSPECTION = 'IntrospectionQuery';

/**
 * How GraphiQL sends. A subscription is handed to the streams, which outlive a change of tabs; of any other operation the
 * answer is kept beside its text.
 */
export const fetcher: Fetcher = (params, options) => {
  const headers = stringsOf(options?.headers);
  const operation = meant({
    query: params.query,
    variables: params.variables as Operation['variables'],
    operationName: params.operationName ?? undefined,
  });
  if (params.operationName === INTROSPECTION) {
    return execute(operation, headers, new AbortController().signal).then(({ result }) => result as object);
  }
  const tab = activeTab;
  if (lacksValidation(operation)) return Promise.resolve(NO_RESULT);
  if (kindOf(operation) === 'subscription') {
    startStream(tab, operation, headers);
    return Promise.resolve(NO_RESULT);
  }
  dropStream(tab);
  return {
    // GraphiQL ends what it observes when the tab is changed: the answer would be shown in the other one.
    subscribe(observer) {
      if (typeof observer !== 'object') throw new TypeError('GraphiQL observes by an object.');
      const abort = new AbortController();
      execute(operation, headers, abort.signal).then(
        (answer) => {
          if (abort.signal.aborted) return;
          useAnswers.setState({ [tab]: answer });
          const { upstream: _shownBelow, way: _shownThere, ...extensions } = answer.result.extensions ?? {};
          const isPlain = Object.keys(extensions).length === 0;
          const { extensions: _extensions, ...result } = answer.result;
          // GraphiQL shows it as JSON; its type is of a server's results, with errors that are objects.
          observer.next((isPlain ? result : { ...result, extensions }) as ExecutionResult);
          observer.complete();
        },
        (error: unknown) => {
          if (!abort.signal.aborted)
            observer.error({ message: String(error instanceof Error ? error.message : error) });
        },
      );
      return { unsubscribe: () => abort.abort() };
    },
  };
};

/** @throws TypeError for what no header can hold: where it is sent, that would look like a gateway that does not answer. */
const stringsOf = (headers: object = {}): Record<string, string> =>
  Object.fromEntries(new Headers(Object.entries(headers).map(([name, value]) => [name, String(value)])));

function parsed(query: string): DocumentNode | undefined {
  try {
    return parse(query);
  } catch {
    // The gateway says what is wrong with it.
    return undefined;
  }
}

export const operationsOf = (query: string): readonly OperationDefinitionNode[] =>
  parsed(query)?.definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION) ?? [];

/** For a moment after a change of tabs GraphiQL names the operation of the tab before. */
function meant(operation: Operation): Operation {
  const operations = operationsOf(operation.query);
  const isKnown = operations.some(({ name }) => name?.value === operation.operationName);
  return isKnown || operations.length === 0
    ? operation
    : { ...operation, operationName: operations[0]?.name?.value };
}

export function kindOf({ query, operationName }: Operation): string | undefined {
  const operations = operationsOf(query);
  return (operations.find(({ name }) => name?.value === operationName) ?? operations[0])?.operation;
}
