import { decodeJwt } from 'jose';
import { z } from 'zod';
import type { Variables } from '../../app/variables.ts';
import { UnauthenticatedError } from '../../auth/authenticator.ts';
import { readToken } from '../../auth/passthrough.ts';
import { clock } from '../../common/clock.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import { isUnsendable } from '../../upstream/call/exchange.ts';
import { isUuid } from '../../upstream/call/path.ts';
import type { Rest } from '../../upstream/call/rest.ts';
import { readCredentials } from '../../upstream/credentials.ts';
import { ownerOfInstruments } from '../../upstream/instruments.ts';
import { openUpstream, type UpstreamAccess } from '../upstream.ts';
import { aboutClient, type Finding, Findings, reasonOf } from './finding.ts';

const TIMEOUT_MS = 5_000;
const NEW_TOKEN =
  'Get a token with POST /v1/clients/{clientId}/auth/credential-tokens and x-api-key, and put it into PASARELA_TOKEN.';
/** With a clock that is wrong by more than this, in milliseconds, tokens are refused, or used after their end. */
const SKEW_MS = 30_000;

/** Checks that the REST service answers in its own form, and that both clocks show the same time. */
export async function lookAtUpstream(variables: Variables): Promise<readonly Finding[]> {
  const found = new Findings('upstream');
  const origin = variables.UPSTREAM_URL;
  if (origin === undefined) {
    found.ok('the embedded sandbox');
    return found.list;
  }
  const correct = 'Correct UPSTREAM_URL: scheme, host and port of the service, as in https://api.example.mx.';
  let response: Response;
  try {
    // Sent without a credential. The refusal shows that the service is there.
    response = await fetch(`${origin}/v1/banks`, {
      redirect: 'manual',
      signal: clock.timeoutSignal(TIMEOUT_MS),
    });
    await response.body?.cancel();
  } catch (error) {
    found.failure(
      `${origin} cannot be reached: ${reasonOf(error)}`,
      `${correct} A firewall may be in between.`,
    );
    return found.list;
  }
  if (response.status >= 500) {
    found.failure(
      `${origin} fails with status ${response.status}`,
      'Ask the provider; the gateway starts all the same.',
    );
  } else if (response.status === 404 || (response.status >= 300 && response.status < 400)) {
    found.failure(`${origin} answers, but knows no /v1/banks (status ${response.status})`, correct);
  } else {
    found.ok(`${origin} answers`);
  }
  return [...found.list, ...lookAtClock(response.headers.get('date'))];
}

function lookAtClock(date: string | null): readonly Finding[] {
  const found = new Findings('clock');
  const skew = date === null ? Number.NaN : clock.now() - Date.parse(date);
  if (Number.isNaN(skew)) {
    found.skipped('the service does not tell the time');
  } else if (Math.abs(skew) > SKEW_MS) {
    const seconds = Math.round(Math.abs(skew) / 1000);
    found.failure(
      `this machine's clock is ${seconds} s ${skew > 0 ? 'ahead of' : 'behind'} the service's`,
      'Set it by NTP (timedatectl set-ntp true): the ends of tokens and the retry of payments go by it.',
    );
  } else {
    found.ok("agrees with the service's to half a minute");
  }
  return found.list;
}

/** What is known before the credentials are tried. */
export interface Surroundings {
  /** True if the service has answered without them. */
  readonly isUp: boolean;
  /** True unless Redis, in which processes share their token of the service, is not right. */
  readonly canShare: boolean;
}

/**
 * Checks that the credentials are accepted, and that calls for their client are answered. Returns the open connection to the
 * service if they are, with the calls for that client. No token is had while it cannot be shared: a new one may end those that
 * running gateways hold. The connection comes without these calls then.
 *
 * @param named the client to act for; undefined if the gateway serves no other.
 */
export async function lookAtToken(
  variables: Variables,
  { isUp, canShare }: Surroundings,
  named?: string,
): Promise<{
  readonly access?: UpstreamAccess;
  readonly rest?: Rest;
  readonly findings: readonly Finding[];
}> {
  const found = new Findings('token', aboutClient(named));
  if (variables.UPSTREAM_URL === undefined) {
    found.skipped("the sandbox's own is printed at the start");
    return { findings: found.list };
  }
  const isService = variables.AUTH_MODE === 'service';
  if (!isService && !lookInside(variables, found)) return { findings: found.list };
  let access: UpstreamAccess | undefined;
  try {
    access = await openUpstream(variables);
    if (isService && !canShare) {
      found.skipped('not tried while Redis is not right: a new one may end those that running gateways hold');
      return { access, findings: found.list };
    }
    await ownerOfInstruments(access.rest);
    found.ok(`accepted for client ${access.rest.clientId}`);
    return { access, rest: access.rest, findings: found.list };
  } catch (error) {
    await access?.[Symbol.asyncDispose]();
    if (!(error instanceof UnauthenticatedError || error instanceof UpstreamError)) throw error;
    report(error, { isService, isUp, several: named !== undefined }, found);
    return { findings: found.list };
  }
}

/**
 * Tries the gateway's own API key and secret. The token that was accepted may be one that the processes share, and older than
 * what became of the two. The list of credentials shows both without a new token, which might end theirs.
 */
export async function lookAtOwn(
  { client, withKey }: NonNullable<UpstreamAccess['own']>,
  named?: string,
): Promise<readonly Finding[]> {
  const found = new Findings('credentials', aboutClient(named));
  const cure = `${correctOwn(named !== undefined)} A process that needs its next token gets none.`;
  try {
    const listed = await readCredentials(withKey);
    const isActive = listed.some(
      ({ client_secret: secret, status }) => status === 'ACTIVE' && secret === client.clientSecret.reveal(),
    );
    if (isActive) found.ok('the API key is accepted, and the client secret is ACTIVE');
    else
      found.warning('the API key is accepted, but the service lists no ACTIVE secret that is this one', cure);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    const { refusal, code, message } = error;
    if (isUnsendable(error)) found.failure(`the API key cannot be tried: ${message}`, cure);
    else if (refusal === undefined || code === 'UPSTREAM_RATE_LIMITED') {
      found.warning(`the API key cannot be tried: ${message}`, 'Run the doctor again, or ask the provider.');
    } else {
      found.failure(`the service does not accept the API key (status ${refusal.httpStatus})`, cure);
    }
  }
  return found.list;
}

const correctOwn = (several: boolean): string =>
  several
    ? 'Correct its apiKey, clientId and clientSecret in the file that UPSTREAM_CLIENTS names.'
    : 'Correct UPSTREAM_API_KEY, UPSTREAM_CLIENT_ID and UPSTREAM_CLIENT_SECRET.';

function report(
  error: UnauthenticatedError | UpstreamError,
  {
    isService,
    isUp,
    several,
  }: { readonly isService: boolean; readonly isUp: boolean; readonly several: boolean },
  found: Findings,
): void {
  // In service mode the service's own answer is the reason why no token was issued.
  const told = error.cause instanceof UpstreamError ? error.cause : error;
  const isRefused = told instanceof UnauthenticatedError || told.refusal !== undefined || isUnsendable(told);
  if (!isRefused && isUp) {
    const call = told === error ? 'GET /v1/clients/{clientId}/instruments' : 'the call for a token';
    found.failure(
      `the service answers, but not ${call}: ${told.message}`,
      'Ask the provider: nothing of the client can be read or paid until it does.',
    );
  } else if (!isRefused) {
    found.skipped(`cannot be tried: ${told.message}`, 'The check of the upstream says more.');
  } else if (isService) {
    found.failure(`the service issues no token: ${told.message}`, correctOwn(several));
  } else {
    found.failure(`PASARELA_TOKEN: ${told.message}`, NEW_TOKEN);
  }
}

/** Checks the claims of a passthrough token. Returns false if the service need not be asked any more. */
function lookInside(variables: Variables, found: Findings): boolean {
  const token = variables.PASARELA_TOKEN?.reveal();
  const claims = variables.UPSTREAM_TOKEN_CLIENT_CLAIM;
  if (token === undefined) {
    found.skipped(
      'PASARELA_TOKEN is not set: neither a token nor the webhooks are looked at',
      'Put an access token of the service into PASARELA_TOKEN.',
    );
    return false;
  }
  const { candidates, expiresAt } = readToken(token, claims);
  if (expiresAt !== undefined && expiresAt <= clock.now()) {
    found.failure(`PASARELA_TOKEN ended at ${new Date(expiresAt).toISOString()}`, NEW_TOKEN);
    return false;
  }
  if (candidates.length > 0) return true;
  const others = uuidClaims(token);
  found.failure(
    `no claim of ${claims.join(', ')} in PASARELA_TOKEN names a client`,
    others.length > 0
      ? `Set UPSTREAM_TOKEN_CLIENT_CLAIM to the claim that does; these hold a UUID: ${others.join(', ')}.`
      : 'It must be a JWT that the service issued: no claim of it holds a UUID.',
  );
  return false;
}

function uuidClaims(token: string): readonly string[] {
  try {
    const claims = Object.entries(decodeJwt(token));
    return claims.flatMap(([name, value]) => (typeof value === 'string' && isUuid(value) ? [name] : []));
  } catch {
    return [];
  }
}

/** Checks that the keys for verifying callers' tokens can be read. */
export async function lookAtIdentity({
  AUTH_MODE,
  AUTH_JWKS_URL: url,
}: Variables): Promise<readonly Finding[]> {
  const found = new Findings('identity');
  if (AUTH_MODE !== 'service' || url === undefined) return found.list;
  // Its path or query may hold a secret.
  const { host } = new URL(url);
  const cure =
    'Correct AUTH_JWKS_URL: it is the jwks_uri of the provider, as its /.well-known/openid-configuration says. No redirect is followed.';
  try {
    // As jose asks for the gateway, which takes no other status.
    const response = await fetch(url, { redirect: 'manual', signal: clock.timeoutSignal(TIMEOUT_MS) });
    const keys = KeySet.safeParse(await response.json().catch(() => undefined)).data?.keys;
    if (keys === undefined || response.status !== 200)
      found.failure(`what answers at ${host} shows no key set (status ${response.status})`, cure);
    else found.ok(`${host} shows ${keys.length} keys`);
  } catch (error) {
    found.failure(`AUTH_JWKS_URL at ${host} cannot be read: ${reasonOf(error)}. No caller is let in`, cure);
  }
  return found.list;
}

const KeySet = z.object({ keys: z.array(z.object({ kty: z.string() })).min(1) });
