import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST, type Account } from '../../../src/upstream/accounts.ts';
import { BANK_FIELD_NAMES, readBanks } from '../../../src/upstream/banks.ts';
import { customerScope } from '../../../src/upstream/customer-scope.ts';
import { CUSTOMER_LIST } from '../../../src/upstream/customers.ts';
import { createInstrumentLoader } from '../../../src/upstream/instruments.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { Listing } from '../../../src/upstream/lists/listing.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { readWebhooks } from '../../../src/upstream/webhooks.ts';
import { CLIENT_ID, json, startUpstream, type Upstream } from '../../helpers/http-stub.ts';

const PAGE = 100;

let upstream: Upstream;
afterEach(() => upstream[Symbol.asyncDispose]());

/** A service whose lists hold these items, in pages of at most a hundred. */
async function serve(items: readonly object[]): Promise<void> {
  upstream = await startUpstream((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const page = Number(query.get('page') ?? 1);
    const perPage = Math.min(PAGE, Number(query.get('per_page') ?? query.get('page_size') ?? 50));
    const data = items.slice((page - 1) * perPage, page * perPage);
    const total = items.length;
    const paging = { currentPage: page, perPage, page, page_size: perPage };
    const totals = { totalItem: total, totalItems: total, total_banks: total };
    json(response, { ...paging, ...totals, data, banks: data });
  });
}

const lists = () =>
  createClientLists({ maxAgeMs: 5_000, now: () => 0, logger: silentLogger, onOutdated: () => undefined });

const account = (number: number) => ({
  id: `account-${number}`,
  instrumentId: `instrument-${number}`,
  accountNumber: `number-${number}`,
  clabeNumber: `clabe-${number}`,
  ownerId: `owner-${number % 3}`,
});

describe.each([
  ['whole', 20],
  ['in pages', 450],
])('a list of accounts that comes %s', (_how, size) => {
  it.each(['instrumentId', 'accountNumber', 'clabeNumber'] as const)(
    'gives the first of those with the same %s, and all of them where all are asked for',
    async (key) => {
      const items = Array.from({ length: size }, (_, number) => account(number));
      const twins = [3, Math.floor(size / 2), size - 1];
      for (const twin of twins) items[twin] = { ...account(twin), [key]: 'shared' };
      await serve(items);
      const known = lists();
      // The second operation finds in an index what the first has learned.
      for (let operation = 0; operation < 2; operation += 1) {
        const loader = createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists: known });
        expect(await loader.find(key, 'shared')).toMatchObject({ id: 'account-3' });
        expect((await loader.where(key, 'shared')).map(({ id }) => id)).toEqual(
          twins.map((twin) => `account-${twin}`),
        );
        expect(await loader.find(key, 'shared')).toMatchObject({ id: 'account-3' });
      }
      const isSeen = ({ ownerId }: Account) => ownerId === 'owner-0';
      const owned = createPlacedLoader(upstream.rest, ACCOUNT_LIST, {
        lists: known,
        owned: { key: 'ownerId', customerId: 'owner-0', isSeen },
      });
      const first = twins.find((twin) => twin % 3 === 0);
      expect(await owned.find(key, 'shared')).toMatchObject({ id: `account-${first}` });
    },
  );

  it('finds a UUID in any case of its letters, and any other key in its own alone', async () => {
    const uuid = (number: number) => `3f2b1c9e-8d4a-4f6b-9a57-${String(number).padStart(12, 'abcdef')}`;
    const items = Array.from({ length: size }, (_, number) => ({ ...account(number), id: uuid(number) }));
    await serve(items);
    const loader = createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists: lists() });
    const last = size - 1;
    // Before the list has arrived, and after it.
    for (let turn = 0; turn < 2; turn += 1) {
      expect(await loader.find('id', uuid(last).toUpperCase())).toMatchObject({ id: uuid(last) });
      expect(await loader.where('id', uuid(last).toUpperCase())).toMatchObject([{ id: uuid(last) }]);
      expect(await loader.find('instrumentId', `Instrument-${last}`)).toBeNull();
    }
  });
});

it('instruments of a page are found by UUIDs in any case of their letters, without a read of each', async () => {
  const ids = ['a', 'b', 'c', 'd'].map((letter) => `3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5${letter}`);
  await serve(ids.map((id) => ({ id, clientId: CLIENT_ID })));
  for (const isShown of [true, false]) {
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), lists());
    if (isShown) await loader.window(0, 100);
    const found = await Promise.all(ids.map((id) => loader.find('id', id.toUpperCase())));
    expect(found.map((instrument) => instrument?.id)).toEqual(ids);
  }
});

describe('of two items with one id', () => {
  const twice = (changes: object) => [
    { id: 'one', ...changes },
    { id: 'two' },
    { id: 'one', ...changes, name: 'second', alias: 'second', url: 'second' },
  ];

  it('no account and no customer is found: its list cannot be told from one that did not move', async () => {
    await serve(twice({ name: 'first' }));
    for (const loader of [
      createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists: lists() }),
      createPlacedLoader(upstream.rest, CUSTOMER_LIST, { lists: lists() }),
    ]) {
      await expect(loader.begin()).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' });
    }
  });

  it('the first bank is found', async () => {
    await serve(twice({ name: 'first' }));
    const banks = new Listing(await readBanks(upstream.rest, BANK_FIELD_NAMES));
    expect(banks.find('id', 'one')).toMatchObject({ name: 'first' });
  });

  it('the first webhook is found', async () => {
    await serve(twice({ url: 'first' }));
    const webhooks = new Listing(await readWebhooks(upstream.rest));
    expect(webhooks.find('id', 'one')).toMatchObject({ url: 'first' });
  });

  it.each([
    ['that a window has shown', true, ['one']],
    ['that is looked for', false, ['one', 'two', 'three']],
  ])('the first instrument is found %s', async (_what, isShown, ids) => {
    await serve(twice({ alias: 'first', clientId: CLIENT_ID }));
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), lists());
    if (isShown) await loader.window(0, 10);
    const [one] = await Promise.all(ids.map((id) => loader.find('id', id)));
    expect(one).toMatchObject({ alias: 'first' });
  });
});
