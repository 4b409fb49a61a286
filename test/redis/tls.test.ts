import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startSecureRedis } from '../helpers/private-ca.ts';

const PROGRAM = fileURLToPath(new URL('ended-midway.ts', import.meta.url));

it('ends connections over TLS whenever it is told to, under a certificate that is trusted or not', async () => {
  await using redis = await startSecureRedis();
  for (const trusted of [{}, { NODE_EXTRA_CA_CERTS: redis.authority }]) {
    // In a process of its own: what nobody listens for ends it.
    const ended = await promisify(execFile)(process.execPath, [PROGRAM, redis.url], {
      env: { PATH: process.env['PATH'], ...trusted },
    });
    expect(ended).toEqual({ stdout: 'all ended\n', stderr: '' });
  }
}, 120_000);
