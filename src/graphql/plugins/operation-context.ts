import type { Plugin } from 'graphql-yoga';

/**
 * Gives every operation the context made for it, and nothing else: the server's own is what it is made from. Must stand before all
 * plugins that read the context (`layers.ts` has the order).
 *
 * @param create makes the context of an operation, or of a stream of them.
 */
export function useOperationContext<TInitial extends object, TContext extends object>(
  create: (initial: TInitial, isStream: boolean) => TContext,
): Plugin<TInitial> {
  return {
    onExecute({ args }) {
      Object.assign(args, { contextValue: create(args.contextValue, false) });
    },
    onSubscribe({ args }) {
      Object.assign(args, { contextValue: create(args.contextValue, true) });
    },
  };
}
