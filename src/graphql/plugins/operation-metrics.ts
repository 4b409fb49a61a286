import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { preparedOperation } from './prepared-operation.ts';

/** Reports each operation once, with its type and whether its result carried an error. */
export function useOperationMetrics(count: (type: string, outcome: 'ok' | 'error') => void): Plugin {
  const outcome = (result: { readonly errors?: readonly unknown[] | undefined }) =>
    result.errors === undefined ? 'ok' : 'error';
  return {
    onExecute({ args }) {
      const type = preparedOperation(args)?.type ?? 'query';
      return {
        onExecuteDone({ result }) {
          if (!isAsyncIterable(result)) count(type, outcome(result));
        },
      };
    },
    onSubscribe() {
      return {
        onSubscribeResult({ result }) {
          count('subscription', isAsyncIterable(result) ? 'ok' : outcome(result));
        },
      };
    },
  };
}
