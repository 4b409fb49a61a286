import { type ExecutionArgs, type ExecutionResult, execute as interpret } from 'graphql';
import { isPromise, type Plugin } from 'graphql-yoga';
import type { MaybePromise } from '../common/maybe-promise.ts';

// biome-ignore lint/suspicious/noExplicitAny: each plugin names the part of the context that it needs.
type AnyPlugin = Plugin<any>;
type OnExecute = NonNullable<AnyPlugin['onExecute']>;
type Execution = Parameters<OnExecute>[0];
type OnExecuteDone = NonNullable<
  Extract<ReturnType<OnExecute>, { onExecuteDone?: unknown }>['onExecuteDone']
>;

/** Executes an operation through the hooks of all plugins. */
export type Execute = (args: ExecutionArgs) => MaybePromise<ExecutionResult>;

/**
 * Makes one function of the hooks that plugins have on executions. Yoga is ready to wait for a promise before and after each hook,
 * which costs an everyday query more than most of the hooks do; these give none.
 *
 * @param plugins in their order. Their hooks on executions, and on what these have come to, must be synchronous.
 * @returns that function, and the plugins, the first of which has Yoga call it.
 */
export function withOneExecutionHook(plugins: readonly AnyPlugin[]): {
  readonly execute: Execute;
  readonly plugins: AnyPlugin[];
} {
  const hooks = plugins.flatMap(({ onExecute }) => (onExecute === undefined ? [] : [onExecute]));

  const execute: Execute = (given) => {
    // Each transport gives a context.
    const args = given as Execution['args'];
    let stopped: ExecutionResult | undefined;
    const execution: Execution = {
      args,
      context: args.contextValue,
      executeFn: interpret,
      setExecuteFn(next) {
        execution.executeFn = next;
      },
      setResultAndStopExecution(result) {
        stopped = result;
      },
      extendContext(extension) {
        Object.assign(args.contextValue, extension);
      },
    };
    const doneHooks: OnExecuteDone[] = [];
    for (const hook of hooks) {
      const { onExecuteDone } = synchronous(hook(execution)) ?? {};
      if (onExecuteDone !== undefined) doneHooks.push(onExecuteDone);
      if (stopped !== undefined) break;
    }
    const finish = (result: ExecutionResult): ExecutionResult => {
      const done: Parameters<OnExecuteDone>[0] = {
        args,
        result,
        setResult(next) {
          done.result = next;
        },
      };
      for (const hook of doneHooks) synchronous(hook(done));
      // What executes makes no streams.
      return done.result as ExecutionResult;
    };
    const result = stopped ?? execution.executeFn(args);
    return isPromise(result) ? result.then(finish) : finish(result);
  };

  const once: AnyPlugin = { onExecute: ({ setExecuteFn }) => setExecuteFn(execute) };
  return { execute, plugins: [once, ...plugins.map(({ onExecute: _, ...others }) => others)] };
}

function synchronous<T>(value: T | Promise<T>): T {
  if (isPromise(value)) throw new Error('A hook on an execution gave a promise, and nothing waits for it.');
  return value;
}
