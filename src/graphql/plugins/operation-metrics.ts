import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { clock } from '../../common/clock.ts';
import { preparedOperation } from '../documents/prepared-operation.ts';

/**
 * @param type `query`, `mutation` or `subscription`.
 * @param outcome whether the result carried an error.
 * @param milliseconds until the result was there, the wait for its turn included; of a subscription until it was open.
 */
export type OperationObserver = (type: string, outcome: 'ok' | 'error', milliseconds: number) => void;

/** Reports each operation once. */
export function useOperationMetrics(observe: OperationObserver): Plugin {
  const outcome = (result: { readonly errors?: readonly unknown[] | undefined }) =>
    result.errors === undefined ? 'ok' : 'error';
  return {
    onExecute({ args }) {
      const type = preparedOperation(args)?.type ?? 'query';
      const start = clock.monotonic();
      return {
        onExecuteDone({ result }) {
          if (!isAsyncIterable(result)) observe(type, outcome(result), clock.monotonic() - start);
        },
      };
    },
    onSubscribe() {
      const start = clock.monotonic();
      return {
        onSubscribeResult({ result }) {
          const reached = isAsyncIterable(result) ? 'ok' : outcome(result);
          observe('subscription', reached, clock.monotonic() - start);
        },
      };
    },
  };
}
