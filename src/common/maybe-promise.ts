/** A value that is there now, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;
