import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { buildServer } from '../../src/app/gateway.ts';
import { openMoney } from '../../src/money/open-money.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { gatewayConfig } from '../helpers/gateway-config.ts';
import { until } from '../helpers/until.ts';

it('says what it knows, and how old that is, while a store does not answer', async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-test-'));
  let held: PromiseWithResolvers<boolean> | undefined;
  const server = buildServer(gatewayConfig(sandbox.url, dataDir), collectingLogger([]), async (options) => {
    const money = await openMoney(options);
    return { ...money, isAvailable: () => held?.promise ?? money.isAvailable() };
  });
  const url = await server.start();
  const ask = async () => {
    const response = await fetch(`${url}/readyz`);
    // `/readyz` tells the age of its knowledge (docs/monitoring.md).
    return (await response.json()) as { status: string; ageMs: number };
  };
  try {
    await until(async () => (await ask()).status === 'ready');
    // Twice: the same must hold after a store has come back.
    for (let time = 0; time < 2; time += 1) {
      held = Promise.withResolvers();
      // A look serves for a second: what is older was told while the next one was under way.
      await until(async () => (await ask()).ageMs > 1_500);
      expect(await ask()).toMatchObject({ status: 'ready' });
      held.resolve(false);
      await until(async () => (await ask()).status === 'degraded');
      held = undefined;
      await until(async () => (await ask()).status === 'ready');
    }
  } finally {
    held?.resolve(true);
    await server.stop();
    await sandbox.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});
