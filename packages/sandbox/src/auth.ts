import type { MiddlewareHandler } from 'hono';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import { ambient } from './ambient.ts';
import { otherClient, unauthenticated } from './errors.ts';
import { type Env, routeTemplate } from './http.ts';
import type { Client, Credential, Token } from './state.ts';
import type { World } from './world.ts';

/** Routes of the bootstrap, which are called with `x-api-key` (docs/upstream-api.md, "Authentication"). */
const API_KEY_ROUTES: readonly string[] = [
  '/v1/clients/{clientId}/credentials',
  '/v1/clients/{clientId}/auth/credential-tokens',
];

/** Lets a request through to its route, for the client that its credentials belong to and no other. */
export function authenticate(world: World): MiddlewareHandler<Env> {
  return async (c, next) => {
    const template = routeTemplate(c);
    if (template === undefined) return next();
    const client = API_KEY_ROUTES.includes(template)
      ? clientOfApiKey(world, c.req.header('x-api-key'))
      : await clientOfToken(world, c.req.header('authorization'));
    if (client === undefined) throw unauthenticated();
    const named = c.req.path.match(/^\/v1\/clients\/([^/]+)/)?.[1];
    if (named !== undefined && named.toLowerCase() !== client.id) throw otherClient(world.choices);
    c.set('clientId', client.id);
    return next();
  };
}

/** Signs a JWT for the client, and forgets expired ones. Its life runs on real time. */
export async function issueToken(world: World, client: Client, credential: Credential): Promise<Token> {
  const { choices, state } = world;
  const now = ambient.now();
  for (const [text, token] of state.tokens) {
    const superseded = choices.newTokenEndsOlder && token.clientId === client.id;
    if (token.expiresAt <= now || superseded) state.tokens.delete(text);
  }
  const id = world.ids.uuid('token');
  // Whole seconds, as `exp` has: the answer and the token must not differ.
  const expiresAt = (Math.ceil(now / 1000) + choices.tokenTtlSeconds) * 1000;
  const { tokenClaims } = choices;
  const jwt = new SignJWT({ [tokenClaims.client]: client.id })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(tokenClaims.subject === 'client' ? client.id : credential.id)
    .setIssuedAt(Math.floor(now / 1000))
    .setJti(id);
  if (tokenClaims.expires) jwt.setExpirationTime(expiresAt / 1000);
  const token: Token = {
    id,
    clientId: client.id,
    credentialId: credential.id,
    token: await jwt.sign(world.tokenKey),
    createdAt: now,
    expiresAt,
  };
  state.tokens.set(token.token, token);
  return token;
}

/** The credential that new tokens are issued for. */
export function activeCredential(client: Client): Credential {
  const credential = client.credentials.find(({ status }) => status === 'ACTIVE');
  if (credential === undefined) throw new Error(`client ${client.id} has no active credential`);
  return credential;
}

function clientOfApiKey(world: World, apiKey: string | undefined): Client | undefined {
  return apiKey === undefined
    ? undefined
    : world.state.clients.values().find((client) => client.apiKey === apiKey);
}

/** Tokens issued since the start are kept; one of an earlier start with the same seed is known by its signature. */
async function clientOfToken(world: World, header: string | undefined): Promise<Client | undefined> {
  const { state, choices } = world;
  const jwt = header?.match(/^Bearer +(\S+)$/i)?.[1];
  if (jwt === undefined) return undefined;
  const token = state.tokens.get(jwt);
  if (token !== undefined)
    return token.expiresAt > ambient.now() ? state.clients.get(token.clientId) : undefined;
  // What is not kept has been ended by a newer one.
  if (choices.newTokenEndsOlder) return undefined;
  try {
    const { payload } = await jwtVerify(jwt, world.tokenKey, { algorithms: ['HS256'] });
    // One without `exp` ends as well, also once a newer token has had it forgotten.
    const { iat = 0, exp = iat + choices.tokenTtlSeconds } = payload;
    if (exp * 1000 <= ambient.now()) return undefined;
    return state.clients.get(String(payload[choices.tokenClaims.client]));
  } catch {
    return undefined;
  }
}
