import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readVariables } from '../../src/app/config.ts';
import { openUpstream } from '../../src/cli/upstream.ts';
import { until } from '../helpers/until.ts';

it('acts for the client that is named, of several, in either case', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-clients-'));
  const ids = ['11111111-2222-4333-8444-555555555555', 'aaaaaaaa-2222-4333-8444-bbbbbbbbbbbb'];
  const file = join(folder, 'clients.json');
  await writeFile(
    file,
    JSON.stringify(ids.map((clientId) => ({ clientId, clientSecret: 'secret', apiKey: 'key' }))),
  );
  const open = (named: string | undefined) =>
    openUpstream(
      readVariables({
        ...{ UPSTREAM_URL: 'http://127.0.0.1:9', WEBHOOK_SECRET: 'a secret that is long enough for it' },
        ...{ AUTH_MODE: 'service', AUTH_ISSUER: 'https://id.example.mx', AUTH_AUDIENCE: 'pasarela' },
        ...{ AUTH_JWT_SECRET: 'secret', AUTH_CLIENT_CLAIM: 'merchant', UPSTREAM_CLIENTS: file },
        ...(named === undefined ? {} : { UPSTREAM_CLIENT_ID: named }),
      }),
    );
  for (const id of ids) {
    for (const named of [id, id.toUpperCase()]) {
      await using access = await open(named);
      expect(access.rest.clientId).toBe(id);
    }
  }
  for (const named of [undefined, '11111111-2222-4333-8444-666666666666'])
    await expect(open(named)).rejects.toThrow('name the one to act for in UPSTREAM_CLIENT_ID');
  // The other was taken out of the file: a command for it must not act for the one that is left.
  const clients = [{ clientId: ids[0], clientSecret: 'secret', apiKey: 'key' }];
  await writeFile(file, JSON.stringify(clients));
  await expect(open(ids[1])).rejects.toThrow(`UPSTREAM_CLIENTS does not hold ${ids[1]}`);
  for (const named of [undefined, ids[0]]) {
    await using access = await open(named);
    expect(access.rest.clientId).toBe(ids[0]);
  }
  await rm(folder, { recursive: true });
});

it('leaves no connection to a service that does not accept the token', async () => {
  // It would keep an idle connection for longer than the test lasts.
  const service = createServer({ keepAliveTimeout: 600_000 }, (_, response) => {
    response.writeHead(401, { 'content-type': 'application/json' }).end('{}');
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  const claims = { client_id: '11111111-2222-4333-8444-555555555555' };
  const variables = readVariables({
    UPSTREAM_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    WEBHOOK_SECRET: 'a secret that is long enough for it',
    PASARELA_TOKEN: `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`,
  });
  let connections = 0;
  service.on('connection', (connection) => {
    connections += 1;
    connection.on('close', () => {
      connections -= 1;
    });
  });
  await expect(openUpstream(variables)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  await until(() => connections === 0);
  service.close();
});
