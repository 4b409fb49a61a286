import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { Secret } from '../../src/common/secret.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { startRedis } from '../helpers/redis.ts';
import {
  AUDIENCE,
  type CallerClaims,
  callerToken,
  ISSUER,
  JWT_SECRET,
  serviceFor,
} from '../helpers/service.ts';

const CLIENT = '{ client { id accounts { totalCount } } }';
const TOKENS = '/v1/clients/{clientId}/auth/credential-tokens';

let sandbox: Sandbox;
let gateway: RunningGateway;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({ sandbox, webhooks: false, config: { service: serviceFor(sandbox) } });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

const ask = (authorization: string | undefined, document = CLIENT, on = gateway) =>
  on.query(document, {}, { authorization });
const bearer = async (claims?: CallerClaims, secret?: string) =>
  `Bearer ${await callerToken(claims, secret)}`;

const issued = async (): Promise<number> => {
  const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
  return counts[`POST ${TOKENS}`] ?? 0;
};
const forget = () => control(sandbox, 'DELETE', '/sandbox/requests');

describe('a caller of a gateway in service mode', () => {
  it('acts for the client that the gateway stands for', async () => {
    const { data, errors } = await ask(await bearer());
    expect(errors).toBeUndefined();
    expect(data.client.id).toBe(sandbox.clientId);
    expect(data.client.accounts.totalCount).toBeGreaterThan(0);
  });

  it('is nobody with the upstream’s own token', async () => {
    const { data, errors } = await ask(`Bearer ${sandbox.accessToken}`);
    expect(data ?? null).toBeNull();
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  const past = Math.floor(Date.now() / 1000) - 10;
  it.each<[string, () => Promise<string> | string]>([
    ['signed with another secret', () => bearer({}, 'another secret altogether, of forty letters')],
    ['of another issuer', () => bearer({ iss: 'https://evil.example' })],
    ['for another audience', () => bearer({ aud: 'somebody-else' })],
    ['that has expired', () => bearer({ exp: past })],
    ['that never expires', () => bearer({ exp: null })],
    ['with a customer_id that is no UUID', () => bearer({ customer_id: 'all' })],
    ['with a customer_id that is null', () => bearer({ customer_id: null })],
    ['with several customer_ids', () => bearer({ customer_id: [sandbox.clientId] })],
    [
      'that is not signed',
      () => `Bearer ${new UnsecuredJWT({ iss: ISSUER, aud: AUDIENCE, scope: 'graph:read' }).encode()}`,
    ],
    ['that is no JWT', () => 'Bearer nonsense'],
  ])('is nobody with a token %s', async (_case, token) => {
    const { data, errors } = await ask(await token());
    expect(data ?? null).toBeNull();
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  it.each([
    ['graph:read', { scope: 'events:read money:move accounts:write webhooks:write' }, '{ client { id } }'],
    ['events:read', { scope: 'graph:read' }, '{ eventCursor }'],
    [
      'accounts:write',
      { scope: 'graph:read money:move' },
      'mutation { createCustomerPrivateAccount(input: { customerId: "x" }) { __typename } }',
    ],
    [
      'webhooks:write',
      { scope: 'graph:read' },
      'mutation { deleteWebhook(input: { id: "x" }) { __typename } }',
    ],
    [
      'money:move',
      { scope: 'graph:read accounts:write' },
      'mutation { refundTransaction(input: { idempotencyKey: "12345678", transactionId: "x", as: { reason: "r" } }) { __typename } }',
    ],
  ])('needs the scope %s', async (scope, claims, document) => {
    const { errors } = await ask(await bearer(claims), document);
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining(scope),
      extensions: { code: 'FORBIDDEN' },
    });
    expect((await ask(await bearer({ scope }), document)).errors?.[0]?.extensions['code']).not.toBe(
      'FORBIDDEN',
    );
  });

  it('moves money with a part of money:move in that way alone', async () => {
    const transfer =
      'sourceInstrumentId: "x", destinationInstrumentId: "x", amount: "1.00", description: "x", externalReference: "1"';
    const ways = {
      out: `createMoneyOut(input: { idempotencyKey: "12345678", ${transfer} })`,
      internal: `createInternalTransaction(input: { idempotencyKey: "12345678", ${transfer} })`,
      validate:
        'createPennyValidation(input: { idempotencyKey: "12345678", sourceInstrumentId: "x", destinationInstrumentId: "x" })',
      refund:
        'refundTransaction(input: { idempotencyKey: "12345678", transactionId: "x", as: { reason: "r" } })',
    };
    const open = async (scope: string) => {
      const found: string[] = [];
      for (const [way, field] of Object.entries(ways)) {
        const { data, errors } = await ask(
          await bearer({ scope }),
          `mutation { paid: ${field} { __typename ... on UserError { code } } }`,
        );
        if (data?.paid?.code === 'INVALID_INPUT') found.push(way);
        else expect(errors?.[0]?.extensions['code']).toBe('FORBIDDEN');
      }
      return found;
    };
    for (const way of Object.keys(ways)) expect(await open(`money:move:${way}`)).toEqual([way]);
    expect(await open('money:move')).toEqual(Object.keys(ways));
    expect(await open('graph:read money:move:everything')).toEqual([]);
  });

  it.each([
    ['a text in scp', { scp: 'graph:read events:read' }],
    ['a list in scp', { scp: ['graph:read', 'events:read'] }],
  ])('has the scopes of %s', async (_case, claims) => {
    expect((await ask(await bearer(claims))).errors).toBeUndefined();
    const { errors } = await ask(await bearer({ scp: ['other'] }));
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN' });
  });

  it.each([
    `{ credentials(clientId: "11111111-2222-4333-8444-555555555555") { clientSecret } }`,
    `mutation { issueCredentialToken(input: { clientId: "11111111-2222-4333-8444-555555555555", clientSecret: "s" }) { __typename } }`,
  ])('gets no credentials, with an API key or without: %s', async (document) => {
    for (const key of [undefined, sandbox.apiKey]) {
      const headers = { authorization: await bearer(), 'x-api-key': key };
      const { data, errors } = await gateway.query(document, {}, headers);
      expect(data ?? null).not.toMatchObject({ credentials: expect.anything() });
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining('not served'),
        extensions: { code: 'FORBIDDEN' },
      });
    }
  });
});

const TIMES = { cooldownMs: 100, maxAgeMs: 60_000 };

describe('callers’ tokens verified by published keys', () => {
  it('are accepted from the identity provider’s key, and from no other', async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const foreign = await generateKeyPair('ES256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256' };
    const provider = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [jwk] }));
    });
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
    const jwksUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/keys`;
    const service = { ...serviceFor(sandbox), keys: { jwksUrl, ...TIMES } };
    await using keyed = await startGateway({ sandbox, webhooks: false, config: { service } });
    const sign = (key: Parameters<SignJWT['sign']>[0], alg: string) =>
      new SignJWT({ scope: 'graph:read' })
        .setProtectedHeader({ alg, kid: 'k1' })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setExpirationTime('1h')
        .sign(key);

    expect((await ask(`Bearer ${await sign(privateKey, 'ES256')}`, CLIENT, keyed)).errors).toBeUndefined();
    // The public key, which everybody has, taken for a shared secret.
    const confused = await sign(new TextEncoder().encode(JSON.stringify(jwk)), 'HS256');
    for (const token of [await sign(foreign.privateKey, 'ES256'), confused, await callerToken()]) {
      const { errors } = await ask(`Bearer ${token}`, CLIENT, keyed);
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
    }
    provider.closeAllConnections();
    await new Promise((resolve) => provider.close(resolve));
  });

  it('cannot be accepted while the keys cannot be had, and that is no fault of the caller', async () => {
    const service = { ...serviceFor(sandbox), keys: { jwksUrl: 'http://127.0.0.1:1/keys', ...TIMES } };
    await using keyed = await startGateway({ sandbox, webhooks: false, config: { service } });
    const { errors } = await ask(await bearer(), CLIENT, keyed);
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
    const { privateKey } = await generateKeyPair('ES256');
    const token = await new SignJWT({}).setProtectedHeader({ alg: 'ES256' }).sign(privateKey);
    const unread = await ask(`Bearer ${token}`, CLIENT, keyed);
    expect(unread.errors?.[0]?.extensions).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
  });
});

describe('the gateway’s own token', () => {
  it('is fetched once, however many ask at once', async () => {
    await using fresh = await startGateway({
      sandbox,
      webhooks: false,
      config: { service: serviceFor(sandbox) },
    });
    await forget();
    const authorization = await bearer();
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(authorization, CLIENT, fresh)));
    expect(answers.filter(({ errors }) => errors !== undefined)).toEqual([]);
    expect(await issued()).toBe(1);
  });

  it('is renewed once on a 401, and the call repeated: also one that moves money', async () => {
    await using ending = await startSandbox({
      port: 0,
      speed: 0,
      seed: 1,
      choices: { newTokenEndsOlder: true },
    });
    await using fresh = await startGateway({
      sandbox: ending,
      webhooks: false,
      config: { service: serviceFor(ending) },
    });
    const authorization = await bearer();
    await ask(authorization, CLIENT, fresh);
    const seeded = await control(ending, 'GET', '/sandbox');
    // Somebody else fetches a token, which ends the gateway's.
    await fetch(`${ending.url}/v1/clients/${ending.clientId}/auth/credential-tokens`, {
      method: 'POST',
      headers: { 'x-api-key': ending.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ client_id: ending.clientId, client_secret: ending.clientSecret }),
    });
    const { data, errors } = await fresh.query(
      `mutation ($input: CreateMoneyOutInput!) {
        createMoneyOut(input: $input) { __typename ... on CreateMoneyOutSuccess { replayed transaction { id } } }
      }`,
      {
        input: {
          idempotencyKey: 'after-a-401',
          sourceInstrumentId: seeded.centralizingInstrumentId,
          destinationInstrumentId: seeded.cardInstrumentIds[0],
          amount: '10.00',
          description: 'Pago',
          externalReference: '1',
        },
      },
      { authorization },
    );
    expect(errors).toBeUndefined();
    expect(data.createMoneyOut).toMatchObject({ __typename: 'CreateMoneyOutSuccess', replayed: false });
  });

  it('is not renewed again within half a minute, and the caller hears that the service is at fault', async () => {
    await using strict = await startSandbox({ port: 0, speed: 0, seed: 1 });
    await using fresh = await startGateway({
      sandbox: strict,
      webhooks: false,
      // What is believed of a list is not read.
      config: { service: serviceFor(strict), listsMaxAgeMs: 0 },
    });
    const authorization = await bearer();
    await ask(authorization, CLIENT, fresh);
    await control(strict, 'POST', '/sandbox/faults', {
      match: { path: '/v1/clients/*/accounts' },
      fault: { status: 401, body: {} },
    });
    await control(strict, 'DELETE', '/sandbox/requests');
    for (let round = 0; round < 5; round += 1) {
      const { errors } = await ask(authorization, CLIENT, fresh);
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining("gateway's own access token"),
        extensions: { code: 'UPSTREAM_UNAVAILABLE' },
      });
    }
    const { counts } = await control(strict, 'GET', '/sandbox/requests');
    expect(counts[`POST ${TOKENS}`]).toBe(1);
  });

  it('is shared by all processes through Redis, where it cannot be read', async () => {
    await using redis = await startRedis();
    await using ending = await startSandbox({
      port: 0,
      speed: 0,
      seed: 1,
      choices: { newTokenEndsOlder: true },
    });
    const config = { service: serviceFor(ending), redisUrl: new Secret(redis.url) };
    await using one = await startGateway({ sandbox: ending, webhooks: false, config });
    await using two = await startGateway({ sandbox: ending, webhooks: false, config });
    await control(ending, 'DELETE', '/sandbox/requests');
    const authorization = await bearer();
    const answers = await Promise.all(
      [one, two, one, two, one, two].map((process) => ask(authorization, CLIENT, process)),
    );
    expect(answers.filter(({ errors }) => errors !== undefined)).toEqual([]);
    const { counts } = await control(ending, 'GET', '/sandbox/requests');
    expect(counts[`POST ${TOKENS}`]).toBe(1);
    const keys = await redis.admin.keys('pasarela:token:*');
    expect(keys).toEqual([expect.stringContaining(`pasarela:token:{${ending.clientId}}:`)]);
    const stored = (await redis.admin.get(keys[0] ?? '')) ?? '';
    expect(stored.length).toBeGreaterThan(100);
    expect(Buffer.from(stored, 'base64url').toString('latin1')).not.toContain('eyJ');
    expect(await redis.admin.pttl(keys[0] ?? '')).toBeGreaterThan(0);
  });

  it('is not taken over by a process with a wrong API key, which says at once that the service gives it none', async () => {
    await using redis = await startRedis();
    await using ending = await startSandbox({ port: 0, speed: 0, seed: 1 });
    const redisUrl = new Secret(redis.url);
    const right = { service: serviceFor(ending), redisUrl };
    const wrong = { service: serviceFor({ ...ending, apiKey: 'not known yet' }), redisUrl };
    await using before = await startGateway({ sandbox: ending, webhooks: false, config: right });
    await using changed = await startGateway({ sandbox: ending, webhooks: false, config: wrong });
    const authorization = await bearer();
    expect((await ask(authorization, CLIENT, before)).errors).toBeUndefined();
    const kept = await redis.admin.keys('pasarela:token:*');
    expect((await ask(authorization, CLIENT, changed)).errors?.[0]).toMatchObject({
      message: 'The service gave the gateway no access token.',
      extensions: { code: 'UPSTREAM_UNAVAILABLE' },
    });
    expect(await redis.admin.keys('pasarela:token:*')).toEqual(kept);
  });

  it('is fetched by each process alone while Redis is away', async () => {
    const redis = await startRedis();
    const config = { service: serviceFor(sandbox), redisUrl: new Secret(redis.url) };
    await using lonely = await startGateway({ sandbox, webhooks: false, config });
    await redis.kill();
    expect((await ask(await bearer(), CLIENT, lonely)).errors).toBeUndefined();
    await lonely.stop();
    await redis.stop();
  });

  it('never shows in what is logged', () => {
    const log = gateway.log.join('\n');
    for (const secret of [JWT_SECRET, sandbox.apiKey, sandbox.clientSecret, 'eyJ']) {
      expect(log).not.toContain(secret);
    }
  });
});
