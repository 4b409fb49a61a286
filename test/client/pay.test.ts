import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { payOnBadNetworks } from './paying.ts';

// `npm run soak:clients -- --payments 500` makes five hundred.
it('money moves once, and the app ends knowing what the ledger knows, or saying that it does not', {
  timeout: 420_000,
}, async () => {
  const work = await mkdtemp(join(tmpdir(), 'pasarela-paying-'));
  try {
    const { lies, ended, appKills } = await payOnBadNetworks({
      payments: 32,
      seed: 5,
      work,
      lifetimeSeconds: 420,
    });
    expect(lies).toEqual([]);
    expect(appKills).toBeGreaterThan(0);
    expect(ended['done']).toBeGreaterThan(0);
    expect(ended['nothing']).toBeUndefined();
  } finally {
    await rm(work, { recursive: true, force: true });
  }
});
