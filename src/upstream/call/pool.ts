import { type Dispatcher, Pool } from 'undici';

/** The pool that calls are dispatched on. */
export type CallPool = Pick<Dispatcher, 'dispatch'> & { destroy(): Promise<void> };

type OpenPool = (origin: string, options: Pool.Options) => CallPool;

const system: OpenPool = (origin, options) => new Pool(origin, options);

/** Opens a pool of connections to an origin. Read this binding for each use, and keep no copy: the simulator replaces it. */
export let openPool: OpenPool = system;

/** Replaces undici's pool, as the simulator does. @returns a function that restores undici's. */
export function usePools(other: OpenPool): () => void {
  openPool = other;
  return () => {
    openPool = system;
  };
}
