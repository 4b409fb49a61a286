import type { z } from 'zod';
import type { ServiceClient } from '../auth/service.ts';
import { Secret } from '../common/secret.ts';
import { withTlsFiles } from '../redis/url.ts';
import { misspellingsIn } from './misspellings.ts';
import { problemsBetween } from './variable-problems.ts';
import { VARIABLE_NAMES, type Variables, variables, wants } from './variables.ts';

type Name = keyof Variables;

/** Variables whose value is never repeated in an error message, whatever it is. */
const SECRET: ReadonlySet<Name> = new Set([
  'WEBHOOK_SECRET',
  'REDIS_URL',
  'UPSTREAM_API_KEY',
  'UPSTREAM_CLIENT_SECRET',
  'AUTH_JWT_SECRET',
  'PASARELA_TOKEN',
  'PASARELA_TOKEN_COMMAND',
  'PASARELA_TOKEN_CLIENT_SECRET',
  'FORWARD_SECRET',
  // The other side may have put one into its path or query (docs/secrets.md).
  'MONEY_IN_DECISION_URL',
  'AUTH_JWKS_URL',
]);

/** The environment is wrong: the message names each wrong variable that can be told at once, what it got and what it wants. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Returns what is wrong with a variable's value. */
function problemOf(name: Name, value: string, { issues: [issue] }: z.ZodError): string {
  if (name === 'REDIS_URL' && issue?.code === 'custom') return `${issue.message}.`;
  // A user and a password may stand before an @.
  const isHidden = SECRET.has(name) || value.includes('@');
  return `${name}: got ${isHidden ? 'a value' : JSON.stringify(value)}, wants ${wants(name)}.`;
}

/**
 * Reads the configuration.
 *
 * @param environment such as `process.env`; variables that are not Pasarela's are ignored.
 * @throws ConfigError
 */
export function readVariables(environment: Readonly<Record<string, string | undefined>>): Variables {
  const values: Partial<Record<Name, string>> = {};
  const found: Partial<Record<Name, unknown>> = {};
  const problems = new Map<Name, string>();
  for (const name of VARIABLE_NAMES) {
    const value = environment[name];
    const { type, byDefault } = variables[name];
    if (value === undefined || value === '') {
      found[name] = byDefault;
      continue;
    }
    values[name] = value;
    const { data, error } = type().safeParse(value);
    found[name] = data;
    if (error !== undefined) problems.set(name, problemOf(name, value, error));
  }
  // Each of them is of its own type, or the default of that.
  const read = problems.size > 0 ? undefined : (found as Variables);
  for (const [name, problem] of problemsBetween(values, read)) problems.set(name, problem);
  if (read === undefined || problems.size > 0) {
    const hints = misspellingsIn(environment);
    const list = [...problems.values(), ...hints].map((line) => `  ${line}`).join('\n');
    throw new ConfigError(`The configuration is wrong:\n${list}`);
  }
  const { REDIS_URL: url, REDIS_TLS_CA: ca, REDIS_TLS_CERT: cert, REDIS_TLS_KEY: key } = read;
  return { ...read, REDIS_URL: url && new Secret(withTlsFiles(url.reveal(), { ca, cert, key })) };
}

/** The variables of service mode: the gateway's credentials, and how it verifies callers. */
export interface ServiceVariables {
  readonly clients: readonly [ServiceClient, ...ServiceClient[]];
  readonly clientClaim: string | undefined;
  readonly keys:
    | { readonly jwksUrl: string; readonly cooldownMs: number; readonly maxAgeMs: number }
    | { readonly secret: Secret };
  readonly issuer: string;
  readonly audience: string;
  readonly keyOwnerClaim: string;
}

/**
 * Returns the settings of service mode; undefined in another mode. {@link readVariables} has checked that all of them are
 * there.
 */
export function serviceOf(read: Variables): ServiceVariables | undefined {
  if (read.AUTH_MODE !== 'service') return undefined;
  const { UPSTREAM_CLIENT_ID: clientId, UPSTREAM_CLIENT_SECRET: clientSecret } = read;
  const { UPSTREAM_API_KEY: apiKey, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = read;
  const { UPSTREAM_CLIENTS: several, AUTH_CLIENT_CLAIM: claim } = read;
  const one = clientId && clientSecret && apiKey && ([{ clientId, clientSecret, apiKey }] as const);
  const clients = several ?? one;
  const { AUTH_JWKS_URL: jwksUrl, AUTH_JWT_SECRET: secret } = read;
  const { AUTH_JWKS_COOLDOWN_MS: cooldownMs, AUTH_JWKS_MAX_AGE: maxAge } = read;
  const keys =
    jwksUrl === undefined ? secret && { secret } : { jwksUrl, cooldownMs, maxAgeMs: maxAge * 1_000 };
  if (!clients || !issuer || !audience || !keys) {
    throw new ConfigError('AUTH_MODE is service, and what it needs is not set.');
  }
  const { AUTH_KEY_OWNER_CLAIM: keyOwnerClaim } = read;
  const clientClaim = several && claim;
  return { clients, clientClaim, keys, issuer, audience, keyOwnerClaim };
}

/** Returns the environment that this process was started with. */
export const environmentOfProcess = (): Readonly<Record<string, string | undefined>> => process.env;

/** Reads the configuration of this process. */
export const readEnvironment = (): Variables => readVariables(environmentOfProcess());
