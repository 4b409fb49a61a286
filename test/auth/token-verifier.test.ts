import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { UnauthenticatedError } from '../../src/auth/authenticator.ts';
import { MONEY_SCOPES } from '../../src/auth/caller.ts';
import { createTokenVerifier } from '../../src/auth/token-verifier.ts';
import { Secret } from '../../src/common/secret.ts';
import { AUDIENCE, ISSUER, JWT_SECRET } from '../helpers/service.ts';

const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

const verifierOf = (keyOwnerClaim: string) =>
  createTokenVerifier({
    keys: { secret: new Secret(JWT_SECRET) },
    issuer: ISSUER,
    audience: AUDIENCE,
    keyOwnerClaim,
    clientClaim: undefined,
  });
const verify = verifierOf('sub');

const signed = (claims: object, expiresIn: number | undefined = 3_600): Promise<string> =>
  new SignJWT({
    iss: ISSUER,
    aud: AUDIENCE,
    ...(expiresIn === undefined ? {} : { exp: inSeconds(expiresIn) }),
    ...claims,
  })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(JWT_SECRET));

describe('a caller’s token', () => {
  it('may be for several audiences, one of which is the gateway', async () => {
    await expect(verify(await signed({ aud: ['other', AUDIENCE] }))).resolves.toBeDefined();
    await expect(verify(await signed({ aud: ['other', 'another'] }))).rejects.toThrow(UnauthenticatedError);
    await expect(verify(await signed({ aud: [] }))).rejects.toThrow(UnauthenticatedError);
  });

  it('names its customer and its client in either case, and they are the same', async () => {
    const id = '7C9E6679-7425-40DE-944B-E07FC1F90AE7';
    const bearerOf = createTokenVerifier({
      keys: { secret: new Secret(JWT_SECRET) },
      issuer: ISSUER,
      audience: AUDIENCE,
      keyOwnerClaim: 'sub',
      clientClaim: 'merchant',
    });
    for (const named of [id, id.toLowerCase()]) {
      expect(await bearerOf(await signed({ customer_id: named, merchant: named }))).toMatchObject({
        customerId: id.toLowerCase(),
        client: id.toLowerCase(),
      });
    }
    // A list names none, also where one alone is in it.
    for (const merchant of [[id], [id, id], { id }, 7, null])
      expect(await bearerOf(await signed({ merchant }))).toMatchObject({ client: undefined });
    await expect(verify(await signed({ customer_id: 'somebody' }))).rejects.toThrow('customer_id');
    await expect(verify(await signed({ customer_id: [id] }))).rejects.toThrow('customer_id');
    await expect(verify(await signed({ customer_id: null }))).rejects.toThrow('customer_id');
  });

  it('names the owner of its keys by a text, or by nothing', async () => {
    expect(await verify(await signed({ sub: 'alma' }))).toMatchObject({ keyOwner: 'alma' });
    expect(await verify(await signed({}))).toMatchObject({ keyOwner: undefined });
    for (const sub of [7, ['alma'], { name: 'alma' }, null, true])
      await expect(verify(await signed({ sub })), JSON.stringify(sub)).rejects.toThrow(UnauthenticatedError);
  });

  it('names its subject by a text, or by nothing, whichever claim names the owner of its keys', async () => {
    const bearerOf = verifierOf('email');
    const email = 'alma@example.mx';
    expect(await bearerOf(await signed({ sub: 'alma', email }))).toMatchObject({
      subject: 'alma',
      keyOwner: email,
    });
    expect(await bearerOf(await signed({ email }))).toMatchObject({ subject: undefined, keyOwner: email });
    for (const sub of [7, ['alma'], { name: 'alma' }, null, true])
      await expect(bearerOf(await signed({ sub, email })), JSON.stringify(sub)).rejects.toThrow('claim sub');
  });

  it('has the scopes of a text or of a list, and of each way to move money where it may move it', async () => {
    const scopesOf = async (claims: object) => [...(await verify(await signed(claims))).scopes].sort();
    for (const name of ['scope', 'scp']) {
      expect(await scopesOf({ [name]: 'graph:read events:read other' })).toEqual([
        'events:read',
        'graph:read',
      ]);
      expect(await scopesOf({ [name]: ['graph:read', 'other', 7] })).toEqual(['graph:read']);
    }
    expect(await scopesOf({ scope: 'money:move' })).toEqual(['money:move', ...MONEY_SCOPES].sort());
    expect(await scopesOf({ scope: 'money:move:out' })).toEqual(['money:move:out']);
    expect(await scopesOf({})).toEqual([]);
  });

  it('holds from its nbf on, and up to its exp; no difference of clocks is forgiven', async () => {
    await expect(verify(await signed({ nbf: inSeconds(-1) }))).resolves.toBeDefined();
    await expect(verify(await signed({ nbf: inSeconds(5) }))).rejects.toThrow(UnauthenticatedError);
    await expect(verify(await signed({}, 30))).resolves.toBeDefined();
    await expect(verify(await signed({}, -1))).rejects.toThrow('has expired');
  });

  it('without exp, or with one that is no number, holds for nobody', async () => {
    await expect(verify(await signed({ exp: undefined }))).rejects.toThrow(UnauthenticatedError);
    await expect(verify(await signed({ exp: 'never' }))).rejects.toThrow(UnauthenticatedError);
  });
});
