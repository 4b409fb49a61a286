import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { customerScope } from '../../../src/upstream/customer-scope.ts';
import { createInstrumentLoader } from '../../../src/upstream/instruments.ts';
import { type ClientLists, createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { Paging } from '../../../src/upstream/lists/paging.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

/** What comes for a page beyond the end. */
type BeyondEnd = 'the last page' | number;

/** A list in pages of the size that is asked for, or of a size of its own. */
const paged =
  (total: number, ownSize: number | undefined, beyondEnd: BeyondEnd) =>
  (request: IncomingMessage, response: ServerResponse) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const perPage = ownSize ?? Number(query.get('per_page') ?? 20);
    const last = Math.max(1, Math.ceil(total / perPage));
    const asked = Number(query.get('page') ?? 1);
    if (asked > last && typeof beyondEnd === 'number') return json(response, {}, beyondEnd);
    const page = Math.min(asked, last);
    const data = Array.from({ length: total }, (_, at) => ({ id: `id-${at}`, ownerId: `owner-${at}` }));
    const shown = data.slice((page - 1) * perPage, page * perPage);
    json(response, { data: shown, currentPage: page, perPage, totalItem: total, totalItems: total });
  };

const listsAt = (now: () => number): ClientLists =>
  createClientLists({ maxAgeMs: 5_000, now, logger: silentLogger, onOutdated: () => undefined });

const windowOf = (rest: Rest, offset: number, limit: number) =>
  createInstrumentLoader(rest, customerScope(undefined), listsAt(performance.now.bind(performance))).window(
    offset,
    limit,
  );

describe.each<BeyondEnd>([404, 400, 'the last page'])(
  'a list in pages of 20, whatever is asked for, where %s comes for a page beyond the end',
  (beyondEnd) => {
    it('shows what stands far back, at once and once its sizes are forgotten', async () => {
      await using upstream = await startUpstream(paged(301, 20, beyondEnd));
      let now = 0;
      const lists = listsAt(() => now);
      const operation = () => createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists });
      const owned = { key: 'ownerId', customerId: 'owner-200', isSeen: () => true } as const;
      const narrowed = () => createPlacedLoader(upstream.rest, ACCOUNT_LIST, { lists, owned });
      const reads = [
        async () => expect(await operation().find('id', 'id-200')).toMatchObject({ id: 'id-200' }),
        async () => expect((await narrowed().window(0, 10)).items).toMatchObject([{ id: 'id-200' }]),
        async () => {
          const { items, total } = await operation().window(200, 10);
          expect([items.map(({ id }) => id), total]).toEqual([
            Array.from({ length: 10 }, (_, at) => `id-${200 + at}`),
            301,
          ]);
        },
      ];
      for (const read of [...reads, ...reads]) {
        await read();
        now += 61_000;
      }
    });
  },
);

describe.each<BeyondEnd>([404, 400, 'the last page'])(
  'a list of 198 in pages as they are asked for, where %s comes for a page beyond the end',
  (beyondEnd) => {
    it('shows what a window has before the end', async () => {
      await using upstream = await startUpstream(paged(198, undefined, beyondEnd));
      const { items, total } = await windowOf(upstream.rest, 195, 100);
      expect([items.map(({ id }) => id), total]).toEqual([['id-195', 'id-196', 'id-197'], 198]);
    });

    it('has nothing in a window that lies wholly beyond the end, and tells its total', async () => {
      await using upstream = await startUpstream(paged(198, undefined, beyondEnd));
      for (const [offset, limit] of [
        [200, 100],
        [198, 99],
        [198, 2],
        [250, 3],
      ] as const)
        expect(await windowOf(upstream.rest, offset, limit)).toMatchObject({ items: [], total: 198 });
    });
  },
);

describe.each<BeyondEnd>([404, 'the last page'])(
  'a list of 60 that the service gives in pages of 100, whatever is asked for, where %s comes for a page beyond the end',
  (beyondEnd) => {
    const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);
    const second = Array.from({ length: 20 }, (_, at) => `id-${20 + at}`);

    it('shows its second window, where its paging is documented', async () => {
      await using upstream = await startUpstream(paged(60, 100, beyondEnd));
      const { items, total } = await windowOf(upstream.rest, 20, 20);
      expect([idsOf(items), total]).toEqual([second, 60]);
    });

    it('shows its second window, where another list has shown how pages are counted', async () => {
      await using upstream = await startUpstream(paged(60, 100, beyondEnd));
      const paging = new Paging(ACCOUNT_LIST, () => 0);
      paging.learnFirst(1);
      const { items, total } = await new ListReader(upstream.rest, ACCOUNT_LIST, paging).window(20, 20);
      expect([idsOf(items), total]).toEqual([second, 60]);
    });
  },
);
