import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { control } from '../helpers/gateway.ts';
import { startProgram } from '../helpers/program.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A request with any headers, as a browser would send them; fetch sets its own `Host`. */
async function send(
  url: string,
  headers: Readonly<Record<string, string>>,
  method = 'GET',
  body?: string,
): Promise<Answer> {
  const call = request(url, { method, headers });
  call.end(body);
  const [response] = await once(call, 'response');
  let text = '';
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode, headers: response.headers, body: text };
}

const JSON_TYPE = { 'content-type': 'application/json' };
const FOREIGN_HOSTS = [
  'evil.example',
  'evil.example:4010',
  '127.0.0.1.nip.io',
  'localhost.evil.example',
  'localhost@evil.example',
  'evil-localhost',
  '128.0.0.1',
  '0.0.0.0',
  '[::2]',
  '127.0.0.1:80:80',
];

let sandbox: Sandbox;
let clabe: string;
beforeAll(async () => {
  sandbox = await startSandbox({
    port: 0,
    speed: 0,
    seed: 1,
    hosts: ['sandbox.internal', 'my_box'],
    webhookHosts: ['gateway.example'],
  });
  clabe = (await control(sandbox, 'GET', '/sandbox')).accounts[0].clabe;
});
afterAll(() => sandbox.stop());

const movements = async (): Promise<number> =>
  (await control(sandbox, 'GET', '/sandbox/ledger')).movements.length;
const credit = () => JSON.stringify({ clabe, amount: '1.00' });

describe('the sandbox', () => {
  it.each(FOREIGN_HOSTS)('does not answer to the name %j', async (host) => {
    const before = await movements();
    for (const path of ['/sandbox', '/v1/banks', '/nothing']) {
      const { status, body } = await send(`${sandbox.url}${path}`, { host });
      expect([400, 421]).toContain(status);
      expect(body).not.toContain(sandbox.accessToken);
    }
    await send(`${sandbox.url}/sandbox/spei-credits`, { host, ...JSON_TYPE }, 'POST', credit());
    expect(await movements()).toBe(before);
  });

  it.each([
    'localhost',
    'LOCALHOST:1',
    '127.0.0.1',
    '127.9.8.7:80',
    '[::1]',
    '[::1]:4010',
    'sandbox.internal:1',
    'my_box:4010',
  ])('answers to the name %s', async (host) => {
    expect((await send(`${sandbox.url}/sandbox`, { host })).status).toBe(200);
  });

  it('answers at its own url where it listens on an address that is none of loopback', async () => {
    // Any machine has this address of IPv6, under which it reaches its own 127.0.0.1.
    await using mapped = await startSandbox({ port: 0, speed: 0, seed: 1, host: '::ffff:127.0.0.1' });
    const answer = await fetch(`${mapped.url}/sandbox`);
    expect(answer.status).toBe(200);
    for (const host of ['evil.example', '[::ffff:a00:1]'])
      expect((await send(`${mapped.url}/sandbox`, { host })).status).toBe(421);
  });

  it('changes nothing for a page of another origin, by whatever form', async () => {
    const before = await movements();
    const { accounts, clientId, accessToken } = await control(sandbox, 'GET', '/sandbox');
    const transfer = JSON.stringify({
      clientId,
      sourceInstrumentId: accounts[0].instrumentId,
      destinationInstrumentId: accounts[1].instrumentId,
      amount: '1.00',
      currency: 'MXN',
      description: 'x',
      externalReference: '1',
    });
    const forms = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      undefined,
    ];
    for (const type of forms) {
      const headers = {
        authorization: `Bearer ${accessToken}`,
        ...(type === undefined ? {} : { 'content-type': type }),
      };
      for (const [path, body] of [
        ['/sandbox/spei-credits', credit()],
        ['/sandbox/clock', '{ "advanceSeconds": 1 }'],
        ['/sandbox/faults', '{ "fault": "hang" }'],
        ['/v1/transactions/internal_transaction', transfer],
        ['/v1/transactions/money_out', transfer],
      ] as const) {
        const { status } = await send(`${sandbox.url}${path}`, headers, 'POST', body);
        expect({ type, path, status }).toEqual({ type, path, status: 415 });
      }
    }
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1.nip.io']) {
      const answer = await send(
        `${sandbox.url}/sandbox/spei-credits`,
        { origin, ...JSON_TYPE },
        'POST',
        credit(),
      );
      expect(answer.status).toBe(403);
      const asked = await send(
        `${sandbox.url}/sandbox/spei-credits`,
        { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
        'OPTIONS',
      );
      for (const { headers } of [answer, asked])
        expect(headers).not.toHaveProperty('access-control-allow-origin');
      expect(asked.status).toBeGreaterThanOrEqual(400);
    }
    expect(await movements()).toBe(before);
  });
});

describe('a webhook registered at the sandbox', () => {
  const register = (url: string) =>
    send(
      `${sandbox.url}/v1/clients/${sandbox.clientId}/webhooks`,
      { authorization: `Bearer ${sandbox.accessToken}`, ...JSON_TYPE },
      'POST',
      JSON.stringify({ client_id: sandbox.clientId, url, token: 't', webhook_type: 'MONEY_IN' }),
    );

  it.each([
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://127.0.0.1.nip.io/',
    'http://localhost.evil.example/',
    'http://0.0.0.0/',
    'http://[::ffff:10.0.0.1]/',
    'http://evil.example@10.0.0.1/',
  ])('does not lead to %s', async (url) => {
    const { status, body } = await register(url);
    expect(status).toBe(400);
    expect(body).toContain('SANDBOX_WEBHOOK_HOSTS');
    // Nor can one that is there be turned there.
    const made = await register('http://127.0.0.1:9/');
    const { data, id } = JSON.parse(made.body);
    const changed = await send(
      `${sandbox.url}/v1/clients/${sandbox.clientId}/webhooks/${id ?? data.id}`,
      { authorization: `Bearer ${sandbox.accessToken}`, ...JSON_TYPE },
      'PATCH',
      JSON.stringify({ url, webhook_status: 'INACTIVE' }),
    );
    expect(changed.status).toBe(400);
    await send(
      `${sandbox.url}/v1/clients/${sandbox.clientId}/webhooks/${id ?? data.id}`,
      { authorization: `Bearer ${sandbox.accessToken}` },
      'DELETE',
    );
  });

  it('may lead to a host that is named, follows no redirect, and shows little of an answer', async () => {
    expect((await register('https://gateway.example/hook')).status).toBeLessThan(300);
    const paths: string[] = [];
    const receiver = createServer((incoming, response) => {
      paths.push(incoming.url ?? '');
      if (incoming.url === '/moved') response.writeHead(302, { location: '/elsewhere' }).end();
      else response.end('s'.repeat(50_000));
    }).listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const { port } = receiver.address() as AddressInfo;
    for (const path of ['/moved', '/long']) {
      expect((await register(`http://localhost:${port}${path}`)).status).toBeLessThan(300);
    }
    const { deliveries } = await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '1.00' });
    expect(paths.sort()).toEqual(['/long', '/moved']);
    const replies = deliveries.flatMap(
      ({ attempts }: { attempts: { status: number; body: string }[] }) => attempts,
    );
    expect(replies.map(({ status }: { status: number }) => status)).toContain(302);
    const lengths = replies.map(({ body }: { body: string | null }) => body?.length ?? 0);
    expect(Math.max(...lengths)).toBe(1_000);
    receiver.close();
    receiver.closeAllConnections();
  });
});

it('the page of the demo holds its token for nobody who asks under another name', async () => {
  const program = startProgram('src/start.js', {
    PORT: '0',
    SANDBOX_PORT: '0',
    SANDBOX_HOSTS: 'demo.internal',
  });
  try {
    const [, url = ''] = await program.says(/GraphiQL {3}(http:\S+)/);
    const token = /eyJ[\w-]+\.[\w-]+\.[\w-]+/;
    // The page asks its own origin for the sandbox, which tells it the token.
    const sandboxFor = (host: string) => send(`${url}/workbench/sandbox`, { host });
    for (const host of ['localhost:4000', '127.0.0.1', '[::1]', 'demo.internal:4000'])
      expect((await sandboxFor(host)).body).toMatch(token);
    for (const host of FOREIGN_HOSTS) {
      for (const path of ['', '/workbench/session', '/workbench/sandbox']) {
        const { body, headers } = await send(`${url}${path}`, { host, accept: 'text/html' });
        expect(body).not.toMatch(token);
        expect(headers).not.toHaveProperty('access-control-allow-origin');
      }
    }
  } finally {
    await program.end('SIGKILL');
  }
});
