import type { MaybePromise } from '../common/maybe-promise.ts';

/**
 * The items of a source that `select` makes something of; `undefined` leaves one out. Unlike an async generator it can be
 * ended during a pending `next()`, which matters where the next event may be hours away.
 */
export function selectFrom<In, Out>(
  source: AsyncIterator<In, undefined>,
  select: (item: In) => MaybePromise<Out | undefined>,
): AsyncIterableIterator<Out, undefined> {
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      for (;;) {
        const step = await source.next();
        if (step.done) return { done: true, value: undefined };
        const selected = select(step.value);
        const value = selected instanceof Promise ? await selected : selected;
        if (value !== undefined) return { done: false, value };
      }
    },
    async return() {
      await source.return?.();
      return { done: true, value: undefined };
    },
  };
}

/**
 * A generator that is told when its reader leaves, so that what it waits for can be given up at once: a plain one would
 * hear of it only after its next item.
 */
export function abortable<T>(
  run: (signal: AbortSignal) => AsyncGenerator<T, undefined>,
): AsyncIterableIterator<T, undefined> {
  const abort = new AbortController();
  const generator = run(abort.signal);
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => generator.next(),
    return() {
      abort.abort();
      return generator.return(undefined);
    },
  };
}
