import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { hasMore, itemsOf } from '../../examples/web/src/graph/pages.ts';
import { folder } from '../helpers/packages.ts';

const page = (ids: readonly (string | null)[], hasNextPage: boolean) => ({
  nodes: ids.map((id) => (id === null ? null : { id })),
  pageInfo: { hasNextPage, endCursor: 'a cursor' },
});

it('the examples show an item once that stands on two pages of a list that has changed, and none that could not be read', () => {
  const items = itemsOf([page(['a', 'b', null], true), page(['b', 'c'], false)]);
  expect(items.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
});

it('the examples read on by what the last page says, however many rows they have', () => {
  expect(hasMore([page(['a', 'b'], true), page(['b', 'c'], true)])).toBe(true);
  expect(hasMore([page(['a', 'b'], true), page(['b', 'c'], false)])).toBe(false);
  expect(hasMore([])).toBe(false);
});

it('the example for phones reads pages as the web example does', async () => {
  const [web, mobile] = await Promise.all(
    ['web', 'mobile'].map((name) => readFile(folder(`examples/${name}/src/graph/pages.ts`), 'utf8')),
  );
  expect(mobile).toBe(web);
});
