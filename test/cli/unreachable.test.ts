import dns from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { readVariables } from '../../src/app/config.ts';
import { receiverAt } from '../../src/cli/forward/receivers.ts';
import { tokenOf } from '../../src/cli/token.ts';
import { openSandbox } from '../sandbox/harness.ts';

/** Where nobody listens, by a name of two addresses: Node's error for these has no message. */
let url: string;
beforeAll(async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://localhost:${(server.address() as AddressInfo).port}/hook`;
  server.close();
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
  const lookup = (_name: string, _options: unknown, callback: (error: null, found: unknown) => void) =>
    callback(null, addresses);
  vi.spyOn(dns, 'lookup').mockImplementation(lookup as unknown as typeof dns.lookup);
  syncBuiltinESMExports();
});
afterAll(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

it('a receiver whose name has several addresses is told to refuse connections', async () => {
  const receiver = receiverAt(url, 'secret');
  const event = { id: 'a', type: 'CEP', cursor: 'a', receivedAt: '2026-11-22T09:00:00.000Z' } as const;
  expect(await receiver.take(event)).toEqual({
    text: expect.stringContaining('ECONNREFUSED'),
    isAway: true,
  });
  await receiver.close();
});

it('an identity provider whose name has several addresses is told to refuse connections', async () => {
  const token = tokenOf(
    readVariables({
      PASARELA_TOKEN_URL: url,
      PASARELA_TOKEN_CLIENT_ID: 'id',
      PASARELA_TOKEN_CLIENT_SECRET: 'secret',
    }),
  );
  await expect(token.get()).rejects.toThrow(/does not answer: .*ECONNREFUSED/);
});

it('a receiver of the sandbox’s webhooks whose name has several addresses is shown to refuse connections', async () => {
  await using box = await openSandbox();
  await box.register('MONEY_IN', url);
  const [{ clabe } = { clabe: '' }] = box.seeded.accounts;
  await box.post('/sandbox/spei-credits', { clabe, amount: '5.00' });
  await box.step(1);
  expect((await box.get('/sandbox/deliveries')).text).toContain('"error":"ECONNREFUSED"');
});
