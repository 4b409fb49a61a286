import { expect, it } from 'vitest';
import { Backlog } from '../../packages/client/src/backlog.ts';
import type { Source } from '../../packages/client/src/index.ts';
import { until } from '../helpers/until.ts';

/** A log whose pages of what was missed come when the test says so, and what is told meanwhile. */
function measure() {
  const pages: PromiseWithResolvers<unknown>[] = [];
  const told: (number | 'caught up')[] = [];
  const source: Pick<Source, 'query'> = {
    query: () => {
      const page = Promise.withResolvers<unknown>();
      pages.push(page);
      return page.promise as never;
    },
  };
  const backlog = new Backlog(
    {
      // It asks, and subscribes to nothing.
      source: source as Source,
      cursor: () => 'start',
      onMissing: (missing) => told.push(missing),
      onCaughtUp: () => told.push('caught up'),
    },
    { ownerId: null, clabe: null, types: null },
  );
  const answer = (index: number, cursors: readonly string[], hasNextPage = false) =>
    pages[index]?.resolve({
      data: { events: { nodes: cursors.map((cursor) => ({ cursor })), pageInfo: { hasNextPage } } },
    });
  return { backlog, pages, told, answer };
}

it('what arrives while it is asked what was missed is not missing', async () => {
  const { backlog, told, answer } = measure();
  backlog.arrive('a');
  answer(0, ['a', 'b']);
  await until(() => told.length > 0);
  expect(told).toEqual([1]);
  backlog.arrive('b');
  expect(told).toEqual([1, 'caught up']);
});

it('asks for the next page once a page is here, and tells nothing once it is over', async () => {
  const { backlog, pages, told, answer } = measure();
  answer(0, ['a'], true);
  await until(() => told.length > 0);
  backlog.arrive('a');
  await until(() => pages.length === 2);
  expect(told).toEqual([1]);
  backlog.close();
  answer(1, ['b']);
  backlog.arrive('b');
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(told).toEqual([1]);
});
