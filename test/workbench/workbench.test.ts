import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isOwnHost, type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';

let sandbox: Sandbox;
let gateway: RunningGateway;
let withoutPage: RunningGateway;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({
    sandbox,
    config: {
      workbench: {
        sandbox: { sandboxUrl: sandbox.url, isOwnHost: (host: string | undefined) => isOwnHost(host, []) },
        auth: 'passthrough',
      },
    },
  });
  withoutPage = await startGateway({ sandbox, webhooks: false });
});
afterAll(async () => {
  await withoutPage?.stop();
  await gateway?.stop();
  await sandbox?.stop();
});

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends headers that fetch would not, such as another Host. */
async function ask(path: string, { method = 'GET', headers = {}, body }: Asked = {}, at = gateway) {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; bytes: Buffer }>(
    (resolve, reject) => {
      const sent = request(new URL(path, at.url), { method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              bytes: Buffer.concat(chunks),
            }),
          );
      });
      sent.on('error', reject).end(body);
    },
  );
}

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const JSON_BODY = { 'content-type': 'application/json' };

describe('the page', () => {
  it('is what a browser gets at the address of the graph, and programs get the graph', async () => {
    const page = await ask('/graphql', { headers: HTML });
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.bytes.toString()).toContain('<div id="root">');
    expect((await gateway.query('{ client { id } }')).data.client.id).toBe(sandbox.clientId);
    const query = await ask(`/graphql?query=${encodeURIComponent('{ __typename }')}`, {
      headers: { accept: 'application/json', 'x-graphql-yoga-csrf': '1', 'content-type': 'application/json' },
    });
    expect(JSON.parse(query.bytes.toString())).toEqual({ data: { __typename: 'Query' } });
  });

  it('is one sentence where it is off', async () => {
    const page = await ask('/graphql', { headers: HTML }, withoutPage);
    expect(page.status).toBe(404);
    expect(page.bytes.toString()).toMatch(/^This is a GraphQL endpoint.*GRAPHIQL=true turns it on\)\.\n$/);
    for (const path of ['/graphql/workbench/session', '/graphql/workbench/index.html']) {
      expect((await ask(path, {}, withoutPage)).status).toBe(404);
    }
  });

  it('and its files come in the encoding that is taken, for ever where a name holds a hash', async () => {
    const page = (await ask('/graphql', { headers: HTML })).bytes.toString();
    const [, script = ''] = /src="graphql\/workbench\/([^"]+\.js)"/.exec(page) ?? [];
    const path = `/graphql/workbench/${script}`;
    const plain = await ask(path);
    expect(plain.headers['content-encoding']).toBeUndefined();
    const brotli = await ask(path, { headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } });
    expect(brotli.headers['content-encoding']).toBe('br');
    expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes)).toBe(true);
    const gzipped = await ask(path, { headers: { 'accept-encoding': 'gzip, br;q=0' } });
    expect(gzipped.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(gzipped.bytes).equals(plain.bytes)).toBe(true);
    expect(brotli.headers['cache-control']).toContain('immutable');
    expect(brotli.headers['vary']).toBe('accept-encoding');
    const again = await ask(path, {
      headers: { 'accept-encoding': 'br', 'if-none-match': String(brotli.headers['etag']) },
    });
    expect([again.status, again.bytes.length]).toEqual([304, 0]);
  });

  it.each(['nowhere.js', '../package.json', '..%2fpackage.json', 'index.html.br', '.', 'a/b.js', '%00.js'])(
    'has no file %s',
    async (name) => {
      const answer = await ask(`/graphql/workbench/${name}`);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.bytes.length).toBeLessThan(200);
    },
  );
});

describe('the way to the sandbox', () => {
  const clock = (asked: Asked) => ask('/graphql/workbench/sandbox/clock', asked);
  const step = JSON.stringify({ advanceSeconds: 0 });

  it('is open to the page itself', async () => {
    const { host } = new URL(gateway.url);
    const own = { ...JSON_BODY, origin: gateway.url, 'sec-fetch-site': 'same-origin' };
    expect((await clock({ method: 'POST', headers: own, body: step })).status).toBe(200);
    const described = await ask('/graphql/workbench/sandbox', { headers: { host } });
    expect(JSON.parse(described.bytes.toString())).toMatchObject({ clientId: sandbox.clientId });
  });

  it.each([
    ['a name that was bound to this machine', { host: 'evil.example' }],
    ['a name that begins like a loopback one', { host: '127.0.0.1.evil.example' }],
    ['a page of another origin', { origin: 'https://evil.example' }],
    ['a page of another port', { origin: 'http://127.0.0.1:1' }],
    ['a sandboxed frame', { origin: 'null' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another server of this machine', { 'sec-fetch-site': 'same-site' }],
  ])('is closed to %s', async (_who, headers) => {
    const answers = [
      await clock({ method: 'POST', headers: { ...JSON_BODY, ...headers }, body: step }),
      await ask('/graphql/workbench/sandbox', { headers: { ...headers } }),
    ];
    for (const { status, bytes, headers } of answers) {
      expect(status).toBe(403);
      expect(bytes.toString()).not.toContain(sandbox.accessToken);
      expect(headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  it('takes no body but JSON, none that is long, and leads nowhere but where the bar goes', async () => {
    expect(
      (await clock({ method: 'POST', headers: { 'content-type': 'text/plain' }, body: step })).status,
    ).toBe(415);
    const long = JSON.stringify({ advanceSeconds: 0, more: 'x'.repeat(20_000) });
    expect((await clock({ method: 'POST', headers: JSON_BODY, body: long })).status).toBe(413);
    for (const path of ['deliveries', 'ledger', '../v1/banks', 'clock/', 'faults/..%2fclock']) {
      expect((await ask(`/graphql/workbench/sandbox/${path}`)).status).toBe(404);
    }
  });

  it('does not exist in front of a service that is no sandbox, and the page is told so', async () => {
    await using other = await startGateway({
      sandbox,
      webhooks: false,
      config: { introspection: false, workbench: { sandbox: undefined, auth: 'passthrough' } },
    });
    expect((await ask('/graphql/workbench/sandbox', {}, other)).status).toBe(404);
    const session = await ask('/graphql/workbench/session', {}, other);
    expect(JSON.parse(session.bytes.toString())).toMatchObject({ sandbox: false, introspection: false });
  });

  it('and the token with it are not for pages that are opened under another name', async () => {
    const session = await ask('/graphql/workbench/session', { headers: { host: 'pasarela.lan:4000' } });
    expect(JSON.parse(session.bytes.toString())).toMatchObject({ sandbox: 'elsewhere' });
    expect(session.bytes.toString()).not.toContain(sandbox.accessToken);
  });
});

it('a file of the page is sent without its body to those who ask for its head', async () => {
  const page = (await ask('/graphql', { headers: HTML })).bytes.toString();
  const [, script = ''] = /src="graphql\/workbench\/([^"]+\.js)"/.exec(page) ?? [];
  const response = await fetch(`${gateway.url}/graphql/workbench/${script}`, { method: 'HEAD' });
  expect(Number(response.headers.get('content-length'))).toBeGreaterThan(1_000);
  expect(await response.text()).toBe('');
});

it('those who ask for the head of the page are told what a browser would get', async () => {
  const page = await ask('/graphql', { headers: HTML });
  const head = await ask('/graphql', { method: 'HEAD', headers: HTML });
  expect([head.status, head.headers['etag'], head.bytes.length]).toEqual([200, page.headers['etag'], 0]);
});

it('the root leads a browser to the page, those who wait for a start to readiness, and takes no operation', async () => {
  const led = async (method: string, headers: Readonly<Record<string, string>>) =>
    (await ask('/', { method, headers })).headers['location'];
  expect(await led('GET', HTML)).toBe('/graphql');
  expect(await led('HEAD', HTML)).toBe('/graphql');
  for (const accept of ['*/*', 'application/json, text/plain, */*']) {
    expect(await led('GET', { accept })).toBe('/readyz');
    expect(await led('HEAD', { accept })).toBe('/readyz');
  }
  const sent = await ask('/', { method: 'POST', headers: JSON_BODY, body: '{"query":"{ __typename }"}' });
  expect(sent.status).toBe(404);
  expect(sent.bytes.toString()).toContain('The graph is at /graphql.');
});

it('a file of the page that was not there, or could not be read, is sent once it can be', async () => {
  const name = `${randomUUID()}.js`;
  const built = new URL(`../../workbench/dist/${name}.br`, import.meta.url);
  const get = () => fetch(`${gateway.url}/graphql/workbench/${name}`);
  expect((await get()).status).toBe(404);
  try {
    // What is no file can be read by nobody.
    await mkdir(built);
    await expect(get()).rejects.toThrow();
    await rm(built, { recursive: true });
    await writeFile(built, brotliCompressSync('of the page'));
    expect(await (await get()).text()).toBe('of the page');
  } finally {
    await rm(built, { recursive: true, force: true });
  }
});
