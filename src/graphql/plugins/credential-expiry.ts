import { isAsyncIterable, type Plugin } from 'graphql-yoga';

/** What this plugin needs of an operation's context. */
export interface ExpiringContext {
  /** Whether the socket that carries the operation ends when the credential does, and the operation with it. */
  readonly endsWithSocket: boolean;
  /** Resolves with the reason when the caller's credential holds no longer; undefined once the signal is aborted. */
  untilExpiry(signal: AbortSignal): Promise<Error | undefined>;
}

/**
 * Ends a stream with an error when the credential that opened it does. Over a socket the socket is closed instead, which
 * is what its clients come back from. Must stand before the plugin that gives errors their public form.
 */
export function useCredentialExpiry(): Plugin<ExpiringContext> {
  return {
    onSubscribe({ args }) {
      const context = args.contextValue;
      if (context.endsWithSocket) return {};
      return {
        onSubscribeResult({ result, setResult }) {
          if (isAsyncIterable(result)) setResult(endAt(result, (signal) => context.untilExpiry(signal)));
        },
      };
    },
  };
}

/** The results of a source until it ends, or a failure comes first; leaving ends both. Read one by one. */
function endAt<T>(
  source: AsyncIterable<T>,
  failure: (signal: AbortSignal) => Promise<Error | undefined>,
): AsyncIterableIterator<T> {
  const iterator = source[Symbol.asyncIterator]();
  const left = new AbortController();
  let failed: Error | undefined;
  // One reaction for the life of the stream: a race for each result would pile up as many.
  let fail: (error: Error) => void = () => undefined;
  failure(left.signal).then(
    (error) => {
      failed = error;
      if (error !== undefined) fail(error);
    },
    // Nobody is streamed to who could not be identified to begin with.
    () => undefined,
  );
  const leave = async (): Promise<void> => {
    left.abort();
    await iterator.return?.();
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      try {
        const step = await new Promise<IteratorResult<T>>((resolve, reject) => {
          fail = reject;
          if (failed === undefined) iterator.next().then(resolve, reject);
          else reject(failed);
        });
        if (step.done === true) left.abort();
        return step;
      } catch (error) {
        await leave();
        throw error;
      }
    },
    async return() {
      await leave();
      return { done: true, value: undefined };
    },
  };
}
