/** What is there now, or will be. */
export type MaybePromise<T> = T | Promise<T>;
