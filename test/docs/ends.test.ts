import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { readVariables } from '../../src/app/config.ts';
import { longestEndMs } from '../../src/app/shutdown.ts';
import { readPage } from './pages.ts';

/** What the traces add (src/observability/tracing.ts). */
const TRACES_S = 2;

/** A row of the table of docs/operations.md, "How long an end takes": its figures in seconds, in their order. */
async function figuresOf(what: string): Promise<readonly number[]> {
  const row = (await readPage('docs/operations.md'))
    .split('\n')
    .find((line) => line.startsWith(`| ${what} |`));
  return [...(row ?? '').matchAll(/(\d+) s\b/g)].map(([, seconds]) => Number(seconds));
}

it('docs/operations.md says how long an end takes by default', async () => {
  const [delay, grace, ends, withTraces] = await figuresOf('the defaults');
  const read = readVariables({});
  const shutdown = { delayMs: read.SHUTDOWN_DELAY_MS, graceMs: read.SHUTDOWN_GRACE_MS };
  expect([delay, grace]).toEqual([shutdown.delayMs / 1_000, shutdown.graceMs / 1_000]);
  expect(ends).toBe(longestEndMs(shutdown, read.OPERATION_TIMEOUT_MS) / 1_000);
  expect(withTraces).toBe((ends ?? 0) + TRACES_S);
});

/** The delay and the grace of the chart, in milliseconds, and how long a payment may take. */
async function ofTheChart() {
  const values = parse(await readPage('charts/pasarela/values.yaml'));
  const read = readVariables({ ...values.config, WEBHOOK_SECRET: 'a secret for this test alone' });
  const shutdown = { delayMs: read.SHUTDOWN_DELAY_MS, graceMs: read.SHUTDOWN_GRACE_MS };
  return {
    values,
    shutdown,
    endsAfter: longestEndMs(shutdown, read.OPERATION_TIMEOUT_MS) / 1_000 + TRACES_S,
  };
}

it('docs/operations.md says how long an end takes with the chart, and after how long it is killed', async () => {
  const [delay, grace, ends, killed] = await figuresOf('chart and `deploy/kubernetes`');
  const { values, shutdown, endsAfter } = await ofTheChart();
  expect([delay, grace]).toEqual([shutdown.delayMs / 1_000, shutdown.graceMs / 1_000]);
  expect(ends).toBe(endsAfter);
  expect(killed).toBe(values.terminationGracePeriodSeconds);
});

it('docs/operations.md says when each step of that end is over at the latest', async () => {
  const { shutdown, endsAfter } = await ofTheChart();
  const [delay, grace] = [shutdown.delayMs / 1_000, shutdown.graceMs / 1_000];
  const section = (await readPage('docs/operations.md')).split('\n### How long an end takes\n')[1] ?? '';
  const steps = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| (\d+) \| (\d+) \| /gm)];
  // The parts of src/app/shutdown.ts.
  const asked = delay + Math.min(10, grace / 4);
  const sockets = asked + 0.6 * (delay + grace - asked);
  const streams = sockets + 0.8 * (delay + grace - sockets);
  const ends = [delay, asked, sockets, Math.floor(streams), endsAfter];
  expect(steps.map(([, from, until]) => [Number(from), Number(until)])).toEqual(
    ends.map((end, index) => [ends[index - 1] ?? 0, end]),
  );
});
