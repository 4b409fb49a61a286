import { expect, it, vi } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import type { ListDefinition } from '../../../src/upstream/lists/reader.ts';

const CLIENT = 'ABCDEF01-2345-4789-8ABC-DEF012345678';

it('the lists of a client are the same however its id is written, and are told when they have changed', () => {
  const lists = createClientLists({ maxAgeMs: 60_000, now: () => 0, logger: silentLogger });
  // No more of it is looked at before anything is read.
  const list = { route: '/things' } as unknown as ListDefinition<object>;
  const places = lists.of(CLIENT, list, '');
  expect(lists.of(CLIENT.toLowerCase(), list, '')).toBe(places);
  const changed = vi.spyOn(places, 'markChanged');
  for (const named of [CLIENT, CLIENT.toLowerCase(), CLIENT.replace('A', 'F')]) lists.markChanged(named);
  expect(changed).toHaveBeenCalledTimes(2);
});
