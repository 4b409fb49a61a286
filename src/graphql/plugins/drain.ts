import { GraphQLError } from 'graphql';
import { isPromise, type Plugin } from 'graphql-yoga';

/** Lets operations in flight finish before the process ends, and takes no new ones meanwhile. */
export interface Drain {
  /** Whether the process has said that it will end; until {@link Drain.begin} it serves as ever. */
  readonly isEnding: boolean;
  /** Whether it refuses what is new. */
  readonly isDraining: boolean;
  markEnding(): void;
  readonly plugin: Plugin;
  /** Refuses what comes from now on; resolves once queries and mutations in flight are done. */
  begin(): Promise<void>;
}

/** Counts operations that end by themselves; each transport ends its own subscriptions. */
export function createDrain(): Drain {
  let isEnding = false;
  let isDraining = false;
  let inFlight = 0;
  const idle = Promise.withResolvers<void>();
  const leave = () => {
    inFlight -= 1;
    if (isDraining && inFlight === 0) idle.resolve();
  };
  const refused = () => ({
    errors: [
      new GraphQLError('This process is shutting down. Connect again, and resume with the last cursor.', {
        extensions: { code: 'DRAINING', retryable: true },
      }),
    ],
  });

  return {
    get isEnding() {
      return isEnding;
    },
    get isDraining() {
      return isDraining;
    },
    markEnding() {
      isEnding = true;
    },
    plugin: {
      // As results like any other, so that the layers above count them and tell of them.
      onExecute({ executeFn, setExecuteFn }) {
        if (isDraining) {
          setExecuteFn(refused);
          return;
        }
        setExecuteFn((args) => {
          const result: unknown = executeFn(args);
          if (!isPromise(result)) return result;
          inFlight += 1;
          return result.finally(leave);
        });
      },
      onSubscribe({ setSubscribeFn }) {
        if (isDraining) setSubscribeFn(refused);
      },
    },
    begin() {
      isEnding = true;
      isDraining = true;
      if (inFlight === 0) idle.resolve();
      return idle.promise;
    },
  };
}
