import { isPromise, type Plugin } from 'graphql-yoga';

// biome-ignore lint/suspicious/noExplicitAny: each plugin names the part of the context that it needs.
type AnyPlugin = Plugin<any>;
type OnExecute = NonNullable<AnyPlugin['onExecute']>;
type Execution = Parameters<OnExecute>[0];
type OnExecuteDone = NonNullable<
  Extract<ReturnType<OnExecute>, { onExecuteDone?: unknown }>['onExecuteDone']
>;

/**
 * Makes one hook of those that plugins have on executions. Yoga is ready to wait for a promise before and after each hook, which
 * costs an everyday query more than most of the hooks do; these give none.
 *
 * @param plugins in their order. Their hooks on executions, and on what these have come to, must be synchronous.
 * @returns the plugin with that hook, and all others without theirs.
 */
export function withOneExecutionHook(plugins: readonly AnyPlugin[]): AnyPlugin[] {
  const hooks = plugins.flatMap(({ onExecute }) => (onExecute === undefined ? [] : [onExecute]));

  const onExecute: OnExecute = (execution) => {
    let isStopped = false;
    const current: Execution = {
      ...execution,
      setExecuteFn(next) {
        current.executeFn = next;
      },
      setResultAndStopExecution(result) {
        isStopped = true;
        execution.setResultAndStopExecution(result);
      },
    };
    const doneHooks: OnExecuteDone[] = [];
    for (const hook of hooks) {
      const { onExecuteDone } = synchronous(hook(current)) ?? {};
      if (onExecuteDone !== undefined) doneHooks.push(onExecuteDone);
      if (isStopped) break;
    }
    execution.setExecuteFn(current.executeFn);
    return {
      onExecuteDone(done) {
        const seen = {
          ...done,
          setResult(result: typeof done.result) {
            seen.result = result;
          },
        };
        for (const hook of doneHooks) synchronous(hook(seen));
        if (seen.result !== done.result) done.setResult(seen.result);
      },
    };
  };

  return [{ onExecute }, ...plugins.map(({ onExecute: _, ...others }) => others)];
}

function synchronous<T>(value: T | Promise<T>): T {
  if (isPromise(value)) throw new Error('A hook on an execution gave a promise, and nothing waits for it.');
  return value;
}
