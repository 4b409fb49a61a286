import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST, type Account } from '../../../src/upstream/accounts.ts';
import { customerScope } from '../../../src/upstream/customer-scope.ts';
import { createInstrumentLoader } from '../../../src/upstream/instruments.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { json, startUpstream, type Upstream } from '../../helpers/http-stub.ts';

/** A filter that a service might document for its accounts tomorrow. */
type Filter = { readonly status?: string | undefined; readonly customer_id?: string | undefined };

let upstream: Upstream;
afterEach(() => upstream[Symbol.asyncDispose]());

const FILTERS = ['status', 'customer_id'] as const;

/** A service whose lists hold these items, and that filters by the parameters that it is given. */
async function serve(items: readonly Readonly<Record<string, string>>[], defaultSize: number): Promise<void> {
  upstream = await startUpstream((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const chosen = items.filter((item) =>
      FILTERS.every((name) => !query.has(name) || item[name] === query.get(name)),
    );
    const page = Number(query.get('page') ?? 1);
    const perPage = Math.min(100, Number(query.get('per_page') ?? defaultSize));
    const data = chosen.slice((page - 1) * perPage, page * perPage);
    const total = chosen.length;
    json(response, { data, currentPage: page, perPage, totalItem: total, totalItems: total });
  });
}

const account = (number: number) => ({
  id: `account-${number}`,
  ownerId: `owner-${number % 3}`,
  status: number % 2 === 0 ? 'ACTIVE' : 'CLOSED',
});
const lists = () =>
  createClientLists({ maxAgeMs: 5_000, now: () => 0, logger: silentLogger, onOutdated: () => undefined });
const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);

describe.each([
  ['whole', 20, 50],
  ['in pages', 450, 50],
])('a list that comes %s', (_how, size, defaultSize) => {
  const numbers = (isChosen: (number: number) => boolean) =>
    Array.from({ length: size }, (_, number) => number).filter(isChosen);
  const names = (chosen: readonly number[]) => chosen.map((number) => `account-${number}`);
  const isSeen = ({ ownerId }: Account) => ownerId === 'owner-0';
  const owned = { key: 'ownerId', customerId: 'owner-0', isSeen } as const;

  it('is asked for with a filter as a list of its own, whatever its noun', async () => {
    await serve(numbers(() => true).map(account), defaultSize);
    const options = { lists: lists() };
    const loader = createPlacedLoader<Account, Filter>(upstream.rest, ACCOUNT_LIST, options);
    const closed = numbers((number) => number % 2 === 1);
    for (let time = 0; time < 2; time += 1) {
      expect(await loader.window(0, 5, { status: 'CLOSED' })).toMatchObject({ total: closed.length });
      expect(ids((await loader.window(5, 5, { status: 'CLOSED' })).items)).toEqual(
        names(closed.slice(5, 10)),
      );
      expect(await loader.window(0, 5)).toMatchObject({ total: size });
    }
    expect(await loader.find('id', 'account-2')).toMatchObject({ status: 'ACTIVE' });
  });

  it('is another list for each filter, however the values are written', async () => {
    await serve(numbers(() => true).map(account), defaultSize);
    const loader = createPlacedLoader<Account, Filter>(upstream.rest, ACCOUNT_LIST, { lists: lists() });
    const closedOfOne = { status: 'CLOSED', customer_id: 'owner-1' };
    const oneStatus = { status: 'CLOSED&customer_id=owner-1' };
    for (const filter of [closedOfOne, oneStatus]) await loader.window(0, 5, filter);
    const asked = upstream.requests.map(
      (line) => new URL(line.slice('GET '.length), 'http://x').searchParams,
    );
    expect(asked.map((query) => [query.get('status'), query.get('customer_id')])).toEqual([
      ['CLOSED', 'owner-1'],
      ['CLOSED&customer_id=owner-1', null],
    ]);
  });

  it('shows a caller narrowed to a customer its own alone, with a filter too', async () => {
    await serve(numbers(() => true).map(account), defaultSize);
    const loader = createPlacedLoader<Account, Filter>(upstream.rest, ACCOUNT_LIST, {
      lists: lists(),
      owned,
    });
    const own = numbers((number) => number % 6 === 3);
    const { items, total } = await loader.window(0, 100, { status: 'CLOSED' });
    expect(ids(items)).toEqual(names(own.slice(0, 100)));
    expect(total).toBe(own.length);
  });
});

describe('the instruments of one customer', () => {
  const instrument = (number: number) => ({
    id: `instrument-${number}`,
    customer_id: `customer-${number % 2}`,
    customerId: `customer-${number % 2}`,
    ownerId: `customer-${number % 2}`,
  });

  it('are a window with the filter that the service documents', async () => {
    await serve(
      Array.from({ length: 20 }, (_, number) => instrument(number)),
      10,
    );
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), lists());
    const { items, total } = await loader.window(0, 5, { customer_id: 'customer-1' });
    expect(ids(items)).toEqual([1, 3, 5, 7, 9].map((number) => `instrument-${number}`));
    expect(total).toBe(10);
    expect(upstream.requests).toHaveLength(1);
  });

  it('are each customer’s own where one operation asks for the same window of several', async () => {
    await serve(
      Array.from({ length: 20 }, (_, number) => instrument(number)),
      10,
    );
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), lists());
    const window = async (customer_id?: string) => ids((await loader.window(0, 2, { customer_id })).items);
    const windows = await Promise.all([
      window('customer-1'),
      window('customer-0'),
      window(),
      window('customer-1'),
    ]);
    const named = (...numbers: number[]) => numbers.map((number) => `instrument-${number}`);
    expect(windows).toEqual([named(1, 3), named(0, 2), named(0, 1), named(1, 3)]);
    expect(upstream.requests).toHaveLength(3);
  });

  it('are all that a caller narrowed to it is shown, and another customer has none for it', async () => {
    await serve(
      Array.from({ length: 20 }, (_, number) => instrument(number)),
      10,
    );
    const loader = createInstrumentLoader(upstream.rest, customerScope('customer-1'), lists());
    expect(await loader.window(0, 100)).toMatchObject({ total: 10 });
    expect(await loader.window(0, 100, { customer_id: 'CUSTOMER-1' })).toMatchObject({ total: 0 });
    const calls = upstream.requests.length;
    expect(await loader.window(0, 100, { customer_id: 'customer-0' })).toEqual({ items: [], total: 0 });
    expect(upstream.requests).toHaveLength(calls);
  });

  it('are asked for with each property of the filter, by a caller narrowed to it too', async () => {
    const items = Array.from({ length: 20 }, (_, number) => ({
      ...instrument(number),
      status: number < 10 ? 'ACTIVE' : 'BLOCKED',
    }));
    await serve(items, 10);
    // A property that the service might document for its instruments tomorrow.
    const status = { status: 'BLOCKED' };
    const named = [11, 13, 15, 17, 19].map((number) => `instrument-${number}`);
    const whole = createInstrumentLoader(upstream.rest, customerScope(undefined), lists());
    const filter = { customer_id: 'customer-1', ...status };
    expect(ids((await whole.window(0, 10, filter)).items)).toEqual(named);
    const narrowed = createInstrumentLoader(upstream.rest, customerScope('customer-1'), lists());
    const own = { customer_id: undefined, ...status };
    expect(ids((await narrowed.window(0, 10, own)).items)).toEqual(named);
  });

  it('are not shown in part to a caller narrowed to it, where the service gives one of another among them', async () => {
    await serve([instrument(1), { ...instrument(3), customerId: 'customer-0', ownerId: 'customer-0' }], 10);
    const loader = createInstrumentLoader(upstream.rest, customerScope('customer-1'), lists());
    await expect(loader.window(0, 10)).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID',
      message: expect.stringContaining('of others'),
    });
  });
});
