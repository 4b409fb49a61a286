import { GraphQLError } from 'graphql';
import { expect, it } from 'vitest';
import { countDelivery } from '../../src/graphql/deliveries.ts';
import { ORIGIN } from '../../src/graphql/executor/graphql-js.ts';
import { stillTime } from '../helpers/still-time.ts';

const watched = () => {
  const told: unknown[] = [];
  const metrics = {
    delivered: (type: string, readers: number) => told.push([type, readers]),
    lag: (ms: number) => told.push(ms),
    failed: (code: string, readers: number) => told.push([code, readers]),
    gap: () => told.push('gap'),
    slow: () => told.push('slow'),
  };
  return { told, metrics };
};

it('a delivery tells how long an event took to its readers, and nothing of history’s age', () => {
  using _ = stillTime();
  const { told, metrics } = watched();
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

it('a result with errors tells the code of the first one, for each reader, and a stream without readers nothing', () => {
  const { told, metrics } = watched();
  const errors = ['STORE_UNAVAILABLE', 'INTERNAL'].map(
    (code) => new GraphQLError('', { extensions: { code } }),
  );
  countDelivery(metrics, { errors }, 3, 0);
  countDelivery(metrics, { errors }, 0, 0);
  expect(told).toEqual([['STORE_UNAVAILABLE', 3]]);
});
