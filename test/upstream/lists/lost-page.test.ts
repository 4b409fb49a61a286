import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { Paging } from '../../../src/upstream/lists/paging.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { walkList } from '../../../src/upstream/lists/walk.ts';
import { readWholeList } from '../../../src/upstream/lists/whole-list.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

const PAGE = 100;

/** What comes for a page that the service does not have, or does not show. */
type Refusal = 'no items' | 'the last page' | number;

/** A list of three pages, the last of one item. As the third is asked for, it is `left` items long. */
const losing = (left: number, refusal: Refusal, refused?: number) => {
  let total = 2 * PAGE + 1;
  return (request: IncomingMessage, response: ServerResponse) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const [asked, perPage] = [Number(query.get('page') ?? 1), Number(query.get('per_page') ?? 50)];
    if (asked === 3) total = left;
    const last = Math.ceil(total / perPage);
    if ((asked > last || asked === refused) && typeof refusal === 'number')
      return json(response, {}, refusal);
    const page = refusal === 'the last page' ? Math.min(asked, last) : asked;
    const items = Array.from({ length: total }, (_, at) => ({ id: `account-${at}` }));
    const data = items.slice((page - 1) * perPage, page * perPage);
    json(response, { data, currentPage: page, perPage, totalItem: total });
  };
};

const readings: readonly (readonly [string, (rest: Rest) => Promise<number>])[] = [
  [
    'a walk',
    async (rest) => {
      const reader = new ListReader(rest, ACCOUNT_LIST, new Paging(ACCOUNT_LIST, () => 0));
      const { index } = await walkList(reader, { onLastReads: () => {}, onProgress: () => {} });
      return index.size;
    },
  ],
  ['a whole reading', async (rest) => (await readWholeList(rest, ACCOUNT_LIST)).length],
];

for (const [what, read] of readings) {
  it.each<Refusal>(['no items', 'the last page', 404, 400])(
    `${what} has all of a list that loses its last page meanwhile, where %s comes for one beyond the end`,
    async (refusal) => {
      for (const left of [2 * PAGE, PAGE]) {
        await using upstream = await startUpstream(losing(left, refusal));
        expect(await read(upstream.rest)).toBe(left);
      }
    },
  );

  it(`${what} ends with the error of a page that the service refuses though the list has it`, async () => {
    await using upstream = await startUpstream(losing(2 * PAGE + 1, 404, 2));
    await expect(read(upstream.rest)).rejects.toMatchObject({ code: 'REFUSED' });
    expect(upstream.requests.filter((request) => request.includes('page=2'))).toHaveLength(1);
  });
}
