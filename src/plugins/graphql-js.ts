import { execute, subscribe } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/**
 * Runs operations on graphql-js itself instead of Yoga's executor: its messages name the variable at fault, and there is
 * one reference for what an operation means. Must stand before plugins that wrap the execution.
 */
export function useGraphQLJs(): Plugin {
  return {
    onExecute({ setExecuteFn }) {
      setExecuteFn(execute);
    },
    onSubscribe({ setSubscribeFn }) {
      setSubscribeFn(subscribe);
    },
  };
}
