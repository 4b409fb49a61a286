import type { Plugin } from 'graphql-yoga';

/**
 * Gives every operation the context made for it, and nothing else: the server's own is what it is made from. Must be the
 * first plugin.
 */
export function useOperationContext<TInitial extends object>(
  create: (initial: TInitial) => object,
): Plugin<TInitial> {
  return {
    onExecute({ args }) {
      Object.assign(args, { contextValue: create(args.contextValue) });
    },
    onSubscribe({ args }) {
      Object.assign(args, { contextValue: create(args.contextValue) });
    },
  };
}
