import { SignJWT } from 'jose';
import type { ServerConfig } from '../../src/app/gateway.ts';
import { Secret } from '../../src/common/secret.ts';

export const ISSUER = 'https://id.example.mx';
export const AUDIENCE = 'pasarela';
export const JWT_SECRET = 'the identity provider of the tests signs with this';

const ALL_SCOPES = 'graph:read events:read money:move accounts:write webhooks:write';

/** What a gateway in service mode needs to know of the client that it stands for. */
export const serviceFor = (client: {
  readonly clientId: string;
  readonly apiKey: string;
  readonly clientSecret: string;
}): NonNullable<ServerConfig['service']> => ({
  clientId: client.clientId,
  clientSecret: new Secret(client.clientSecret),
  apiKey: new Secret(client.apiKey),
  keys: { secret: new Secret(JWT_SECRET) },
  issuer: ISSUER,
  audience: AUDIENCE,
});

export interface CallerClaims {
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
