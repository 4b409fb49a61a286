import { setTimeout } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { readPage } from '../docs/pages.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';

/** The section of ARCHITECTURE.md that says which REST calls an everyday query takes. */
const section = (await readPage('ARCHITECTURE.md'))
  .split('### What an everyday query costs\n')[1]
  ?.split('\n\n')
  .slice(0, 4)
  .join('\n');
const query = section?.match(/`(\{ client \{ accounts .*?)`/)?.[1] ?? '';
/** How long after the query before each row's query comes, in milliseconds. */
const WAITS = [0, 2_000, 6_000, 61_000, 301_000];
const rows = [...(section ?? '').matchAll(/^\| [^|]+ \| (\d+)[^|]* \| (\d+)[^|]* \|$/gm)];

it.each([
  ['passthrough', 1],
  ['service', 2],
] as const)('in %s mode an everyday query takes the REST calls of ARCHITECTURE.md', async (mode, column) => {
  let past = 0;
  // It stands still between the rows, however slow the machine is.
  const began = performance.now();
  const measured = vi.spyOn(performance, 'now').mockImplementation(() => began + past);
  try {
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    const config = mode === 'service' ? { service: serviceFor(sandbox) } : {};
    await using gateway = await startGateway({ sandbox, webhooks: false, config });
    const token = mode === 'service' ? await callerToken() : sandbox.accessToken;
    const requests = async () => (await control(sandbox, 'GET', '/sandbox/requests')).total;
    const calls: number[] = [];
    for (const wait of WAITS) {
      past += wait;
      // The memory of tokens reads its clock once in 100 ms (`CLOCK_MS` of auth/known-callers.ts).
      await setTimeout(150);
      const before = await requests();
      const { errors } = await gateway.query(query, {}, { authorization: `Bearer ${token}` });
      expect(errors).toBeUndefined();
      calls.push((await requests()) - before);
    }
    expect(rows.map((row) => Number(row[column]))).toEqual(calls);
  } finally {
    measured.mockRestore();
  }
});
