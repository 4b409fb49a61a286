import { createHmac } from 'node:crypto';
import { CLIENT_ID } from '../upstream/data.ts';

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** When tokens end, in seconds since the epoch: long after every measurement. */
const EXPIRES_AT = Math.floor(Date.now() / 1_000) + 86_400;

/** Access tokens of as many different callers of one client. The stub accepts whatever it is shown. */
export const credentials = (count: number, clientId = CLIENT_ID): readonly string[] =>
  Array.from({ length: count }, (_, index) => {
    const claims = { client_id: clientId, jti: `caller-${index}`, exp: EXPIRES_AT };
    return `Bearer ${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}.${'x'.repeat(43)}`;
  });

/** What a gateway in service mode knows its callers by. */
export const SERVICE = {
  AUTH_MODE: 'service',
  AUTH_JWT_SECRET: 'what the identity provider of the bench signs with',
  AUTH_ISSUER: 'https://id.example.mx',
  AUTH_AUDIENCE: 'pasarela',
  UPSTREAM_API_KEY: 'key',
  UPSTREAM_CLIENT_ID: CLIENT_ID,
  UPSTREAM_CLIENT_SECRET: 'secret',
} as const;

/** The token of a caller in service mode who is narrowed to a customer. */
export const customerCredential = (customerId: string): string =>
  signed({ sub: customerId, customer_id: customerId, scope: 'events:read' });

/** The token of a caller in service mode who reads and pays for a client that `AUTH_CLIENT_CLAIM` names by `client_id`. */
export const clientCredential = (clientId: string, subject: string): string =>
  signed({ sub: subject, client_id: clientId, scope: 'graph:read money:move' });

/** RFC 7515, HS256. */
function signed(claims: object): string {
  const { AUTH_ISSUER: iss, AUTH_AUDIENCE: aud, AUTH_JWT_SECRET: secret } = SERVICE;
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ iss, aud, exp: EXPIRES_AT, ...claims })}`;
  return `Bearer ${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}
