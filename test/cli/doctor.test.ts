import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { createTokenVerifier } from '../../src/auth/token-verifier.ts';
import { Secret } from '../../src/common/secret.ts';
import type { EventType } from '../../src/events/log.ts';
import { ingressToken, ingressUrl } from '../../src/ingress/addresses.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { startSecureRedis } from '../helpers/private-ca.ts';
import { DURABLE, startRedis } from '../helpers/redis.ts';
import { inStep, neverFailOver, startWithSentinel } from '../helpers/redis-topologies.ts';
import { freePort } from '../helpers/restartable.ts';
import { callerToken, serviceEnvironment, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { pasarela, unread } from './run.ts';

const SECRET = 'the secret of now that is long enough';
const OLDER = 'hunter2 hunter2 hunter2 hunter2 hunter2';

interface Finding {
  readonly check: string;
  readonly status: string;
  readonly message: string;
  readonly cure?: string;
}

let gateway: RunningGateway;
let folder: string;
let healthy: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-doctor-'));
  gateway = await startGateway({ config: { webhookSecrets: [new Secret(SECRET)] } });
  healthy = {
    UPSTREAM_URL: gateway.sandbox.url,
    PASARELA_TOKEN: gateway.sandbox.accessToken,
    PUBLIC_URL: gateway.url,
    WEBHOOK_SECRET: SECRET,
    DATA_DIR: folder,
    PORT: new URL(gateway.url).port,
  };
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true });
});

/** What the doctor finds wrong when these variables differ from those of a healthy gateway. */
async function wrongs(changes: Readonly<Record<string, string>>): Promise<readonly Finding[]> {
  const { stdout, stderr, code } = await pasarela(['doctor', '--json'], { ...healthy, ...changes });
  expect(stderr).toBe('');
  const { ok, findings }: { ok: boolean; findings: Finding[] } = JSON.parse(stdout);
  expect(code).toBe(ok ? 0 : 1);
  const bad = findings.filter(({ status }) => status === 'failure' || status === 'warning');
  expect(ok).toBe(bad.every(({ status }) => status === 'warning'));
  for (const { cure } of bad) expect(cure).toBeTruthy();
  for (const secret of [gateway.sandbox.accessToken, gateway.sandbox.clientSecret, SECRET, 'hunter2']) {
    expect(stdout).not.toContain(secret);
  }
  return bad;
}

/** That it finds this one mistake, and nothing else wrong, and names the cure. */
async function expectOnly(
  changes: Readonly<Record<string, string>>,
  wanted: { check: string; status: 'failure' | 'warning'; message: RegExp; cure: RegExp },
): Promise<void> {
  const found = await wrongs(changes);
  expect(found.map(({ check, status }) => ({ check, status }))).toEqual([
    { check: wanted.check, status: wanted.status },
  ]);
  expect(found[0]?.message).toMatch(wanted.message);
  expect(found[0]?.cure).toMatch(wanted.cure);
}

/** A client of its own, with no webhook of the gateway's. */
async function withSandbox(work: (sandbox: Sandbox, changes: Record<string, string>) => Promise<void>) {
  await using sandbox = await startSandbox({
    port: 0,
    speed: 0,
    seed: 7,
    webhookHosts: ['old.example.mx', 'example.mx'],
  });
  await work(sandbox, { UPSTREAM_URL: sandbox.url, PASARELA_TOKEN: sandbox.accessToken });
}

async function register(sandbox: Sandbox, type: string, url: string, token = 'theirs'): Promise<string> {
  const body = { client_id: sandbox.clientId, url, token, webhook_type: type };
  return (await control(sandbox, 'POST', `/v1/clients/${sandbox.clientId}/webhooks`, body)).id;
}

const signed = (sandbox: Sandbox, type: 'CEP' | 'MONEY_IN' | 'LATER', secret = SECRET): string =>
  // A type that a later version knows is none of this one's.
  ingressUrl(gateway.url, sandbox.clientId, type as EventType, secret);

it('finds nothing wrong with a healthy gateway on a durable Redis, and says so to a person too', async () => {
  await using redis = await startRedis();
  expect(await wrongs({ REDIS_URL: redis.url })).toEqual([]);
  // Run every quarter of an hour, it must raise no alert of deliveries that are refused.
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(metrics).toMatch(/_duration_seconds_count\{path="other",status="401"\} [1-9]/);
  expect(metrics).not.toMatch(/_duration_seconds_count\{path="\/webhooks\/",status="401"\} [1-9]/);
  const { stdout, code } = await pasarela(['doctor'], { ...healthy, REDIS_URL: redis.url });
  expect(stdout).toContain('ok       webhooks');
  expect(stdout).toContain('0 failures, 0 warnings.');
  expect(code).toBe(0);
});

it('finds a variable that cannot be read, and says what it wants', () =>
  expectOnly(
    { UPSTREAM_TIMEOUT_MS: 'soon' },
    {
      check: 'configuration',
      status: 'failure',
      message: /UPSTREAM_TIMEOUT_MS: got "soon"/,
      cure: /whole number/,
    },
  ));

it('ends with the same code where nobody reads what it prints', async () => {
  expect(await unread(['doctor'], { ...healthy, PORT: 'eighty' })).toBe(1);
  expect(await unread(['doctor'], healthy)).toBe(0);
});

it('finds a secret that could be guessed', async () => {
  const { AUTH_JWT_SECRET: _, ...rest } = service();
  await expectOnly(
    { ...rest, AUTH_JWT_SECRET: 'hunter2' },
    {
      check: 'configuration',
      status: 'warning',
      message: /^AUTH_JWT_SECRET is shorter than 32 bytes/,
      cure: /openssl rand -base64 32/,
    },
  );
});

it('finds a folder that cannot be written', async () => {
  await writeFile(join(folder, 'file'), '');
  await expectOnly(
    { DATA_DIR: join(folder, 'file', 'data') },
    { check: 'folder', status: 'failure', message: /cannot be written/, cure: /DATA_DIR/ },
  );
});

it('finds a disk that is full, and leaves nothing there', async () => {
  const dataDir = await mkdtemp(join(folder, 'full-'));
  const { stdout } = await pasarela(['doctor', '--json'], { ...healthy, DATA_DIR: dataDir }, '8');
  const { findings }: { findings: Finding[] } = JSON.parse(stdout);
  expect(findings).toContainEqual(
    expect.objectContaining({
      check: 'folder',
      status: 'failure',
      message: expect.stringMatching(/cannot be written: .*EFBIG/),
    }),
  );
  expect(await readdir(dataDir)).toEqual([]);
});

it('finds spools that cannot be read, in the folder and by what the gateway says', async () => {
  await using redis = await startRedis();
  const dataDir = await mkdtemp(join(folder, 'damaged-'));
  await writeFile(join(dataDir, 'spooled-0.sqlite'), 'no database at all '.repeat(100));
  await using damaged = await startGateway({
    sandbox: gateway.sandbox,
    webhooks: false,
    config: { dataDir, redisUrl: new Secret(redis.url) },
  });
  const state = await until(async () => {
    const answer = await fetch(`${damaged.url}/readyz`);
    return answer.ok && ((await answer.json()) as unknown);
  });
  expect(state).toEqual({
    status: 'degraded',
    ageMs: expect.any(Number),
    degraded: ['spool'],
    spooled: 0,
    unreadableSpools: ['spooled-0.sqlite'],
  });
  const port = new URL(damaged.url).port;
  const found = await wrongs({ DATA_DIR: dataDir, PORT: port, REDIS_URL: redis.url });
  expect(found).toMatchObject([
    { check: 'folder', status: 'failure', message: expect.stringContaining('spooled-0.sqlite') },
    { check: 'gateway', status: 'failure', message: expect.stringContaining('cannot read spooled-0.sqlite') },
  ]);
});

it('waits for what a gateway sees when it is asked, also where that tells first what it knew before', async () => {
  const old = { status: 'degraded', degraded: ['events'], ageMs: 60_000 };
  const answers = [{ status: 'unready' }, old, old, { status: 'ready', ageMs: 400 }];
  const slow = createServer((_request, response) => void response.end(JSON.stringify(answers.shift())));
  await once(slow.listen(0, '127.0.0.1'), 'listening');
  const { port } = slow.address() as AddressInfo;
  expect(await wrongs({ PORT: String(port) })).toEqual([]);
  expect(answers).toEqual([]);
  await new Promise((resolve) => slow.close(resolve));
});

it('finds that what has the port says nothing', async () => {
  const silent = createServer(() => {});
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  const { port } = silent.address() as AddressInfo;
  await expectOnly(
    { PORT: String(port) },
    { check: 'gateway', status: 'failure', message: /has not answered for 5 s/, cure: /hangs/ },
  );
  silent.closeAllConnections();
  await new Promise((resolve) => silent.close(resolve));
});

it('finds another program on the port', () =>
  expectOnly(
    { PORT: new URL(gateway.sandbox.url).port },
    { check: 'gateway', status: 'failure', message: /is not the gateway/, cure: /another PORT/ },
  ));

it('finds a Redis that does not run', async () =>
  expectOnly(
    { REDIS_URL: `redis://127.0.0.1:${await freePort()}` },
    { check: 'redis', status: 'failure', message: /ECONNREFUSED/, cure: /Start Redis/ },
  ));

it('finds the wrong password of Redis, and does not repeat it', async () => {
  await using redis = await startRedis([
    ...DURABLE,
    '--user',
    'gateway',
    'on',
    '>hunter3',
    '~*',
    '&*',
    '+@all',
  ]);
  await expectOnly(
    { REDIS_URL: redis.url.replace('//', '//gateway:hunter2@') },
    { check: 'redis', status: 'failure', message: /WRONGPASS[^.]*\. Events/, cure: /user and password/ },
  );
});

it.each([
  [
    'a database that Redis does not have',
    (url: string) => `${url}/99`,
    /DB index is out of range/,
    /records of payments are in database 0.*databases/,
  ],
  [
    'a Cluster where there is none',
    (url: string) => url.replace(':', '+cluster:'),
    /support disabled/,
    /redis:/,
  ],
  [
    'a user who may not choose the database',
    (url: string) => url.replace('//', '//gateway:hunter2@').concat('/3'),
    /NOPERM/,
    /records of payments are in database 0.*Rights/,
  ],
])('finds %s in REDIS_URL', async (_what, named, message, cure) => {
  await using redis = await startRedis();
  await redis.admin.acl('SETUSER', 'gateway', 'on', '>hunter2', '~*', '&*', '+@all', '-select');
  await expectOnly({ REDIS_URL: named(redis.url) }, { check: 'redis', status: 'failure', message, cure });
});

it.each([
  ['scripts', ['&*', '-@scripting'], /'eval'/],
  ["clients' keys", ['&*', 'resetkeys', '~pasarela:*'], /one of the keys/],
  ['channels, as a new user of Redis does', ['resetchannels'], /one of the channels/],
])('finds that the user of Redis lacks the right to %s', async (_what, rules, message) => {
  await using redis = await startRedis();
  await redis.admin.acl('SETUSER', 'gateway', 'on', '>hunter2', '~*', '+@all', ...rules);
  await expectOnly(
    { REDIS_URL: redis.url.replace('//', '//gateway:hunter2@') },
    { check: 'redis', status: 'warning', message, cure: /"Rights"/ },
  );
});

it.each([
  ['keeps nothing on disk', ['--save', ''], /without appendonly yes/, /appendonly yes/],
  [
    'syncs once a second',
    ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'],
    /appendfsync everysec/,
    /CONFIG SET appendfsync always/,
  ],
  [
    'syncs nothing while it writes its file anew',
    [...DURABLE, '--no-appendfsync-on-rewrite', 'yes'],
    /no-appendfsync-on-rewrite yes/,
    /CONFIG SET no-appendfsync-on-rewrite no/,
  ],
  [
    'evicts keys when it is full',
    [...DURABLE, '--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'],
    /maxmemory-policy allkeys-lru/,
    /noeviction/,
  ],
])('finds a Redis that %s', async (_, args, message, cure) => {
  await using redis = await startRedis(args);
  await expectOnly({ REDIS_URL: redis.url }, { check: 'redis', status: 'warning', message, cure });
});

it('says what to do about a Redis that a script holds up', async () => {
  await using redis = await startRedis([...DURABLE, '--busy-reply-threshold', '1']);
  // Redis refuses a new connection while the script runs, and what waits for one fails.
  await redis.admin.ping();
  const script = redis.admin.duplicate();
  const held = script.eval('while true do end', 0).catch(() => undefined);
  await until(() =>
    redis.admin.ping().then(
      () => false,
      ({ message }) => message.startsWith('BUSY '),
    ),
  );
  await expectOnly(
    { REDIS_URL: redis.url },
    { check: 'redis', status: 'failure', message: /BUSY/, cure: /SCRIPT KILL/ },
  );
  await redis.admin.script('KILL');
  await held;
  script.disconnect();
});

it('says what to look at where Redis has no room for another client', async () => {
  await using redis = await startRedis([...DURABLE, '--maxclients', '1']);
  await redis.admin.ping();
  await expectOnly(
    { REDIS_URL: redis.url },
    { check: 'redis', status: 'failure', message: /cannot be used/, cure: /maxclients/ },
  );
});

it('finds a Redis whose replicas nobody watches, and settings that a failover may lose payments by', async () => {
  await using primary = await startRedis([...DURABLE, '--repl-diskless-sync-delay', '0']);
  await using replica = await startRedis([...DURABLE, '--replicaof', '127.0.0.1', String(primary.port)]);
  await inStep(primary, replica);
  await expectOnly(
    { REDIS_URL: replica.url },
    {
      check: 'redis',
      status: 'failure',
      message: /is a replica, which takes no writes/,
      cure: /Name the primary/,
    },
  );
  const found = await wrongs({ REDIS_URL: primary.url });
  expect(found).toMatchObject([
    {
      check: 'redis',
      message: expect.stringContaining('nobody can be asked'),
      cure: expect.stringContaining('redis+sentinel://'),
    },
    {
      check: 'redis',
      message: expect.stringContaining('min-replicas-to-write 0, a choice with a risk'),
      cure: expect.stringContaining('to the number of replicas'),
    },
  ]);
  await primary.admin.config('SET', 'min-replicas-to-write', '1');
  await expectOnly(
    { REDIS_URL: primary.url },
    {
      check: 'redis',
      status: 'warning',
      message: /replica of Redis runs with min-replicas/,
      cure: /min-replicas/,
    },
  );
  await replica.admin.config('SET', 'min-replicas-to-write', '1');
  expect(await wrongs({ REDIS_URL: primary.url })).toEqual([]);
});

it('finds Sentinels that cannot be asked about a failover', async () => {
  await using redis = await startWithSentinel();
  await neverFailOver(redis.sentinel);
  for (const { admin } of [redis.primary, redis.replica])
    await admin.config('SET', 'min-replicas-to-write', '1');
  expect(await wrongs({ REDIS_URL: redis.url })).toEqual([]);
  // More than there are: no failover could begin.
  await redis.sentinel.admin.call('SENTINEL', 'SET', 'events', 'quorum', '2');
  expect(await wrongs({ REDIS_URL: redis.url })).toMatchObject([
    {
      check: 'redis',
      status: 'warning',
      message: expect.stringContaining('could begin no failover: NOQUORUM'),
    },
    { check: 'redis', status: 'warning', message: expect.stringContaining('No Sentinel') },
  ]);
});

it('finds an upstream that cannot be reached', async () => {
  const found = await wrongs({ UPSTREAM_URL: `http://127.0.0.1:${await freePort()}` });
  expect(found).toMatchObject([
    { check: 'upstream', status: 'failure', message: expect.stringContaining('ECONNREFUSED') },
  ]);
  expect(found[0]?.cure).toContain('UPSTREAM_URL');
});

it('finds an upstream that is another program', async () => {
  const found = await wrongs({ UPSTREAM_URL: gateway.url });
  expect(found[0]).toMatchObject({
    check: 'upstream',
    message: expect.stringContaining('knows no /v1/banks'),
    cure: expect.stringContaining('UPSTREAM_URL'),
  });
});

it('finds a clock that differs from the service’s, and beside it calls that fail', async () => {
  let fails = false;
  const wrongClock = createServer(async (request, response) => {
    const { method = 'GET', headers, url } = request;
    if (fails && url?.startsWith('/v1/clients/')) {
      response.writeHead(503).end();
      return;
    }
    const answer = await fetch(`${gateway.sandbox.url}${url}`, {
      method,
      headers: { authorization: headers.authorization ?? '' },
    });
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      date: new Date(Date.now() + 300_000).toUTCString(),
    });
    response.end(await answer.text());
  });
  await new Promise<void>((resolve) => wrongClock.listen(0, '127.0.0.1', resolve));
  const { port } = wrongClock.address() as AddressInfo;
  await expectOnly(
    { UPSTREAM_URL: `http://127.0.0.1:${port}` },
    // The command may be slow to read what it was told.
    { check: 'clock', status: 'failure', message: /(?:2[89]\d|30[01]) s behind/, cure: /NTP/ },
  );
  fails = true;
  const found = await wrongs({ UPSTREAM_URL: `http://127.0.0.1:${port}` });
  expect(found.map(({ check }) => check)).toEqual(['clock', 'token']);
  wrongClock.closeAllConnections();
  await new Promise((resolve) => wrongClock.close(resolve));
});

const jwt = (claims: Record<string, unknown>): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode('somebody else'));

it('finds a token that has ended', async () =>
  expectOnly(
    { PASARELA_TOKEN: await jwt({ client_id: gateway.sandbox.clientId, exp: 1_700_000_000 }) },
    { check: 'token', status: 'failure', message: /ended at 2023-11-14/, cure: /credential-tokens/ },
  ));

it('finds a token that the service does not accept', async () =>
  expectOnly(
    { PASARELA_TOKEN: await jwt({ client_id: gateway.sandbox.clientId }) },
    { check: 'token', status: 'failure', message: /does not accept/, cure: /credential-tokens/ },
  ));

it('finds a token whose client stands in a claim that is not looked at, and names the claim', async () =>
  expectOnly(
    { PASARELA_TOKEN: await jwt({ merchant: gateway.sandbox.clientId }) },
    {
      check: 'token',
      status: 'failure',
      message: /no claim of client_id/,
      cure: /UPSTREAM_TOKEN_CLIENT_CLAIM.*merchant/,
    },
  ));

const service = (): Record<string, string> => ({
  AUTH_MODE: 'service',
  UPSTREAM_API_KEY: gateway.sandbox.apiKey,
  UPSTREAM_CLIENT_ID: gateway.sandbox.clientId,
  UPSTREAM_CLIENT_SECRET: gateway.sandbox.clientSecret,
  AUTH_JWT_SECRET: OLDER,
  AUTH_ISSUER: 'https://id.example.mx',
  AUTH_AUDIENCE: 'pasarela',
});

it('finds nothing wrong with the right credentials of service mode', async () => {
  expect(await wrongs(service())).toEqual([]);
});

it('finds wrong credentials of service mode', () =>
  expectOnly(
    { ...service(), UPSTREAM_CLIENT_SECRET: 'hunter2' },
    { check: 'token', status: 'failure', message: /issues no token/, cure: /UPSTREAM_CLIENT_SECRET/ },
  ));

it('finds a key and a token that cannot be sent, and does not send an operator to the provider', async () => {
  const look = async (changes: Readonly<Record<string, string>>) => {
    const { stdout } = await pasarela(['doctor', '--json'], { ...healthy, ...changes });
    const { findings }: { findings: readonly Finding[] } = JSON.parse(stdout);
    return findings
      .filter(({ check, status }) => ['token', 'credentials'].includes(check) && status === 'failure')
      .map(({ check, message, cure }) => `${check}: ${message} ${cure}`);
  };
  const broken = { ...service(), UPSTREAM_API_KEY: `${gateway.sandbox.apiKey}\n` };
  const unsendable =
    'The call cannot be sent: its credential holds a line break, or another character that no header may hold.';
  const cure = 'Correct UPSTREAM_API_KEY, ';
  expect(await look(broken)).toEqual([
    expect.stringContaining(`token: the service issues no token: ${unsendable} ${cure}`),
  ]);
  const redis = { REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
  expect(await look({ ...broken, ...redis })).toEqual([
    expect.stringContaining(`credentials: the API key cannot be tried: ${unsendable} ${cure}`),
  ]);
  expect(await look({ PASARELA_TOKEN: `${healthy['PASARELA_TOKEN']}\n` })).toEqual([
    expect.stringContaining(`token: PASARELA_TOKEN: ${unsendable}`),
  ]);
});

it('ends by itself where the processes of the gateway share their token, whether it is accepted or not', async () => {
  await using redis = await startRedis();
  const shared = { ...service(), REDIS_URL: redis.url };
  expect(await wrongs(shared)).toEqual([]);
  await expectOnly(
    { ...shared, UPSTREAM_CLIENT_SECRET: 'hunter2' },
    { check: 'token', status: 'failure', message: /issues no token/, cure: /UPSTREAM_CLIENT_SECRET/ },
  );
});

it('tries the API key and the secret themselves, and leaves the token alone that the processes share', async () => {
  await using redis = await startRedis();
  await using sandbox = await startSandbox({
    port: 0,
    speed: 0,
    seed: 1,
    choices: { newTokenEndsOlder: true },
  });
  const { clientId, apiKey, clientSecret } = sandbox;
  const config = { service: serviceFor(sandbox), redisUrl: new Secret(redis.url) };
  await using running = await startGateway({ sandbox, webhooks: false, config });
  const authorization = `Bearer ${await callerToken({ sub: 'alma' })}`;
  const works = async () =>
    expect(
      (await running.query('{ client { accounts(first: 1) { nodes { id } } } }', {}, { authorization }))
        .errors,
    ).toBeUndefined();
  await works();
  const [name = '', ...others] = await redis.admin.keys('pasarela:token:*');
  expect(others).toEqual([]);
  const kept = await redis.admin.get(name);
  await control(sandbox, 'DELETE', '/sandbox/requests');

  const changes = {
    ...serviceEnvironment({ clientId, apiKey, clientSecret }),
    UPSTREAM_URL: sandbox.url,
    REDIS_URL: redis.url,
  };
  const about = async (more = {}) => {
    const { stdout } = await pasarela(['doctor', '--json'], { ...healthy, ...changes, ...more });
    const { findings }: { findings: readonly Finding[] } = JSON.parse(stdout);
    return findings
      .filter(({ check }) => check === 'token' || check === 'credentials')
      .map(({ status, message }) => `${status} ${message}`);
  };
  const accepted = `ok accepted for client ${clientId}`;
  expect(await about()).toEqual([accepted, 'ok the API key is accepted, and the client secret is ACTIVE']);
  expect(await about({ UPSTREAM_API_KEY: 'hunter2' })).toEqual([
    expect.stringMatching(/^failure the service issues no token: /),
  ]);
  // The key, or the secret, is revoked after the token was issued.
  const path = `/v1/clients/${clientId}/credentials`;
  const refusing = { match: { method: 'GET', path }, fault: { status: 401 }, times: 1 };
  await control(sandbox, 'POST', '/sandbox/faults', refusing);
  expect(await about()).toEqual([accepted, 'failure the service does not accept the API key (status 401)']);
  const listing = { ...refusing, fault: { status: 200, body: { data: [{ id: 'c1', status: 'ACTIVE' }] } } };
  await control(sandbox, 'POST', '/sandbox/faults', listing);
  expect(await about()).toEqual([
    accepted,
    'warning the API key is accepted, but the service lists no ACTIVE secret that is this one',
  ]);
  await control(sandbox, 'POST', '/sandbox/faults', { ...refusing, fault: { status: 503 }, times: 9 });
  const [, unclear] = await about();
  expect(unclear).toMatch(/^warning the API key cannot be tried: .*503/);

  expect(await redis.admin.keys('pasarela:token:*')).toEqual([name]);
  expect(await redis.admin.get(name)).toBe(kept);
  await works();
  const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
  // The one with the wrong API key, which got none.
  expect(counts['POST /v1/clients/{clientId}/auth/credential-tokens']).toBe(1);
});

it('asks for no new token while Redis is not right, and tries the API key and the secret all the same', async () => {
  await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
  const look = async (changes: Readonly<Record<string, string>>) => {
    const { stdout } = await pasarela(['doctor', '--json'], { ...healthy, ...service(), ...changes });
    const { findings }: { findings: readonly Finding[] } = JSON.parse(stdout);
    return findings
      .filter(({ check }) => ['redis', 'token', 'credentials', 'webhooks'].includes(check))
      .map(({ check, status }) => `${check} ${status}`);
  };
  const away = { REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
  expect(await look(away)).toEqual(['redis failure', 'token skipped', 'credentials ok', 'webhooks skipped']);
  const nowhere = { ...away, UPSTREAM_URL: `http://127.0.0.1:${await freePort()}` };
  expect(await look(nowhere)).toEqual(['redis failure', 'token skipped', 'webhooks skipped']);
  const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
  expect(counts['POST /v1/clients/{clientId}/auth/credential-tokens']).toBeUndefined();
});

it('finds an identity provider that shows no keys', () => {
  const { AUTH_JWT_SECRET: _, ...rest } = service();
  return expectOnly(
    // A path and a query may hold a secret, and the output of a Job stays in the cluster.
    { ...rest, AUTH_JWKS_URL: `${gateway.sandbox.url}/jwks/hunter2?key=hunter2` },
    {
      check: 'identity',
      status: 'failure',
      message: /^what answers at 127\.0\.0\.1:\d+ shows no key set \(status \d+\)$/,
      cure: /jwks_uri/,
    },
  );
});

it('finds an identity provider whose keys are behind a redirect, which the gateway does not follow', async () => {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const provider = createServer(async (request, response) => {
    const isMoved = request.url === '/moved';
    response.writeHead(isMoved ? 302 : 200, isMoved ? { location: '/keys' } : {});
    response.end(JSON.stringify({ keys: [await exportJWK(publicKey)] }));
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  onTestFinished(() => void provider.close());
  const jwksUrl = (path: string) => `http://127.0.0.1:${(provider.address() as AddressInfo).port}${path}`;
  const { AUTH_JWT_SECRET: _, ...rest } = service();
  await expectOnly(
    { ...rest, AUTH_JWKS_URL: jwksUrl('/moved') },
    { check: 'identity', status: 'failure', message: /no key set \(status 302\)$/, cure: /No redirect/ },
  );
  const token = await new SignJWT({ exp: Math.ceil(Date.now() / 1_000) + 60, iss: 'i', aud: 'a' })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(privateKey);
  const verify = (path: string) =>
    createTokenVerifier({
      keys: { jwksUrl: jwksUrl(path), cooldownMs: 1, maxAgeMs: 1_000 },
      issuer: 'i',
      audience: 'a',
      keyOwnerClaim: 'sub',
      clientClaim: undefined,
    })(token);
  await expect(verify('/moved')).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
  expect(await verify('/keys')).toMatchObject({ scopes: new Set() });
});

it('finds a decider that is away', async () =>
  expectOnly(
    { MONEY_IN_DECISION_URL: `http://127.0.0.1:${await freePort()}/decide` },
    { check: 'decider', status: 'failure', message: /ECONNREFUSED.*503/, cure: /MONEY_IN_DECISION_URL/ },
  ));

it('finds trusted documents that the gateway would refuse, and those that do not fit the graph', async () => {
  const file = join(folder, 'documents.json');
  await writeFile(file, JSON.stringify({ ['0123'.repeat(16)]: '{ client { id } }' }));
  await expectOnly(
    { TRUSTED_DOCUMENTS: file },
    {
      check: 'documents',
      status: 'failure',
      message: /"(0123){16}" of .* is not the SHA-256/,
      cure: /--persisted-documents/,
    },
  );
  for (const [text, message] of [
    ['{ client { wallet } }', /Cannot query field "wallet"/],
    ['{ client { id', /Syntax Error/],
  ] as const) {
    await writeFile(file, JSON.stringify({ [createHash('sha256').update(text).digest('hex')]: text }));
    await expectOnly(
      { TRUSTED_DOCUMENTS: file },
      { check: 'documents', status: 'failure', message, cure: /--persisted-documents/ },
    );
  }
});

it('finds an address that leads to another program', async () => {
  const found = await wrongs({ PUBLIC_URL: gateway.sandbox.url });
  expect(found[0]).toMatchObject({
    check: 'address',
    status: 'failure',
    message: expect.stringContaining('is not the gateway'),
    cure: expect.stringContaining('PUBLIC_URL'),
  });
});

it('finds a proxy that asks for a user and a password, shows it those of the address, and repeats them nowhere', async () => {
  const proxy = createServer(({ headers }, response) => {
    const isKnown = headers.authorization === `Basic ${btoa('a@b:hunter2%')}`;
    response.writeHead(401, isKnown ? {} : { 'www-authenticate': 'Basic realm="x"' }).end();
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const { port } = proxy.address() as AddressInfo;
  const address = async (url: string) => {
    const found = await wrongs({ PUBLIC_URL: url });
    expect(JSON.stringify(found)).not.toContain('hunter2');
    return found.filter(({ check }) => check === 'address');
  };
  expect(await address(`http://127.0.0.1:${port}`)).toMatchObject([
    {
      status: 'failure',
      message: expect.stringContaining('asks for credentials'),
      cure: expect.stringContaining('PUBLIC_URL'),
    },
  ]);
  expect(await address(`http://a%40b:hunter2%@127.0.0.1:${port}`)).toEqual([]);
  proxy.close();
});

it('finds that no address is set to register webhooks with', () =>
  expectOnly(
    { PUBLIC_URL: '' },
    { check: 'address', status: 'warning', message: /PUBLIC_URL is not set/, cure: /PUBLIC_URL/ },
  ));

it('finds webhooks that are not registered', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    await expectOnly(changes, {
      check: 'webhooks',
      status: 'failure',
      message: /no CEP webhook is registered/,
      cure: /^pasarela webhooks sync --types MONEY_IN,CEP,STATUS_UPDATE$/,
    });
  }));

it('finds a webhook that is switched off', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    const id = await register(sandbox, 'CEP', signed(sandbox, 'CEP'));
    const path = `/v1/clients/${sandbox.clientId}/webhooks/${id}`;
    await control(sandbox, 'PATCH', path, { webhook_status: 'INACTIVE' });
    const wanted = {
      check: 'webhooks',
      status: 'failure',
      message: /is INACTIVE/,
      cure: /webhooks sync/,
    } as const;
    await expectOnly(changes, wanted);
    // Whatever has signed it, nothing else is advised about it.
    await control(sandbox, 'PATCH', path, { url: signed(sandbox, 'CEP', OLDER) });
    await expectOnly({ ...changes, WEBHOOK_SECRET: `${SECRET},${OLDER}` }, wanted);
  }));

it('finds a webhook that leads elsewhere', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    await register(sandbox, 'CEP', 'https://old.example.mx/hooks');
    await expectOnly(changes, {
      check: 'webhooks',
      status: 'failure',
      message: /leads to https:\/\/old\.example\.mx/,
      cure: /webhooks sync/,
    });
  }));

it('finds a webhook that is signed with another secret beside a right one, and does not call the rotation done', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    await register(sandbox, 'CEP', signed(sandbox, 'CEP'));
    const rotating = { ...changes, WEBHOOK_SECRET: `${SECRET},${OLDER}` };
    const rotated = async () => {
      const { stdout } = await pasarela(['doctor', '--json'], { ...healthy, ...rotating });
      return /all [0-9] webhooks of client .* are signed with the first/.exec(stdout)?.[0].slice(0, 14);
    };
    expect(await rotated()).toBe('all 2 webhooks');
    const id = await register(sandbox, 'CEP', signed(sandbox, 'CEP', 'a third secret that is long enough'));
    expect((await wrongs(rotating)).at(-1)).toEqual({
      check: 'webhooks',
      status: 'failure',
      message: `the CEP webhook ${id} is signed with another WEBHOOK_SECRET: its deliveries get 401`,
      cure: `pasarela webhooks remove ${id}, unless it is needed.`,
    });
    expect(await rotated()).toBeUndefined();
    const path = `/v1/clients/${sandbox.clientId}/webhooks/${id}`;
    await control(sandbox, 'PATCH', path, { webhook_status: 'INACTIVE' });
    expect(await rotated()).toBe('all 2 webhooks');
  }));

it('finds a webhook that is signed with another secret, or with the older of two', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    await register(sandbox, 'CEP', signed(sandbox, 'CEP', OLDER));
    const wanted = { check: 'webhooks', cure: /webhooks sync/ };
    await expectOnly(changes, { ...wanted, status: 'failure', message: /another WEBHOOK_SECRET/ });
    await expectOnly(
      { ...changes, WEBHOOK_SECRET: `${SECRET},${OLDER}` },
      { ...wanted, status: 'warning', message: /the second WEBHOOK_SECRET/ },
    );
  }));

it('finds a webhook at the address of a type that a later version knows', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    await register(sandbox, 'CEP', signed(sandbox, 'LATER'));
    await expectOnly(changes, {
      check: 'webhooks',
      status: 'failure',
      message: /a type that this version does not know/,
      cure: /webhooks sync/,
    });
  }));

it('finds a webhook at the address of another type or client, also beside a right one', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    const id = await register(sandbox, 'CEP', signed(sandbox, 'MONEY_IN'));
    const wanted = {
      check: 'webhooks',
      status: 'failure',
      message: /address of another type or client/,
    } as const;
    await expectOnly(changes, { ...wanted, cure: /webhooks sync/ });
    await register(sandbox, 'CEP', signed(sandbox, 'CEP'));
    const found = await wrongs(changes);
    expect(found.at(-1)).toMatchObject({ check: 'webhooks', status: 'failure' });
    expect(found.at(-1)?.message).toMatch(wanted.message);
    expect(found.at(-1)?.cure).toBe(`pasarela webhooks remove ${id}, unless it is needed.`);
  }));

it('finds a webhook of a type that this version does not know', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    await register(sandbox, 'CEP', signed(sandbox, 'CEP'));
    const path = `/v1/clients/${sandbox.clientId}/webhooks`;
    const list = await control(sandbox, 'GET', path);
    const later = { ...list.data[0], id: randomUUID(), webhookType: 'LATER', url: signed(sandbox, 'LATER') };
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { method: 'GET', path },
      fault: { status: 200, body: { ...list, data: [...list.data, later], totalItem: 3 } },
    });
    await expectOnly(changes, {
      check: 'webhooks',
      status: 'warning',
      message: new RegExp(`the LATER webhook ${later.id} .* has a type that this version does not know`),
      cure: /Upgrade every process/,
    });
  }));

it('finds two active webhooks for one type', () =>
  withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    await register(sandbox, 'CEP', 'https://old.example.mx/hooks');
    await register(sandbox, 'CEP', signed(sandbox, 'CEP'));
    await expectOnly(changes, {
      check: 'webhooks',
      status: 'warning',
      message: /2 CEP webhooks are active/,
      cure: /webhooks remove/,
    });
  }));

it('finds a webhook whose token the ingress would refuse', async () => {
  await withSandbox(async (sandbox, changes) => {
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'));
    await register(sandbox, 'CEP', signed(sandbox, 'CEP'));
    expect(await wrongs(changes)).toEqual([]);
    const found = await wrongs({ ...changes, WEBHOOK_TOKEN_HEADER: 'x-token' });
    expect(found).toHaveLength(2);
    expect(found[0]).toMatchObject({
      check: 'webhooks',
      status: 'failure',
      message: expect.stringContaining('token'),
      cure: 'pasarela webhooks sync --types MONEY_IN,CEP,STATUS_UPDATE',
    });
  });
});

it('tells by the token too which secret a webhook needs, and of a token that is not shown how to see it', () =>
  withSandbox(async (sandbox, changes) => {
    const tokenOf = (type: EventType, secret: string) => ingressToken(sandbox.clientId, type, secret);
    await register(sandbox, 'MONEY_IN', signed(sandbox, 'MONEY_IN'), tokenOf('MONEY_IN', SECRET));
    const id = await register(sandbox, 'CEP', signed(sandbox, 'CEP'), tokenOf('CEP', OLDER));
    const rotating = { ...changes, WEBHOOK_SECRET: `${SECRET},${OLDER}`, WEBHOOK_TOKEN_HEADER: 'x-token' };
    const rotated = async () => {
      const { stdout } = await pasarela(['doctor', '--json'], { ...healthy, ...rotating });
      return /all [0-9] webhooks of client .* are signed with the first WEBHOOK_SECRET: ([^"]*)/.exec(
        stdout,
      )?.[1];
    };
    await expectOnly(rotating, {
      check: 'webhooks',
      status: 'warning',
      message: /^the CEP webhook .* is registered with the token of the second WEBHOOK_SECRET$/,
      cure: /before that secret is dropped/,
    });
    expect(await rotated()).toBeUndefined();
    // An address of the second, and a token of neither: the deliveries get 401.
    const path = `/v1/clients/${sandbox.clientId}/webhooks`;
    await control(sandbox, 'PATCH', `${path}/${id}`, { url: signed(sandbox, 'CEP', OLDER), token: 'theirs' });
    await expectOnly(rotating, {
      check: 'webhooks',
      status: 'failure',
      message: /a token that the ingress does not accept: 401/,
      cure: /webhooks sync/,
    });
    await control(sandbox, 'PATCH', `${path}/${id}`, {
      url: signed(sandbox, 'CEP'),
      token: tokenOf('CEP', SECRET),
    });
    expect(await rotated()).toBe('the second serves deliveries alone that the provider repeats');
    const list = await control(sandbox, 'GET', path);
    const data = list.data.map(({ token: _, ...rest }: { token: string }) => rest);
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { method: 'GET', path },
      fault: { status: 200, body: { ...list, data } },
    });
    expect(await rotated()).toMatch(
      /^the service does not show the token of 2, and pasarela_events_older_secret_total rises/,
    );
    // Beside a right one: it answers its deliveries with 401 all the same.
    await control(sandbox, 'DELETE', '/sandbox/faults');
    const further = await register(sandbox, 'CEP', signed(sandbox, 'CEP'));
    expect((await wrongs(rotating)).at(-1)).toMatchObject({
      status: 'failure',
      message: `the CEP webhook ${further} is registered with a token that the ingress does not accept: 401`,
    });
  }));

it('finds that calls for the client fail where the service itself answers', () =>
  withSandbox(async (sandbox, changes) => {
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { method: 'GET', path: '/v1/clients/' },
      fault: { status: 503 },
    });
    await expectOnly(changes, {
      check: 'token',
      status: 'failure',
      message: /GET \/v1\/clients\/\{clientId\}\/instruments: .*503/,
      cure: /provider/,
    });
    const { AUTH_MODE, ...own } = service();
    await expectOnly(
      {
        ...changes,
        ...own,
        AUTH_MODE: AUTH_MODE ?? '',
        UPSTREAM_CLIENT_ID: sandbox.clientId,
        UPSTREAM_API_KEY: sandbox.apiKey,
        UPSTREAM_CLIENT_SECRET: sandbox.clientSecret,
      },
      { check: 'token', status: 'failure', message: /instruments: .*503/, cure: /provider/ },
    );
  }));

it('finds each time that the certificate of Redis is not trusted, and nothing wrong once it is', async () => {
  await using redis = await startSecureRedis();
  const changes = { REDIS_URL: redis.url };
  const untrusted = () =>
    expectOnly(changes, {
      check: 'redis',
      status: 'failure',
      message: /certificate/,
      cure: /REDIS_TLS_CA/,
    });
  const trusted = async () => expect(await wrongs({ ...changes, REDIS_TLS_CA: redis.authority })).toEqual([]);
  for (let round = 0; round < 10; round += 1) await Promise.all([untrusted(), trusted()]);
});

it.each([
  ['of another host', { names: 'DNS:redis.example.mx' }, /altnames/, /^Name the host in REDIS_URL/],
  ['that has expired', { days: -1 }, /certificate has expired/, /^Renew the certificate/],
])('finds a certificate of Redis %s', async (_, issued, message, cure) => {
  await using redis = await startSecureRedis(false, issued);
  const changes = { REDIS_URL: redis.url, REDIS_TLS_CA: redis.authority };
  await expectOnly(changes, { check: 'redis', status: 'failure', message, cure });
});

it('finds that Redis asks for a certificate, in words, and nothing wrong with one that it trusts', async () => {
  await using redis = await startSecureRedis(true);
  const { authority, certificate, key } = redis;
  const changes = { REDIS_URL: redis.url, REDIS_TLS_CA: authority };
  await expectOnly(changes, {
    check: 'redis',
    status: 'failure',
    // Whether the alert is read before the connection is reset, no one can say.
    message:
      /^cannot be used: (?:tlsv13 alert certificate required|(?:read|write) (?:ECONNRESET|EPIPE))\. Events/,
    cure: /REDIS_TLS_CERT and REDIS_TLS_KEY/,
  });
  expect(await wrongs({ ...changes, REDIS_TLS_CERT: certificate, REDIS_TLS_KEY: key })).toEqual([]);
});
