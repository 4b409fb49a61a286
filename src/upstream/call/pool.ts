import { type Dispatcher, Pool } from 'undici';

/** What a call is dispatched on. */
export type CallPool = Pick<Dispatcher, 'dispatch'> & { destroy(): Promise<void> };

type OpenPool = (origin: string, options: Pool.Options) => CallPool;

const system: OpenPool = (origin, options) => new Pool(origin, options);

/** Opens a pool of connections to an origin. Always ask for it anew: another may take its place. */
export let openPool: OpenPool = system;

/** Puts another in the place of undici's, as the simulator does. @returns puts undici's back. */
export function usePools(other: OpenPool): () => void {
  openPool = other;
  return () => {
    openPool = system;
  };
}
