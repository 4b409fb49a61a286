import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { readVariables } from '../../../src/app/config.ts';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST, type Account } from '../../../src/upstream/accounts.ts';
import { BANK_FIELD_NAMES, bankId, readBanks } from '../../../src/upstream/banks.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { customerScope } from '../../../src/upstream/customer-scope.ts';
import { createInstrumentLoader } from '../../../src/upstream/instruments.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { UnreadableItem } from '../../../src/upstream/lists/envelope.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

const ids = (count: number) => Array.from({ length: count }, (_, index) => ({ id: `item-${index}` }));

const silent = silentLogger;
const freshLists = () =>
  createClientLists({
    maxAgeMs: 5_000,
    now: () => performance.now(),
    logger: silent,
    onOutdated: () => undefined,
  });

/** The account of an id, by an operation that knows nothing of the list yet. */
const findAccount = async (rest: Rest, id: string): Promise<Account | null> =>
  createPlacedLoader(rest, ACCOUNT_LIST, { lists: freshLists() }).find('id', id);

interface Paging {
  readonly total: number;
  readonly defaultSize: number;
  readonly maxSize?: number;
  readonly honoursPage?: boolean;
}

/** Answers accounts or instruments as an upstream with this paging would. */
const paged =
  ({ total, defaultSize, maxSize = Number.POSITIVE_INFINITY, honoursPage = true }: Paging) =>
  (request: IncomingMessage, response: ServerResponse) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const page = honoursPage ? Number(query.get('page') ?? 1) : 1;
    const perPage = Math.min(maxSize, Number(query.get('per_page') ?? defaultSize));
    const data = ids(total).slice((page - 1) * perPage, page * perPage);
    json(response, { data, currentPage: page, perPage, totalItem: total, totalItems: total });
  };

describe('a list without documented paging', () => {
  it('is one call when the first answer holds everything', async () => {
    await using upstream = await startUpstream(paged({ total: 7, defaultSize: 20 }));
    expect(await findAccount(upstream.rest, 'item-6')).toMatchObject({ id: 'item-6' });
    expect(upstream.requests).toHaveLength(1);
    expect(upstream.requests[0]).not.toContain('?');
  });

  it('is gone through in pages, each of them once, where it does not come in one', async () => {
    await using upstream = await startUpstream(paged({ total: 470, defaultSize: 5 }));
    expect(await findAccount(upstream.rest, 'item-469')).toMatchObject({ id: 'item-469' });
    // The first without parameters, five of a hundred, those again to see that nothing moved, and the one of the item.
    expect(upstream.requests).toHaveLength(12);
  });

  it('is read whole where it comes in one answer of megabytes', async () => {
    const data = ids(12_000).map((item) => ({ ...item, padding: 'ñ'.repeat(500) }));
    const body = JSON.stringify({ data, currentPage: 1, perPage: 12_000, totalItem: 12_000 });
    await using upstream = await startUpstream((_request, response) => void response.end(body), {
      maxAnswerBytes: 64 * 1024 * 1024,
    });
    expect(Buffer.byteLength(body)).toBeGreaterThan(5 * 1024 * 1024);
    expect(await findAccount(upstream.rest, 'item-11999')).toEqual(data.at(-1));
    expect(upstream.requests).toHaveLength(1);
  });

  it('holds an item that cannot be read in its place, and finds the others beside it', async () => {
    const odd = new Map<number, unknown>([
      [3, null],
      [7, {}],
      [8, {}],
      [250, { id: 5, clabeNumber: '646180110400000007' }],
      [469, 'text'],
    ]);
    const all = ids(470).map((item, at) => (odd.has(at) ? odd.get(at) : item));
    await using upstream = await startUpstream((request, response) => {
      const query = new URL(request.url ?? '', 'http://x').searchParams;
      const [page, perPage] = [Number(query.get('page') ?? 1), Number(query.get('per_page') ?? 5)];
      const data = all.slice((page - 1) * perPage, page * perPage);
      json(response, { data, currentPage: page, perPage, totalItem: all.length });
    });
    const lists = freshLists();
    const load = () => createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists });
    expect(await load().find('id', 'item-468')).toMatchObject({ id: 'item-468' });
    expect(await load().find('id', 'item-250')).toBeNull();
    // What names it finds it: to say that there is none would not be true.
    expect(await load().find('clabeNumber', '646180110400000007')).toMatchObject({
      code: 'UPSTREAM_INVALID',
    });
    const { items, total } = await load().window(0, 10);
    expect(total).toBe(470);
    expect(items.map((item) => (item instanceof UnreadableItem ? item.code : item.id))).toEqual(
      all.slice(0, 10).map((_, at) => (odd.has(at) ? 'UPSTREAM_INVALID' : `item-${at}`)),
    );
  });

  it('fails when its pages do not move, instead of showing a part as the whole', async () => {
    await using upstream = await startUpstream(paged({ total: 470, defaultSize: 5, honoursPage: false }));
    await expect(findAccount(upstream.rest, 'item-469')).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' });
  });

  it('fails when the pages end before the total is reached', async () => {
    await using upstream = await startUpstream((request, response) => {
      const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('page') ?? 1);
      const data = page <= 2 ? ids(10).slice((page - 1) * 5, page * 5) : [];
      json(response, { data, currentPage: page, perPage: 5, totalItem: 15 });
    });
    await expect(findAccount(upstream.rest, 'item-14')).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' });
  });

  it.each([
    ['no object', '[]'],
    ['no list', '{"currentPage":1,"perPage":5,"totalItem":0}'],
    ['no total', '{"data":[],"currentPage":1,"perPage":5}'],
    ['no JSON', '<html>'],
  ])('fails clearly on an answer with %s', async (_, body) => {
    await using upstream = await startUpstream((_request, response) => {
      response.end(body);
    });
    await expect(findAccount(upstream.rest, 'item-0')).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' });
  });
});

describe('the bank catalog', () => {
  const uuid = '0a0a0a0a-0000-4000-8000-00000000000a';

  it.each([
    ['id', { id: uuid, name: 'x' }],
    ['bankId', { bankId: uuid, other: '0a0a0a0a-0000-4000-8000-00000000000b' }],
    ['bank_id', { bank_id: uuid }],
    ['the only UUID', { key: uuid, name: 'x' }],
  ])('takes a bank’s id from %s', (_, entry) => {
    expect(bankId(entry)).toBe(uuid);
  });

  it('names the fields of a bank whose id cannot be told', () => {
    expect(() => bankId({ name: 'x', code: 'y' })).toThrow('name, code');
  });

  it('keeps every field that came', async () => {
    const bank = { bank_id: uuid, legal_name: 'Banco', codes: { spei: '40002' } };
    await using upstream = await startUpstream((_request, response) =>
      json(response, { banks: [bank], total_banks: 1, page: 1, page_size: 100 }),
    );
    expect(await readBanks(upstream.rest, BANK_FIELD_NAMES)).toEqual([
      { id: uuid, name: null, institutionCode: null, clabeCode: null, attributes: bank },
    ]);
  });

  const fieldsOf = async (entry: object, names = BANK_FIELD_NAMES) => {
    await using upstream = await startUpstream((_request, response) =>
      json(response, { banks: [{ id: uuid, ...entry }], total_banks: 1, page: 1, page_size: 100 }),
    );
    const [bank] = await readBanks(upstream.rest, names);
    return [bank?.name, bank?.institutionCode, bank?.clabeCode];
  };

  it.each([
    ['camel case', { name: 'BBVA MEXICO', institutionCode: '40012', clabeCode: '012' }],
    ['snake case', { bank_name: 'BBVA MEXICO', institution_code: '40012', clabe_code: '012' }],
    ['other words', { bankName: 'BBVA MEXICO', legal_code: '40012', clabe_prefix: '012' }],
  ])('reads name and codes in %s', async (_, entry) => {
    expect(await fieldsOf(entry)).toEqual(['BBVA MEXICO', '40012', '012']);
  });

  it('takes nothing for a code that has not the form of one', async () => {
    const entry = { name: '', bank_name: 'None', institutionCode: 'BBVA', clabeCode: 12 };
    expect(await fieldsOf(entry)).toEqual([null, null, null]);
  });

  it('reads them under the names that are configured', async () => {
    const { UPSTREAM_BANK_FIELDS: names } = readVariables({
      UPSTREAM_BANK_FIELDS: 'name=nombre, institutionCode=clave',
    });
    const entry = { nombre: 'STP', name: 'Sistema', clave: '90646', clabeCode: '646' };
    expect(await fieldsOf(entry, names)).toEqual(['STP', '90646', '646']);
  });
});

describe('windows of the instrument list', () => {
  const everyWindow = (total: number) =>
    Array.from({ length: total + 3 }, (_, offset) =>
      [1, 2, 3, 7, 10, 100].map((limit) => ({ offset, limit })),
    ).flat();

  it.each([
    ['obeys any page size', { total: 23, defaultSize: 20 }],
    ['caps the page size', { total: 23, defaultSize: 20, maxSize: 5 }],
    ['has one page size of its own', { total: 23, defaultSize: 10, maxSize: 4 }],
    ['is empty', { total: 0, defaultSize: 20 }],
  ])('are right for every offset and limit when the upstream %s', async (_, paging) => {
    await using upstream = await startUpstream(paged(paging));
    for (const { offset, limit } of everyWindow(paging.total)) {
      const { items, total } = await createInstrumentLoader(
        upstream.rest,
        customerScope(undefined),
        freshLists(),
      ).window(offset, limit);
      expect(items.map(({ id }) => id)).toEqual(
        ids(paging.total)
          .slice(offset, offset + limit)
          .map(({ id }) => id),
      );
      expect(total).toBe(paging.total);
    }
  });

  it('take one call where the window lines up and two at most', async () => {
    await using upstream = await startUpstream(paged({ total: 500, defaultSize: 20 }));
    for (const { offset, limit } of [
      { offset: 0, limit: 25 },
      { offset: 25, limit: 25 },
      { offset: 10, limit: 25 },
      { offset: 99, limit: 100 },
      { offset: 350, limit: 100 },
    ]) {
      upstream.requests.length = 0;
      await createInstrumentLoader(upstream.rest, customerScope(undefined), freshLists()).window(
        offset,
        limit,
      );
      expect(upstream.requests.length).toBeLessThanOrEqual(2);
    }
  });

  it('fail when the upstream answers with another page than asked for', async () => {
    await using upstream = await startUpstream(paged({ total: 50, defaultSize: 10, honoursPage: false }));
    await expect(
      createInstrumentLoader(upstream.rest, customerScope(undefined), freshLists()).window(20, 10),
    ).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID',
    });
  });
});

describe('instruments by id', () => {
  const known = (total: number) => (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '', 'http://x');
    const single = /\/instruments\/(.+)$/.exec(url.pathname)?.[1];
    if (single === undefined) return paged({ total, defaultSize: 20 })(request, response);
    const found = ids(total).find(({ id }) => id === single);
    return json(response, found ?? { error: 'not found' }, found ? 200 : 404);
  };

  it('are read one by one when few, and null where the client has none', async () => {
    await using upstream = await startUpstream(known(500));
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), freshLists());
    const found = await Promise.all([loader.find('id', 'item-3'), loader.find('id', 'nobody')]);
    expect(found.map((item) => item?.id ?? null)).toEqual(['item-3', null]);
    expect(upstream.requests).toHaveLength(2);
  });

  it('come through the list when many, and absent ones are null without a call each', async () => {
    await using upstream = await startUpstream(known(150));
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), freshLists());
    const wanted = [...ids(120).map(({ id }) => id), 'nobody', 'no-one'];
    const found = await Promise.all(wanted.map((id) => loader.find('id', id)));
    expect(found.map((item) => item?.id ?? null)).toEqual([...ids(120).map(({ id }) => id), null, null]);
    expect(upstream.requests).toHaveLength(2);
  });

  it('are found where a page has shown them, though the next one, which may have the others, fails', async () => {
    await using upstream = await startUpstream((request, response) =>
      request.url?.includes('page=2&') ? response.writeHead(400).end() : known(250)(request, response),
    );
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), freshLists());
    const wanted = ['item-0', 'item-150', 'item-1', 'item-151'];
    const found = await Promise.allSettled(wanted.map((id) => loader.find('id', id)));
    expect(found).toMatchObject([
      { value: { id: 'item-0' } },
      { reason: { code: 'REFUSED' } },
      { value: { id: 'item-1' } },
      { reason: { code: 'REFUSED' } },
    ]);
    expect(upstream.requests).toHaveLength(2);
  });

  it('cost no call when a window has shown them', async () => {
    await using upstream = await startUpstream(known(50));
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), freshLists());
    await loader.window(0, 50);
    await Promise.all(ids(50).map(({ id }) => loader.find('id', id)));
    expect(upstream.requests).toHaveLength(1);
  });

  it('fail one by one, so that one bad read leaves the others', async () => {
    await using upstream = await startUpstream((request, response) =>
      request.url?.endsWith('item-1') ? response.writeHead(400).end() : known(5)(request, response),
    );
    const loader = createInstrumentLoader(upstream.rest, customerScope(undefined), freshLists());
    const [first, second] = await Promise.allSettled([
      loader.find('id', 'item-0'),
      loader.find('id', 'item-1'),
    ]);
    expect(first).toMatchObject({ status: 'fulfilled', value: { id: 'item-0' } });
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'REFUSED' } });
  });
});
