import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { AUDIENCE, ISSUER } from '../../helpers/service.ts';

const SCOPE = 'graph:read events:read payments:read money:move';

/** Gives callers their tokens, and shows the keys that it signs with. */
export interface IdentityProvider extends AsyncDisposable {
  readonly jwksUrl: string;
  /** Answers with what `bearer` gives, for `subject` and `customerId` in the query. */
  readonly tokenUrl: string;
  /** A token of twelve hours, by the newest key, as the value of an `authorization` header. */
  bearer(subject: string, customerId?: string): Promise<string>;
  /** Signs with another key from now on, and shows it beside those of before. */
  addKey(): Promise<void>;
  /** Shows the newest key alone: tokens of those before are worth nothing. */
  dropOldKeys(): void;
}

export async function startIdentityProvider(): Promise<IdentityProvider> {
  const make = async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    return { privateKey, shown: { ...(await exportJWK(publicKey)), kid: randomUUID(), alg: 'ES256' } };
  };
  let newest = await make();
  let keys: readonly JWK[] = [newest.shown];
  const bearer = async (subject: string, customerId?: string): Promise<string> => {
    const { privateKey, shown } = newest;
    const token = await new SignJWT({ scope: SCOPE, ...(customerId && { customer_id: customerId }) })
      .setProtectedHeader({ alg: 'ES256', kid: shown.kid })
      .setSubject(subject)
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setExpirationTime('12h')
      .sign(privateKey);
    return `Bearer ${token}`;
  };
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    if (pathname === '/token') {
      const [subject, customerId] = [searchParams.get('subject'), searchParams.get('customerId')];
      response.end(await bearer(subject ?? '', customerId ?? undefined));
    } else {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys }));
    }
  });
  // Longer than the night: a phone's request is not to meet a connection that is just being closed.
  server.keepAliveTimeout = 3_600_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  const origin = `http://127.0.0.1:${address.port}`;
  return {
    jwksUrl: `${origin}/keys`,
    tokenUrl: `${origin}/token`,
    bearer,
    async addKey() {
      newest = await make();
      keys = [...keys, newest.shown];
    },
    dropOldKeys() {
      keys = [newest.shown];
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
