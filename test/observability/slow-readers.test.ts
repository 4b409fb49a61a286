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
