import { isPromise, type Plugin } from 'graphql-yoga';

// biome-ignore lint/suspicious/noExplicitAny: each plugin names the part of the context that it needs.
type AnyPlugin = Plugin<any>;
type OnExecute = NonNullable<AnyPlugin['onExecute']>;
type Payload = Parameters<OnExecute>[0];
type OnExecuteDone = Extract<ReturnType<OnExecute>, { onExecuteDone?: unknown }>['onExecuteDone'];

/**
 * Makes one hook of those that plugins have on queries and mutations. Before and after each hook Yoga is ready to wait
 * for a promise, and being ready costs more than most of them do; these give none.
 *
 * @param plugins in their order. Their hooks on executions must be synchronous, and so must those on results be.
 * @returns the one with that hook, and all others without theirs.
 */
export function mergeExecuteHooks(plugins: readonly AnyPlugin[]): AnyPlugin[] {
  const hooks = plugins.flatMap(({ onExecute }) => (onExecute === undefined ? [] : [onExecute]));

  const onExecute: OnExecute = (payload) => {
    let { executeFn } = payload;
    let stopped = false;
    const current: Payload = {
      ...payload,
      setExecuteFn(next) {
        executeFn = next;
      },
      setResultAndStopExecution(result) {
        stopped = true;
        payload.setResultAndStopExecution(result);
      },
    };
    const doneHooks: NonNullable<OnExecuteDone>[] = [];
    for (const hook of hooks) {
      current.executeFn = executeFn;
      const { onExecuteDone } = prompt(hook(current)) ?? {};
      if (onExecuteDone !== undefined) doneHooks.push(onExecuteDone);
      if (stopped) break;
    }
    payload.setExecuteFn(executeFn);
    return {
      onExecuteDone(done) {
        const seen = {
          ...done,
          setResult(result: typeof done.result) {
            seen.result = result;
          },
        };
        for (const hook of doneHooks) prompt(hook(seen));
        if (seen.result !== done.result) done.setResult(seen.result);
      },
    };
  };

  return [{ onExecute }, ...plugins.map(({ onExecute: _inOne, ...others }) => others)];
}

function prompt<T>(value: T | Promise<T>): T {
  if (isPromise(value)) throw new Error('A hook gave a promise where none is waited for.');
  return value;
}
