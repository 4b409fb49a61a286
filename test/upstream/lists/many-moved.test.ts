import { expect, it } from 'vitest';
import { ACCOUNT_LIST, type Account } from '../../../src/upstream/accounts.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { startClientLists } from '../../helpers/client-lists.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

const OWN = 40_000;
const PAGE = 100;

it('all of an owner who has many thousands are found at little cost, where each has moved by one place', async () => {
  const items = Array.from({ length: OWN }, (_, index) => ({ id: `account-${index}`, ownerId: 'owner' }));
  await using upstream = await startUpstream(
    ({ url = '' }, response) => {
      const query = new URL(url, 'http://x').searchParams;
      const page = Number(query.get('page') ?? 1);
      const perPage = Math.min(PAGE, Number(query.get('per_page') ?? 50));
      const data = items.slice((page - 1) * perPage, page * perPage);
      json(response, { data, currentPage: page, perPage, totalItem: items.length });
    },
    { operationTimeoutMs: 250_000 },
  );
  const lists = startClientLists({ now: () => performance.now() });
  /** The CPU time that one operation takes for all accounts of the owner, in milliseconds. */
  const cost = async (): Promise<number> => {
    const loader = createPlacedLoader<Account>(upstream.rest, ACCOUNT_LIST, { lists });
    const before = process.cpuUsage().user;
    expect((await loader.where('ownerId', 'owner')).length).toBe(OWN);
    return (process.cpuUsage().user - before) / 1_000;
  };
  await cost();
  const inPlace = await cost();
  items.unshift({ id: 'new', ownerId: 'other' });
  // Twice the calls. Where each place was compared with each item that had moved, it was 20 times as much.
  expect(await cost()).toBeLessThan(8 * inPlace);
});
