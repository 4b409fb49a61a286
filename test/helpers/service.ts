import { SignJWT } from 'jose';
import type { ServerConfig } from '../../src/app/server-config.ts';
import { Secret } from '../../src/common/secret.ts';
import { ALL_SCOPES } from './all-scopes.ts';

export const ISSUER = 'https://id.example.mx';
export const AUDIENCE = 'pasarela';
export const JWT_SECRET = 'the identity provider of the tests signs with this';

/** The same for a gateway in a process of its own. */
export const serviceEnvironment = (client: {
  readonly clientId: string;
  readonly apiKey: string;
  readonly clientSecret: string;
}): Readonly<Record<string, string>> => ({
  AUTH_MODE: 'service',
  UPSTREAM_CLIENT_ID: client.clientId,
  UPSTREAM_CLIENT_SECRET: client.clientSecret,
  UPSTREAM_API_KEY: client.apiKey,
  AUTH_JWT_SECRET: JWT_SECRET,
  AUTH_ISSUER: ISSUER,
  AUTH_AUDIENCE: AUDIENCE,
});

/** What a gateway in service mode needs to know of the client that it stands for. */
export const serviceFor = (client: {
  readonly clientId: string;
  readonly apiKey: string;
  readonly clientSecret: string;
}): NonNullable<ServerConfig['service']> => ({
  clients: [
    {
      clientId: client.clientId,
      clientSecret: new Secret(client.clientSecret),
      apiKey: new Secret(client.apiKey),
    },
  ],
  clientClaim: undefined,
  keys: { secret: new Secret(JWT_SECRET) },
  issuer: ISSUER,
  audience: AUDIENCE,
  keyOwnerClaim: 'sub',
});

/** The claim that names the client, where a gateway serves several. */
const CLIENT_CLAIM = 'merchant';

/** What a gateway in service mode needs to know of several clients. */
export function serviceForAll(
  first: Parameters<typeof serviceFor>[0],
  ...rest: readonly Parameters<typeof serviceFor>[0][]
): NonNullable<ServerConfig['service']> {
  const service = serviceFor(first);
  const clients = [service.clients[0], ...rest.map((client) => serviceFor(client).clients[0])] as const;
  return { ...service, clients, clientClaim: CLIENT_CLAIM };
}

export interface CallerClaims {
  /** The client, by {@link CLIENT_CLAIM}. */
  readonly merchant?: unknown;
  /** Who the token is for; tokens that differ in this alone are different credentials of callers who may see the same. */
  readonly sub?: string;
  readonly scope?: unknown;
  readonly customer_id?: unknown;
  readonly scp?: unknown;
  readonly iss?: string;
  readonly aud?: string;
  /** Seconds since the epoch; null for none. */
  readonly exp?: number | null;
}

/** A token of the operator's identity provider: of all scopes and an hour, unless the claims say otherwise. */
export function callerToken(claims: CallerClaims = {}, secret = JWT_SECRET): Promise<string> {
  const { exp = Math.floor(Date.now() / 1000) + 3_600, ...rest } = claims;
  const scope = 'scp' in rest ? {} : { scope: ALL_SCOPES };
  return new SignJWT({
    sub: 'somebody',
    iss: ISSUER,
    aud: AUDIENCE,
    ...scope,
    ...rest,
    ...(exp === null ? {} : { exp }),
  })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(secret));
}
