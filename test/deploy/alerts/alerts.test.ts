import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type Prometheus, startPrometheus } from '../../helpers/prometheus.ts';
import { until } from '../../helpers/until.ts';
import type { OpenedWorld } from './world.ts';
import { WORLDS } from './worlds.ts';

const LIFETIME_SECONDS = 1_800;
const LONG_MS = 300_000;
/** In the place of every rule's `for`: how long a fault has to last is not what is tried here. */
const WAIT = '1s';

describe.each(WORLDS)('$name', ({ open, faults }) => {
  const cleanup = new AsyncDisposableStack();
  let opened: OpenedWorld;
  let prometheus: Prometheus;
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pasarela-alerts-'));
    cleanup.defer(() => rm(folder, { recursive: true, force: true }));
    opened = await open(cleanup);
    prometheus = await startPrometheus(folder, [opened.url], () => WAIT, LIFETIME_SECONDS);
    cleanup.defer(() => prometheus.stop());
    // An increase takes a sample from before it.
    const scrapes = () => prometheus.value('min(count_over_time(pasarela_build_info[1h]))');
    await until(async () => ((await scrapes()) ?? 0) >= 2);
    await opened.deliver?.();
  }, LONG_MS);
  afterAll(() => cleanup.disposeAsync(), LONG_MS);

  it('is quiet before anything happens', { timeout: LONG_MS }, async () => {
    // Where nobody delivers anything, that is the fault.
    const allowed = opened.deliver === undefined ? faults.flatMap(({ alerts }) => alerts) : [];
    await until(async () => (await prometheus.firing()).every((name) => allowed.includes(name)));
  });

  it.for(faults.map(({ alerts, fault }, at) => ({ names: alerts.join(', '), alerts, fault, at })))(
    '$names: $fault',
    { timeout: LONG_MS },
    async ({ alerts, at }, { signal }) => {
      const fired = async () => {
        const firing = await prometheus.firing();
        return alerts.filter((name) => firing.includes(name));
      };
      // A machine that stands still may have caused one already.
      if (opened.deliver !== undefined)
        await until(async () => signal.aborted || (await fired()).length === 0);
      signal.throwIfAborted();
      const ended = new AbortController();
      const causing = opened.causes[at]?.(ended.signal, prometheus);
      const failing = Promise.resolve(causing).then(() => new Promise<never>(() => {}));
      try {
        await Promise.race([
          until(async () => signal.aborted || (await fired()).length === alerts.length),
          failing,
        ]);
      } finally {
        ended.abort();
      }
      await causing;
    },
  );
});
