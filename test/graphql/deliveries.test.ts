import { expect, it } from 'vitest';
import { countDelivery } from '../../src/graphql/deliveries.ts';
import { ORIGIN } from '../../src/graphql/executor/graphql-js.ts';
import { stillTime } from '../helpers/still-time.ts';

it('a delivery tells how long an event took to its readers, and nothing of history’s age', () => {
  using _ = stillTime();
  const told: unknown[] = [];
  const metrics = {
    delivered: (type: string, readers: number) => told.push([type, readers]),
    lag: (ms: number) => told.push(ms),
    gap: () => told.push('gap'),
    slow: () => told.push('slow'),
  };
  const since = Date.now() - 1_000;
  const deliver = (receivedMsAgo: number) => {
    const receivedAt = new Date(Date.now() - receivedMsAgo).toISOString();
    countDelivery(metrics, { data: {}, [ORIGIN]: { type: 'MONEY_IN', receivedAt } } as object, 3, since);
  };
  deliver(200);
  deliver(60_000);
  expect(told.splice(0)).toEqual([['MONEY_IN', 3], 200, ['MONEY_IN', 3]]);
  // By the clock of another process, which is ahead: the sum of the histogram must not go down.
  deliver(-20);
  expect(told).toEqual([['MONEY_IN', 3], 0]);
});
