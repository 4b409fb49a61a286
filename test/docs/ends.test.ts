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

it('docs/operations.md says how long an end takes with the chart, and after how long it is killed', async () => {
  const [delay, grace, ends, killed] = await figuresOf('chart and `deploy/kubernetes`');
  const values = parse(await readPage('charts/pasarela/values.yaml'));
  const read = readVariables({ ...values.config, WEBHOOK_SECRET: 'a secret for this test alone' });
  const shutdown = { delayMs: read.SHUTDOWN_DELAY_MS, graceMs: read.SHUTDOWN_GRACE_MS };
  expect([delay, grace]).toEqual([shutdown.delayMs / 1_000, shutdown.graceMs / 1_000]);
  expect(ends).toBe(longestEndMs(shutdown, read.OPERATION_TIMEOUT_MS) / 1_000 + TRACES_S);
  expect(killed).toBe(values.terminationGracePeriodSeconds);
});
