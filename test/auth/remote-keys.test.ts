import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { expect, it, onTestFinished } from 'vitest';
import { UnauthenticatedError } from '../../src/auth/authenticator.ts';
import { createTokenVerifier, type TokenFailure } from '../../src/auth/token-verifier.ts';
import { UpstreamError } from '../../src/upstream/call/errors.ts';
import { AUDIENCE, ISSUER } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';

/** An identity provider that shows one key, and changes it; and a verifier of its tokens. */
async function startProvider(times: { cooldownMs: number; maxAgeMs: number }) {
  let generation = 0;
  let current: { readonly jwk: JWK; readonly sign: (without?: string) => Promise<string> };
  const makeKey = async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const kid = `k${generation}`;
    generation += 1;
    const sign = (without?: string) => {
      const claims = { iss: ISSUER, aud: AUDIENCE, exp: Math.floor(Date.now() / 1000) + 600 };
      return new SignJWT(Object.fromEntries(Object.entries(claims).filter(([name]) => name !== without)))
        .setProtectedHeader({ alg: 'ES256', kid })
        .sign(privateKey);
    };
    return { jwk: { ...(await exportJWK(publicKey)), kid }, sign };
  };
  current = await makeKey();
  let status = 200;
  let reads = 0;
  let released: Promise<void> | undefined;
  const server = createServer(async (_request, response) => {
    reads += 1;
    const keys = JSON.stringify({ keys: [current.jwk] });
    await released;
    response.writeHead(status, { 'content-type': 'application/json' }).end(keys);
  });
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const refused: TokenFailure[] = [];
  const outcomes: boolean[] = [];
  const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  const verify = createTokenVerifier(
    {
      keys: { jwksUrl, ...times },
      issuer: ISSUER,
      audience: AUDIENCE,
      keyOwnerClaim: 'sub',
      clientClaim: undefined,
    },
    {
      tokenRefused: (reason) => refused.push(reason),
      keysRead: (isRead) => outcomes.push(isRead),
      ownTokenAsked: () => {},
    },
  );
  return {
    verify,
    refused,
    outcomes,
    reads: () => reads,
    sign: () => current.sign(),
    /** A token that lacks a claim. */
    signWithout: (name: string) => current.sign(name),
    fails: (isFailing: boolean) => {
      status = isFailing ? 500 : 200;
    },
    rotate: async () => {
      current = await makeKey();
    },
    /** Answers are held back, each as it was asked for. @returns lets them go. */
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      released = promise;
      return resolve;
    },
    strange: async () => (await makeKey()).sign(),
  };
}

it('accepts what is signed by a key that has just been changed to, twice at once', async () => {
  const { verify, sign, rotate, reads } = await startProvider({ cooldownMs: 300, maxAgeMs: 60_000 });
  await expect(verify(await sign())).resolves.toBeDefined();
  for (const changes of [1, 2]) {
    await rotate();
    await expect(verify(await sign())).resolves.toBeDefined();
    expect(reads()).toBe(1 + changes);
  }
});

it('reads the keys once for all tokens of keys that nobody has, and refuses them', async () => {
  const { verify, sign, strange, reads, refused } = await startProvider({
    cooldownMs: 300,
    maxAgeMs: 60_000,
  });
  await verify(await sign());
  const tokens = await Promise.all(Array.from({ length: 20 }, strange));
  const answers = await Promise.allSettled(tokens.map((token) => verify(token)));
  for (const answer of answers) {
    expect(answer).toMatchObject({ status: 'rejected', reason: expect.any(UnauthenticatedError) });
  }
  expect(refused).toEqual(tokens.map(() => 'unknown-key'));
  // One for those that came before the reading began, one for those that came after.
  expect(reads()).toBeLessThanOrEqual(3);
});

it('believes a key that the provider has dropped no longer than it may be old', async () => {
  const { verify, sign, rotate } = await startProvider({ cooldownMs: 1, maxAgeMs: 20 });
  const old = await sign();
  await verify(old);
  await rotate();
  await until(() =>
    verify(old).then(
      () => false,
      (error) => error instanceof UnauthenticatedError,
    ),
  );
});

it('believes the keys that it has while the provider cannot be asked, and refuses nobody whose key is new', async () => {
  const { verify, sign, rotate, fails, outcomes } = await startProvider({ cooldownMs: 1, maxAgeMs: 1 });
  const known = await sign();
  await verify(known);
  fails(true);
  await until(async () => {
    await verify(known);
    return outcomes.includes(false);
  });
  await expect(verify(known)).resolves.toBeDefined();
  await rotate();
  await expect(verify(await sign())).rejects.toBeInstanceOf(UpstreamError);
  fails(false);
  await expect(verify(await sign())).resolves.toBeDefined();
});

it('does not ask a provider again that has just failed to answer', async () => {
  const { verify, sign, fails, reads } = await startProvider({ cooldownMs: 60_000, maxAgeMs: 600_000 });
  fails(true);
  for (let count = 0; count < 5; count += 1) {
    await expect(verify(await sign())).rejects.toBeInstanceOf(UpstreamError);
  }
  expect(reads()).toBe(1);
});

it('waits for the keys that are being read, though the reading before has failed', async () => {
  const { verify, sign, fails, hold, reads } = await startProvider({ cooldownMs: 500, maxAgeMs: 60_000 });
  const token = await sign();
  fails(true);
  await expect(verify(token)).rejects.toBeInstanceOf(UpstreamError);
  fails(false);
  const release = hold();
  await until(() => {
    // Refused until the next reading may begin.
    verify(token).catch(() => undefined);
    return reads() === 2;
  });
  const verified = verify(token);
  release();
  await expect(verified).resolves.toBeDefined();
});

it('does not ask a provider again that has just been asked', async () => {
  const { verify, sign, reads } = await startProvider({ cooldownMs: 60_000, maxAgeMs: 1 });
  const known = await sign();
  await verify(known);
  for (let count = 0; count < 5; count += 1) {
    const readAt = performance.now();
    // By then they are older than they may be.
    await until(() => performance.now() - readAt > 2);
    await verify(known);
  }
  expect(reads()).toBe(1);
});

it('accepts a key that was changed to while the keys were being read', async () => {
  const { verify, sign, strange, rotate, hold, reads } = await startProvider({
    cooldownMs: 1,
    maxAgeMs: 60_000,
  });
  await verify(await sign());
  const release = hold();
  const refused = verify(await strange()).catch((error: unknown) => error);
  await until(() => reads() === 2);
  await rotate();
  const verified = verify(await sign());
  // It joins the reading that is under way, which began before its key was there.
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  release();
  await expect(verified).resolves.toBeDefined();
  expect(await refused).toBeInstanceOf(UnauthenticatedError);
});

it('refuses what names no end, or was made by or for another, though it is signed', async () => {
  const { verify, signWithout, refused } = await startProvider({ cooldownMs: 300, maxAgeMs: 60_000 });
  await expect(verify(await signWithout('exp'))).rejects.toBeInstanceOf(UnauthenticatedError);
  await expect(verify(await signWithout('iss'))).rejects.toBeInstanceOf(UnauthenticatedError);
  await expect(verify(await signWithout('aud'))).rejects.toBeInstanceOf(UnauthenticatedError);
  expect(refused).toEqual(['claims', 'claims', 'claims']);
});
