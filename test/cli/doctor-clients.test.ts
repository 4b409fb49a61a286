import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { EVENT_TYPES, type EventType } from '../../src/events/log.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { control } from '../helpers/gateway.ts';
import { AUDIENCE, ISSUER, JWT_SECRET } from '../helpers/service.ts';
import { pasarela } from './run.ts';

const [NEW, OLD] = ['the secret of now that is long enough', 'the secret of then that is long enough'];
const PUBLIC_URL = 'https://graph.example.mx';
const WRONG = 'not the secret of this client';

interface Client {
  readonly accessToken: string;
  readonly clientId: string;
  readonly apiKey: string;
  readonly clientSecret: string;
}

let sandbox: Sandbox;
let folder: string;
let first: Client;
let second: Client;
let environment: Record<string, string>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-clients-'));
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, webhookHosts: ['graph.example.mx'] });
  const { otherClients, ...demo } = await control(sandbox, 'GET', '/sandbox');
  [first, second] = [demo, otherClients[0]];
  environment = {
    UPSTREAM_URL: sandbox.url,
    PUBLIC_URL,
    WEBHOOK_SECRET: `${NEW},${OLD}`,
    DATA_DIR: folder,
    PORT: '0',
    AUTH_MODE: 'service',
    AUTH_JWT_SECRET: JWT_SECRET,
    AUTH_ISSUER: ISSUER,
    AUTH_AUDIENCE: AUDIENCE,
    AUTH_CLIENT_CLAIM: 'merchant',
    UPSTREAM_CLIENTS: await clientsFile(first, second),
  };
});
afterAll(async () => {
  await sandbox.stop();
  await rm(folder, { recursive: true });
});

async function clientsFile(...clients: readonly Client[]): Promise<string> {
  const file = join(await mkdtemp(join(folder, 'file-')), 'clients.json');
  const of = ({ clientId, apiKey, clientSecret }: Client) => ({ clientId, apiKey, clientSecret });
  await writeFile(file, JSON.stringify(clients.map(of)));
  return file;
}

/** What the doctor says of tokens and webhooks, in its order. */
async function found(changes: Readonly<Record<string, string>> = {}) {
  const { stdout, stderr } = await pasarela(['doctor', '--json'], { ...environment, ...changes });
  expect(stderr).toBe('');
  const { findings }: { findings: { check: string; status: string; message: string; cure?: string }[] } =
    JSON.parse(stdout);
  return findings.filter(({ check }) => check === 'token' || check === 'webhooks');
}

async function change(
  { clientId, accessToken }: Client,
  method: 'POST' | 'PATCH',
  webhook: string,
  body: object,
): Promise<string> {
  const response = await fetch(`${sandbox.url}/v1/clients/${clientId}/webhooks${webhook}`, {
    method,
    headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.ok).toBe(true);
  const { id } = (await response.json()) as { id: string };
  return id;
}

/** Registers a webhook without the gateway's help. Resolves with its id. */
const register = (client: Client, type: EventType, url: string): Promise<string> =>
  change(client, 'POST', '', { client_id: client.clientId, url, token: 'theirs', webhook_type: type });

/** What the doctor says in the place of the sentence that a rotation is done. */
const notDone = async (changes: Readonly<Record<string, string>> = {}) =>
  (await found(changes)).filter(({ message }) => message.includes('not called done'));

const sync = ({ clientId }: Client) =>
  pasarela(['webhooks', 'sync'], { ...environment, UPSTREAM_CLIENT_ID: clientId });
const isRotated = (client: Client) =>
  `all 3 webhooks of client ${client.clientId} that lead here are signed with the first WEBHOOK_SECRET`;

it('looks at the token and the webhooks of each client, and says of each when a second secret is not needed', async () => {
  // An absent sentence could not be told from one that was not looked for.
  expect(await notDone()).toMatchObject(
    [first, second].map(({ clientId }) => ({
      status: 'skipped',
      message: expect.stringContaining(`no webhook of client ${clientId} leads here`),
      cure: expect.stringContaining(`UPSTREAM_CLIENT_ID=${clientId} pasarela webhooks sync --types`),
    })),
  );
  for (const client of [first, second])
    for (const type of EVENT_TYPES)
      await register(client, type, ingressUrl(PUBLIC_URL, client.clientId, type, OLD));
  const before = await found();
  expect(before.filter(({ status }) => status === 'ok').map(({ check }) => check)).toEqual([
    'token',
    'token',
  ]);
  for (const { clientId } of [first, second]) {
    const warnings = before.filter(
      ({ status, message }) => status === 'warning' && message.startsWith(`client ${clientId}: the `),
    );
    expect(warnings).toHaveLength(3);
    for (const { message, cure } of warnings) {
      expect(message).toContain('is signed with the second WEBHOOK_SECRET');
      expect(cure).toContain(`UPSTREAM_CLIENT_ID=${clientId} pasarela webhooks sync`);
    }
  }

  const pending = before.filter(({ message }) => message.includes('not called done'));
  expect(pending.map(({ message }) => message)).toEqual(
    [first, second].map(({ clientId }) =>
      expect.stringContaining(`because of 3 of the 3 webhooks of client ${clientId} that lead here: the `),
    ),
  );

  await sync(first);
  const said = (await found()).map(({ message }) => message).join('\n');
  expect(said).toContain(isRotated(first));
  expect(said).not.toContain(isRotated(second));

  await sync(second);
  const after = await found({ UPSTREAM_CLIENT_ID: first.clientId });
  expect(after.filter(({ status }) => status !== 'ok')).toEqual([]);
  for (const client of [first, second])
    expect(after.map(({ message }) => message).join('\n')).toContain(isRotated(client));
  // With one secret there is nothing to drop.
  const alone = (await found({ WEBHOOK_SECRET: NEW })).map(({ message }) => message).join('\n');
  expect(alone).not.toContain('signed with the first');
  expect(alone).not.toContain('not called done');
});

it('finds a webhook of one client at the address of another, and does not call the rotation done', async () => {
  const url = ingressUrl(PUBLIC_URL, first.clientId, 'MONEY_IN', NEW);
  const id = await register(second, 'MONEY_IN', url);
  const all = await found();
  const failures = all.filter(({ status }) => status === 'failure');
  expect(failures).toHaveLength(1);
  expect(failures[0]?.message).toContain(
    `client ${second.clientId}: the MONEY_IN webhook ${id} has the address of another type or client (${PUBLIC_URL}/webhooks/${first.clientId}/MONEY_IN/***)`,
  );
  const said = all.map(({ message }) => message).join('\n');
  expect(said).toContain(isRotated(first));
  expect(said).not.toContain(isRotated(second));

  // Switched off it is no failure, and keeps the rotation from being called done all the same: so it is named.
  await change(second, 'PATCH', `/${id}`, { webhook_status: 'INACTIVE' });
  expect((await found()).filter(({ status }) => status === 'failure' || status === 'warning')).toEqual([]);
  expect(await notDone()).toEqual([
    {
      check: 'webhooks',
      status: 'skipped',
      message: `client ${second.clientId}: the rotation of WEBHOOK_SECRET is not called done because of 1 of the 4 webhooks of client ${second.clientId} that lead here: the MONEY_IN webhook ${id} (INACTIVE) has the address of another type or client`,
      cure: `UPSTREAM_CLIENT_ID=${second.clientId} pasarela webhooks sync --types MONEY_IN,CEP,STATUS_UPDATE, then UPSTREAM_CLIENT_ID=${second.clientId} pasarela webhooks remove ID for those that are still named and not needed.`,
    },
  ]);
});

it('says that it could not look whether a rotation is done where no token is accepted', async () => {
  const own = { PUBLIC_URL, UPSTREAM_URL: sandbox.url, DATA_DIR: folder, PORT: '0' };
  const { stdout } = await pasarela(['doctor', '--json'], { ...own, WEBHOOK_SECRET: `${NEW},${OLD}` });
  expect(stdout).toContain('not looked at without an accepted token, so that the rotation of WEBHOOK_SECRET');
  const { stdout: alone } = await pasarela(['doctor', '--json'], { ...own, WEBHOOK_SECRET: NEW });
  expect(alone).toContain('not looked at without an accepted token"');
});

it('names the client whose credentials are refused, and looks at the others', async () => {
  const wrong = { ...first, clientSecret: WRONG };
  const all = await found({ UPSTREAM_CLIENTS: await clientsFile(wrong, second) });
  expect(all).toContainEqual(
    expect.objectContaining({
      check: 'token',
      status: 'failure',
      message: expect.stringContaining(`client ${first.clientId}: the service issues no token`),
      cure: expect.stringContaining('UPSTREAM_CLIENTS'),
    }),
  );
  expect(all).toContainEqual(
    expect.objectContaining({
      check: 'token',
      status: 'ok',
      message: expect.stringContaining(second.clientId),
    }),
  );
});
