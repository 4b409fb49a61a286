import { GraphQLError } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';

/** What this plugin needs of an operation's context. */
export interface CountedContext {
  /** Counts a stream that is about to begin; false where no more may. One over a socket is counted with its socket. */
  openStream(): boolean;
}

/** Refuses a stream where too many are open already. Must stand before the plugin that gives errors their public form. */
export function useStreamLimit(): Plugin<CountedContext> {
  return {
    onSubscribe({ args }) {
      return {
        onSubscribeResult({ result, setResult }) {
          if (!isAsyncIterable(result) || args.contextValue.openStream()) return;
          void result[Symbol.asyncIterator]().return?.();
          setResult({ errors: [tooMany()] });
        },
      };
    },
  };
}

const tooMany = (): GraphQLError =>
  new GraphQLError('Too many streams are open. Close one, or try again later.', {
    extensions: { code: 'TOO_COMPLEX', retryable: true },
  });
