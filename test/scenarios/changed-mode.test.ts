import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import type { ServerConfig } from '../../src/app/server-config.ts';
import { startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { documentOf, payable } from './faults/payments.ts';

it.each([
  ['a claim that no token has', 'no-such-claim', true],
  ['the subject', 'sub', false],
])(
  'a key of passthrough is known in service mode where it belongs to %s: %s, %s',
  async (_what, keyOwnerClaim, isKnown) => {
    await using cleanup = new AsyncDisposableStack();
    const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    cleanup.defer(() => sandbox.stop());
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-mode-'));
    cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
    const { input } = await payable(sandbox, 'createMoneyOut', 'before the change');
    const pay = async (config: Partial<ServerConfig>, token: string) => {
      await using gateway = await startGateway({ sandbox, webhooks: false, config: { dataDir, ...config } });
      const authorization = `Bearer ${token}`;
      const { data } = await gateway.query(documentOf('createMoneyOut'), { input }, { authorization });
      return data?.['result'];
    };

    const before = await pay({}, sandbox.accessToken);
    const after = await pay({ service: { ...serviceFor(sandbox), keyOwnerClaim } }, await callerToken());

    expect(before).toMatchObject({ replayed: false });
    expect(after).toMatchObject(isKnown ? { ...before, replayed: true } : { replayed: false });
  },
);
