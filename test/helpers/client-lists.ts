import { silentLogger } from '../../src/common/logger.ts';
import { type ClientLists, createClientLists } from '../../src/upstream/lists/client-lists.ts';

/** The lists of clients, at a clock that stands still, but for what a test says otherwise. */
export const startClientLists = (
  options: Partial<Parameters<typeof createClientLists>[0]> = {},
): ClientLists =>
  createClientLists({
    maxAgeMs: 60_000,
    now: () => 0,
    logger: silentLogger,
    onOutdated: () => undefined,
    ...options,
  });
