import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { createEventMetrics } from '../../src/observability/event-metrics.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { stillTime } from '../helpers/still-time.ts';

it('each reader for whom too many events waited is counted, and the log tells whose they are, once a minute for each client', async () => {
  using time = stillTime();
  const registry = new Registry();
  const lines: string[] = [];
  const { fanOut } = createEventMetrics(registry, collectingLogger(lines));
  fanOut.slow('one', 3);
  fanOut.slow('one', 1);
  fanOut.slow('other', 1);
  await time.pass(60_000);
  fanOut.slow('one', 2);
  const told = lines.map((line) => JSON.parse(line));
  expect(told.map(({ clientId, readers }) => [clientId, readers])).toEqual([
    ['one', 3],
    ['other', 1],
    ['one', 2],
  ]);
  const counted = registry.getSingleMetric('pasarela_events_slow_consumer_disconnects_total');
  expect((await counted?.get())?.values).toMatchObject([{ value: 7 }]);
});

it('each reader that is told of a gap is counted, and the log tells whose and why, once a minute for each client and reason', async () => {
  using time = stillTime();
  const registry = new Registry();
  const lines: string[] = [];
  const { fanOut } = createEventMetrics(registry, collectingLogger(lines));
  fanOut.gap({ clientId: 'one', reason: 'trimmed' }, 3);
  fanOut.gap({ clientId: 'one', reason: 'trimmed' }, 1);
  fanOut.gap({ clientId: 'one', reason: 'begun-anew' }, 1);
  fanOut.gap({ clientId: 'other', reason: 'trimmed' }, 1);
  await time.pass(60_000);
  fanOut.gap({ clientId: 'one', reason: 'trimmed' }, 2);
  const told = lines.map((line) => JSON.parse(line));
  expect(told.map(({ clientId, reason, readers }) => [clientId, reason, readers])).toEqual([
    ['one', 'trimmed', 3],
    ['one', 'begun-anew', 1],
    ['other', 'trimmed', 1],
    ['one', 'trimmed', 2],
  ]);
  const counted = await registry.getSingleMetric('pasarela_events_gaps_total')?.get();
  expect(
    counted?.values.filter(({ value }) => value > 0).map(({ labels, value }) => [labels, value]),
  ).toEqual([
    [{ reason: 'trimmed' }, 7],
    [{ reason: 'begun-anew' }, 1],
  ]);
});
