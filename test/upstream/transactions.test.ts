import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { customerScope } from '../../src/upstream/customer-scope.ts';
import { createTransactionLoader } from '../../src/upstream/transactions.ts';
import { json, startUpstream } from '../helpers/http-stub.ts';

const SLOW = '11111111-2222-4333-8444-000000000001';
const FAST = '11111111-2222-4333-8444-000000000002';
const NONE = '11111111-2222-4333-8444-000000000003';
const INSTRUMENTS = {
  find: () => {
    throw new Error('is not asked');
  },
} as never;

it('an answer is there although another of its batch has not come', async () => {
  const waiting: ServerResponse[] = [];
  await using upstream = await startUpstream(({ url = '' }, response) => {
    if (url.endsWith(SLOW)) waiting.push(response);
    else if (url.endsWith(FAST)) json(response, { id: FAST });
    else json(response, {}, 404);
  });
  const transactions = createTransactionLoader(upstream.rest, customerScope(undefined), INSTRUMENTS);
  const slow = transactions.get(SLOW);
  const [fast, none, again] = await Promise.all(
    [FAST, NONE, FAST].map((id) => transactions.get(id).catch((error: unknown) => error)),
  );
  expect([fast, none, again]).toEqual([{ id: FAST }, null, { id: FAST }]);
  expect(waiting).toHaveLength(1);
  for (const response of waiting) json(response, { id: SLOW });
  expect(await slow).toEqual({ id: SLOW });
  expect(upstream.requests).toHaveLength(3);
});
