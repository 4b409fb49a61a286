import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { hasMore, itemsOf, lacksAccounts, payersOf, withPage } from '../../examples/web/src/graph/pages.ts';
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

it('the examples show no page that was being read as its list was read anew: those before it would be missing', () => {
  const [first, second, third, again] = [
    page(['a'], true),
    page(['b'], true),
    page(['c'], false),
    page(['a'], true),
  ];
  expect(withPage([first], first, second)).toEqual([first, second]);
  expect(withPage([again], second, third)).toEqual([again]);
  // It was read a second time.
  expect(withPage([first, second], first, second)).toEqual([first, second]);
});

it('the examples pay from the same account where its instrument cannot be read for a moment, and from none of a customer', () => {
  const accounts = [
    { id: 'of a customer', ownerId: 'customer', instrumentId: '1', instrument: { id: '1' } },
    { id: 'unread', ownerId: 'client', instrumentId: '2', instrument: null },
    { id: 'without', ownerId: 'client', instrumentId: null, instrument: null },
    { id: 'other', ownerId: 'client', instrumentId: '3', instrument: { id: '3' } },
  ];
  expect(payersOf(accounts, 'client').map(({ id }) => id)).toEqual(['unread', 'other']);
  expect(payersOf(accounts, undefined)).toEqual([]);
});

it('the examples tell an instrument without an account from one whose account could not be read', () => {
  const at = (...path: (string | number)[]) => [{ path: ['client', ...path] }];
  expect(lacksAccounts(at('instruments', 'nodes', 3, 'account'))).toBe(true);
  expect(lacksAccounts(at('instruments', 'nodes', 3, 'account', 'id'))).toBe(true);
  expect(lacksAccounts(at('instruments', 'nodes', 3, 'bank'))).toBe(false);
  expect(lacksAccounts(at('accounts', 'nodes', 3, 'instrument'))).toBe(false);
  expect(lacksAccounts([{}])).toBe(false);
  expect(lacksAccounts()).toBe(false);
});

it.each(['pages.ts', 'use-pages.ts'])('the example for phones has %s as the web example', async (file) => {
  const [web, mobile] = await Promise.all(
    ['web', 'mobile'].map((name) => readFile(folder(`examples/${name}/src/graph/${file}`), 'utf8')),
  );
  expect(mobile).toBe(web);
});
