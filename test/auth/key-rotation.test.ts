import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { expect, it, onTestFinished } from 'vitest';
import { createTokenVerifier, type TokenFailure } from '../../src/auth/token-verifier.ts';
import { AUDIENCE, ISSUER } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';

interface Key {
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
}

/** An identity provider that shows `keys`, which a test changes. @returns tries a token: undefined if it is accepted, else why it is not */
async function startProvider(keys: JWK[], maxAgeMs = 60_000) {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys }));
  });
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const refused: TokenFailure[] = [];
  const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  const verify = createTokenVerifier(
    {
      keys: { jwksUrl, cooldownMs: 1, maxAgeMs },
      ...{ issuer: ISSUER, audience: AUDIENCE, keyOwnerClaim: 'sub', clientClaim: undefined },
    },
    { tokenRefused: (reason) => refused.push(reason), keysRead: () => {}, ownTokenAsked: () => {} },
  );
  return async (token: string): Promise<TokenFailure | undefined> => {
    refused.length = 0;
    await verify(token).catch(() => {});
    return refused[0];
  };
}

async function makeKey(kid?: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  return { jwk: { ...(await exportJWK(publicKey)), ...(kid !== undefined && { kid }) }, privateKey };
}

const sign = ({ jwk, privateKey }: Key, lifeSeconds = 600) =>
  new SignJWT({ iss: ISSUER, aud: AUDIENCE, exp: Math.floor(Date.now() / 1000) + lifeSeconds })
    .setProtectedHeader({ alg: 'ES256', ...(jwk.kid !== undefined && { kid: jwk.kid }) })
    .sign(privateKey);

it('a token of a key that is hidden has an unknown key, also once it has ended', async () => {
  const [old, next] = [await makeKey('old'), await makeKey('next')];
  const keys = [old.jwk, next.jwk];
  const tried = await startProvider(keys, 1);
  expect(await tried(await sign(old))).toBe(undefined);
  expect(await tried(await sign(next))).toBe(undefined);
  expect(await tried(await sign(old, -600))).toBe('expired');
  keys.shift();
  await until(async () => (await tried(await sign(old))) === 'unknown-key');
  expect(await tried(await sign(old, -600))).toBe('unknown-key');
  expect(await tried(await sign(next))).toBe(undefined);
});

it('without a kid no token is accepted while two keys of one kind are shown', async () => {
  const [old, next] = [await makeKey(), await makeKey()];
  const keys = [old.jwk, next.jwk];
  const tried = await startProvider(keys);
  expect(await tried(await sign(old))).toBe('unknown-key');
  expect(await tried(await sign(next))).toBe('unknown-key');
  keys.shift();
  expect(await tried(await sign(next))).toBe('unknown-key');
});

it('without a kid a key that is not shown yet is a wrong signature, for which the keys are not read again', async () => {
  const [old, next] = [await makeKey(), await makeKey()];
  const keys = [old.jwk];
  const tried = await startProvider(keys);
  expect(await tried(await sign(old))).toBe(undefined);
  expect(await tried(await sign(next))).toBe('signature');
  keys[0] = next.jwk;
  expect(await tried(await sign(next))).toBe('signature');
  expect(await tried(await sign(old))).toBe(undefined);
});

it('a token that names a kid needs a key that has one', async () => {
  const key = await makeKey();
  const tried = await startProvider([key.jwk]);
  expect(await tried(await sign({ ...key, jwk: { ...key.jwk, kid: 'one' } }))).toBe('unknown-key');
});
