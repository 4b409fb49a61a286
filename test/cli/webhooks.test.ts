import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { type Registration, readRegistrations } from '../../src/cli/registrations.ts';
import type { EventType } from '../../src/events/log.ts';
import { ingressToken, ingressUrl } from '../../src/ingress/addresses.ts';
import { programOf } from '../helpers/entry.ts';
import { control } from '../helpers/gateway.ts';
import { folder } from '../helpers/packages.ts';
import { pasarela } from './run.ts';

const SECRET = 'the secret of now that is long enough';
const OLDER = 'the secret of then';
const PUBLIC_URL = 'https://graph.example.mx';
const CLIENT = 'aaaaaaaa-2222-4333-8444-555555555555';
const OTHER_CLIENT = '11111111-2222-4333-8444-555555555555';

let sandbox: Sandbox | undefined;
let environment: Record<string, string>;
beforeEach(async () => {
  await sandbox?.stop();
  sandbox = await startSandbox({
    port: 0,
    speed: 0,
    seed: 1,
    webhookHosts: ['graph.example.mx', 'id.example.mx', 'old.example.mx', 'other.example.mx'],
  });
  environment = {
    UPSTREAM_URL: sandbox.url,
    PASARELA_TOKEN: sandbox.accessToken,
    PUBLIC_URL,
    WEBHOOK_SECRET: SECRET,
  };
});
afterAll(() => sandbox?.stop());

const running = (): Sandbox => {
  if (sandbox === undefined) throw new Error('the sandbox is started before each test');
  return sandbox;
};
const path = () => `/v1/clients/${running().clientId}/webhooks`;
const register = async (type: string, url: string, token = 'theirs'): Promise<string> => {
  const body = { client_id: running().clientId, url, token, webhook_type: type, auth_type: 'AUTH' };
  return (await control(running(), 'POST', path(), body)).id;
};
const registered = async () =>
  (await control(running(), 'GET', path())).data.filter(
    ({ deletedAt }: { deletedAt: unknown }) => deletedAt === null || deletedAt === 'None',
  );
const run = (...args: string[]) => pasarela(['webhooks', ...args], environment);

describe('pasarela webhooks sync', () => {
  it('registers what is missing, once, with the address and the token that the ingress accepts', async () => {
    const before = (await registered()).length;
    expect(await run('sync')).toMatchObject({
      code: 0,
      stdout: 'MONEY_IN: was made\nCEP: was made\nSTATUS_UPDATE: was made\n',
    });
    expect((await run('sync')).stdout).toMatch(
      /^MONEY_IN: is right .*\nCEP: is right .*\nSTATUS_UPDATE: is right/,
    );
    const made = (await registered()).filter(({ url }: { url: string }) => url.startsWith(PUBLIC_URL));
    expect(made).toHaveLength(3);
    expect(await registered()).toHaveLength(before + 3);
    for (const { webhookType: type, url, token } of made) {
      expect(url).toBe(ingressUrl(PUBLIC_URL, running().clientId, type, SECRET));
      expect(token).toBe(ingressToken(running().clientId, type, SECRET));
    }
  });

  it.each([
    ['CEP: is right', SECRET],
    ['CEP: was mended', 'a secret of somebody else, of forty letters'],
  ])('knows one again that the service shows in another spelling: %s', async (told, secret) => {
    environment['PUBLIC_URL'] = 'https://Graph.Example.mx:443/a/';
    const { clientId } = running();
    const url = ingressUrl(`${PUBLIC_URL}/a`, clientId, 'CEP', secret);
    const id = await register('CEP', url, ingressToken(clientId, 'CEP', SECRET));
    expect((await run('sync', '--types', 'CEP')).stdout).toBe(`${told} (${id})\n`);
  });

  it('does nothing with --dry-run, and says what it would do', async () => {
    const before = await registered();
    expect((await run('sync', '--dry-run')).stdout).toContain('CEP: would be made');
    expect(await registered()).toEqual(before);
  });

  it('moves a webhook to the new secret while both are accepted', async () => {
    const { clientId } = running();
    const id = await register('CEP', ingressUrl(PUBLIC_URL, clientId, 'CEP', OLDER));
    environment['WEBHOOK_SECRET'] = `${SECRET},${OLDER}`;
    const { stdout } = await run('sync', '--types', 'CEP', '--json');
    expect(JSON.parse(stdout)).toEqual([{ type: 'CEP', action: 'update', id }]);
    const moved = (await registered()).find((webhook: { id: string }) => webhook.id === id);
    expect(moved.url).toBe(ingressUrl(PUBLIC_URL, clientId, 'CEP', SECRET));
  });

  it('corrects one that leads here with another token', async () => {
    const { clientId } = running();
    const id = await register('CEP', ingressUrl(PUBLIC_URL, clientId, 'CEP', SECRET), 'another token');
    expect((await run('sync', '--types', 'CEP')).stdout).toContain(`CEP: was mended (${id})`);
    const mended = (await registered()).find((webhook: { id: string }) => webhook.id === id);
    expect(mended.token).toBe(ingressToken(clientId, 'CEP', SECRET));
  });

  it('switches on again what was switched off', async () => {
    await run('sync', '--types', 'CEP');
    const [{ id }] = (await registered()).filter(({ url }: { url: string }) => url.startsWith(PUBLIC_URL));
    await control(running(), 'PATCH', `${path()}/${id}`, { webhook_status: 'INACTIVE' });
    expect((await run('sync', '--types', 'CEP')).stdout).toContain(`CEP: was mended (${id})`);
    const mended = (await registered()).find((webhook: { id: string }) => webhook.id === id);
    expect(mended.webhookStatus).toBe('ACTIVE');
  });

  it('moves the active one of two that lead here, so that no message comes twice', async () => {
    const { clientId } = running();
    const off = await register('CEP', ingressUrl(PUBLIC_URL, clientId, 'CEP', SECRET));
    await control(running(), 'PATCH', `${path()}/${off}`, { webhook_status: 'INACTIVE' });
    const on = await register('CEP', ingressUrl(PUBLIC_URL, clientId, 'CEP', OLDER));
    environment['WEBHOOK_SECRET'] = `${SECRET},${OLDER}`;
    expect((await run('sync', '--types', 'CEP')).stdout).toBe(`CEP: was mended (${on})\n`);
    const here = (await registered()).filter(({ url }: { url: string }) => url.startsWith(PUBLIC_URL));
    const statusOf = ({ id, webhookStatus }: { id: string; webhookStatus: string }) => [id, webhookStatus];
    expect(Object.fromEntries(here.map(statusOf))).toEqual({ [off]: 'INACTIVE', [on]: 'ACTIVE' });
  });

  it('moves a webhook from the address of another type, which a list says', async () => {
    const id = await register('CEP', ingressUrl(PUBLIC_URL, running().clientId, 'MONEY_IN', SECRET));
    expect((await run('list')).stdout).toMatch(
      new RegExp(`^${id}.*\\n +leads to this gateway, at the address of another type or client$`, 'm'),
    );
    expect((await run('sync', '--types', 'CEP')).stdout).toBe(`CEP: was mended (${id})\n`);
    const moved = (await registered()).find((webhook: { id: string }) => webhook.id === id);
    expect(moved.url).toBe(ingressUrl(PUBLIC_URL, running().clientId, 'CEP', SECRET));
  });

  it('leaves a webhook that leads elsewhere as it is, and points it out', async () => {
    const url = 'https://old.example.mx/hooks';
    const id = await register('MONEY_IN', url);
    expect((await run('sync')).stderr).toContain(`Another MONEY_IN webhook is active, ${id}`);
    const other = (await registered()).find((webhook: { id: string }) => webhook.id === id);
    expect(other).toMatchObject({ url, webhookStatus: 'ACTIVE' });
  });

  it('registers all types also where nobody reads its remarks any more', async () => {
    const [program = '', ...first] = programOf('src/cli/pasarela.ts');
    const args = [folder(program), ...first, 'webhooks', 'sync'];
    const child = spawn(process.execPath, args, { env: { PATH: process.env['PATH'], ...environment } });
    child.stderr.destroy();
    child.stdout.resume();
    const [code] = await once(child, 'exit');
    expect([code, await registered()]).toEqual([0, [{}, {}, {}].map(() => expect.anything())]);
  });

  it('points out the second of two that lead here, as two runs at once make', async () => {
    const { clientId } = running();
    const twice = [0, 1].map(() => register('CEP', ingressUrl(PUBLIC_URL, clientId, 'CEP', SECRET)));
    const ids = await Promise.all(twice);
    const { stdout, stderr } = await run('sync', '--types', 'CEP', '--json');
    const [{ id }] = JSON.parse(stdout);
    const second = ids.find((one) => one !== id);
    expect(stderr).toContain(`Another CEP webhook is active, ${second}`);
    expect(await registered()).toHaveLength(2);
  });

  it('says what the service said when it refuses', async () => {
    await control(running(), 'POST', '/sandbox/faults', {
      match: { method: 'POST', path: '/v1/clients/*/webhooks' },
      fault: { status: 403 },
    });
    const { code, stderr } = await run('sync');
    expect(stderr).toContain('The MONEY_IN webhook could not be changed: The service does not allow this');
    expect(code).toBe(1);
  });

  it('changes the other types where the service refuses one, and says what was changed', async () => {
    const refuse = () =>
      control(running(), 'POST', '/sandbox/faults', {
        match: { method: 'POST', path: '/v1/clients/*/webhooks' },
        fault: { status: 403 },
        times: 1,
      });
    await refuse();
    const { code, stdout, stderr } = await run('sync', '--types', 'MONEY_IN,CEP');
    expect([code, stdout]).toEqual([1, 'CEP: was made\n']);
    expect(stderr).toContain('The MONEY_IN webhook could not be changed: The service does not allow this');
    await refuse();
    const next = await run('sync', '--json');
    expect(next.code).toBe(1);
    expect(JSON.parse(next.stdout)).toMatchObject([
      { type: 'CEP', action: 'none' },
      { type: 'STATUS_UPDATE', action: 'create' },
    ]);
    expect(next.stderr).toContain('MONEY_IN');
  });

  it('needs to know the address that it registers', async () => {
    delete environment['PUBLIC_URL'];
    expect(await run('sync')).toMatchObject({ code: 1, stderr: expect.stringContaining('PUBLIC_URL') });
  });
});

describe('pasarela webhooks list', () => {
  it('says where each one leads, and shows neither token nor signature', async () => {
    await run('sync', '--types', 'CEP');
    await register('MONEY_IN', 'https://old.example.mx/hooks', 'a token of theirs');
    const { stdout } = await run('list');
    expect(stdout).toMatch(/CEP .*\/webhooks\/[\w-]+\/CEP\/\*\*\*\n +feeds this gateway/);
    expect(stdout).toMatch(/old\.example\.mx\/hooks\n +leads elsewhere/);
    const asJson = (await run('list', '--json')).stdout;
    expect(JSON.parse(asJson)).toContainEqual(
      expect.objectContaining({ type: 'CEP', status: 'ACTIVE', leads: 'here' }),
    );
    const signature = ingressUrl(PUBLIC_URL, running().clientId, 'CEP', SECRET).split('/').at(-1);
    for (const secret of [signature, 'a token of theirs', running().accessToken]) {
      expect(stdout + asJson).not.toContain(secret);
    }
  });

  it('says of an address of a later version that this one does not know its type', async () => {
    await register('CEP', ingressUrl(PUBLIC_URL, running().clientId, 'LATER' as EventType, SECRET));
    expect((await run('list')).stdout).toMatch(
      /\/LATER\/\*\*\*\n +leads to this gateway, which refuses it: this version does not know its type/,
    );
  });

  it('needs a token in passthrough, and the gateway’s own credentials in service mode', async () => {
    delete environment['PASARELA_TOKEN'];
    expect(await run('list')).toMatchObject({ code: 1, stderr: expect.stringContaining('PASARELA_TOKEN') });
    const { clientId, apiKey, clientSecret } = running();
    Object.assign(environment, {
      AUTH_MODE: 'service',
      UPSTREAM_API_KEY: apiKey,
      UPSTREAM_CLIENT_ID: clientId,
      UPSTREAM_CLIENT_SECRET: clientSecret,
      AUTH_JWT_SECRET: 'not used here, and long enough for whoever counts',
      AUTH_ISSUER: 'https://id.example.mx',
      AUTH_AUDIENCE: 'pasarela',
    });
    expect((await run('list')).code).toBe(0);
  });
});

it('a webhook that the service goes on telling of, though it was deleted, is none', async () => {
  await register('CEP', 'https://old.example.mx/hooks');
  const [webhook] = await registered();
  expect(readRegistrations(running().clientId, [webhook], undefined)).toHaveLength(1);
  const deleted = { ...webhook, deletedAt: '2026-11-22T10:00:00Z' };
  expect(readRegistrations(running().clientId, [deleted], undefined)).toEqual([]);
  // In these forms the service says that a text is absent.
  for (const deletedAt of [null, '', 'None'])
    expect(readRegistrations(running().clientId, [{ ...webhook, deletedAt }], undefined)).toHaveLength(1);
});

it.each<[string, string, Registration['leads']]>([
  ['its own', ingressUrl(PUBLIC_URL, CLIENT, 'CEP', SECRET), 'here'],
  ['its own, of the secret before', ingressUrl(PUBLIC_URL, CLIENT, 'CEP', OLDER), 'here-older-secret'],
  ['another type’s', ingressUrl(PUBLIC_URL, CLIENT, 'MONEY_IN', SECRET), 'here-other-address'],
  [
    'another type’s, of the secret before',
    ingressUrl(PUBLIC_URL, CLIENT, 'MONEY_IN', OLDER),
    'here-other-address',
  ],
  ['another client’s', ingressUrl(PUBLIC_URL, OTHER_CLIENT, 'CEP', SECRET), 'here-other-address'],
  [
    'the client’s in another case',
    ingressUrl(PUBLIC_URL, CLIENT.toUpperCase(), 'CEP', SECRET),
    'here-other-address',
  ],
  ['of another secret', ingressUrl(PUBLIC_URL, CLIENT, 'CEP', 'a stranger’s secret'), 'here-unsigned'],
])('an address that is %s leads where the gateway takes it in', (_, url, leads) => {
  const webhook = { id: '1', url, webhookType: 'CEP', webhookStatus: 'ACTIVE' };
  const receiver = { publicUrl: PUBLIC_URL, signing: SECRET, older: [OLDER] };
  expect(readRegistrations(CLIENT, [webhook], receiver)).toMatchObject([{ leads }]);
});

describe('pasarela webhooks remove', () => {
  it('removes those named, and only those', async () => {
    const gone = await register('CEP', 'https://old.example.mx/hooks');
    const kept = await register('CEP', 'https://other.example.mx/hooks');
    expect(await run('remove', gone)).toMatchObject({ code: 0, stdout: `${gone}: was removed\n` });
    const ids = (await registered()).map(({ id }: { id: string }) => id);
    expect(ids).not.toContain(gone);
    expect(ids).toContain(kept);
  });

  it('removes all of them where nobody reads what it prints', async () => {
    const ids = [
      await register('CEP', 'https://old.example.mx/hooks'),
      await register('CEP', 'https://other.example.mx/hooks'),
    ];
    const [program = '', ...first] = programOf('src/cli/pasarela.ts');
    const child = spawn(process.execPath, [folder(program), ...first, 'webhooks', 'remove', ...ids], {
      env: { PATH: process.env['PATH'], ...environment },
    });
    child.stdout.destroy();
    await once(child, 'close');
    const left = (await registered()).map(({ id }: { id: string }) => id);
    for (const id of ids) expect(left).not.toContain(id);
  });

  it('removes nothing when one of the ids is unknown', async () => {
    const kept = await register('CEP', 'https://old.example.mx/hooks');
    const { code, stderr } = await run('remove', kept, '00000000-0000-4000-8000-000000000000');
    expect(stderr).toContain('Nothing was removed');
    expect(code).toBe(1);
    expect((await registered()).map(({ id }: { id: string }) => id)).toContain(kept);
  });
});
