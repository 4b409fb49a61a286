import { STARTS_DIST } from './entry.ts';

/** What makes a gateway in the test's own process: that of the sources, or the one that `dist` runs. */
export const { buildServer }: typeof import('../../src/app/gateway.ts') = await import(
  STARTS_DIST ? '../../dist/lib/chunks/gateway.js' : '../../src/app/gateway.ts'
);
