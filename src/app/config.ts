import { accessSync, constants } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';
import { Secret } from '../common/secret.ts';
import { parseRedisUrl, withTlsFiles } from '../redis/url.ts';
import { BANK_FIELD_NAMES, type BankField, type BankFieldNames } from '../upstream/banks.ts';

/**
 * Every variable that Pasarela reads, and the only place that reads them. An empty variable counts as unset. What a
 * variable means is its description here; docs/configuration.md explains it to people.
 */
const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max)
    .describe(`a whole number from ${min} to ${max}`);

const flag = z
  .enum(['true', 'false'])
  .transform((value) => value === 'true')
  .describe('true or false');

const httpUrl = z
  .string()
  .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), { abort: true })
  .describe('an http or https address');

/** Paths are written behind it. */
const baseUrl = httpUrl
  .transform((value) => value.replace(/(?<!\/)\/+$/, ''))
  .describe('an http or https address');

const origin = httpUrl
  .refine(
    (value) => {
      const url = new URL(value);
      return url.pathname === '/' && url.search === '' && url.username === '';
    },
    { abort: true },
  )
  .transform((value) => new URL(value).origin)
  .describe('an http or https origin with no path, such as https://api.example.mx');

const network = z.string().refine(isNetwork);

/** An IP address, or one with the length of a prefix. */
function isNetwork(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/');
  const longest = isIP(address) === 6 ? 128 : 32;
  const isLength = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= longest);
  return isIP(address) !== 0 && isLength && rest.length === 0;
}

const list = (item: z.ZodType<string, string>) =>
  z
    .string()
    .transform((value) => value.split(',').map((part) => part.trim()))
    .pipe(z.array(item).min(1));

const text = (description: string) => z.string().describe(description);

const secret = (description: string) =>
  z
    .string()
    .transform((value) => new Secret(value))
    .describe(description);

const pemFile = z.string().refine(isReadable).describe('the path of a PEM file that this process may read');

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Checked in full, as what is wrong in it hides behind what is secret. */
const redisUrl = z.string().transform((value, context) => {
  try {
    parseRedisUrl(value);
  } catch (error) {
    context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
  }
  return new Secret(value);
});

const HOST_NAMES = 'host names without ports, comma-separated';
/** As a URL writes it, and so as requests carry it. */
const host = z
  .string()
  .transform((value) => value.toLowerCase())
  .refine((value) => URL.canParse(`http://${value}`) && new URL(`http://${value}`).host === value);

/** The names that were given stand in the place of the known ones. */
function bankFieldNames(given: readonly (readonly string[])[]): BankFieldNames {
  const namesOf = (field: BankField): readonly string[] => {
    const names = given.flatMap(([of, name]) => (of === field && name !== undefined ? [name] : []));
    return names.length > 0 ? names : BANK_FIELD_NAMES[field];
  };
  return {
    name: namesOf('name'),
    institutionCode: namesOf('institutionCode'),
    clabeCode: namesOf('clabeCode'),
  };
}

const variables = z.object({
  PORT: integer(0, 65_535).default(4000),
  HOST: z.string().default('127.0.0.1').describe('an address of this machine'),
  UPSTREAM_URL: origin.optional(),
  UPSTREAM_TIMEOUT_MS: integer(1, 600_000).default(10_000),
  OPERATION_TIMEOUT_MS: integer(1, 600_000).default(30_000),
  UPSTREAM_ANSWER_BYTES: integer(65_536, 1_073_741_824).default(67_108_864),
  UPSTREAM_CALLS_PER_CALLER: integer(1, 128).default(16),
  OPERATIONS_QUEUE: integer(0, 100_000).default(500),
  LISTS_MAX_AGE: integer(0, 3_600).default(5),
  UPSTREAM_POLLS_PER_SECOND: integer(1, 10_000).default(20),
  UPSTREAM_UTC_OFFSET: z
    .string()
    .regex(/^([+-](0\d|1[0-4]):[0-5]\d|Z)$/)
    .describe('an offset such as -06:00, or Z')
    .default('-06:00'),
  UPSTREAM_TOKEN_CLIENT_CLAIM: list(z.string().min(1))
    .describe('names of JWT claims, comma-separated')
    .default(['client_id', 'clientId', 'cid', 'sub']),
  UPSTREAM_BANK_FIELDS: list(z.string().regex(/^(name|institutionCode|clabeCode)=[^=\s]+$/))
    .transform((given) => bankFieldNames(given.map((pair) => pair.split('=', 2))))
    .describe('such as name=nombre,institutionCode=clave,clabeCode=prefijo')
    .optional(),
  AUTH_MODE: z.enum(['passthrough', 'service']).describe('passthrough or service').default('passthrough'),
  UPSTREAM_API_KEY: secret("the client's API key").optional(),
  UPSTREAM_CLIENT_ID: z.uuid().describe('the UUID of the client').optional(),
  UPSTREAM_CLIENT_SECRET: secret("the client's secret").optional(),
  AUTH_JWKS_URL: httpUrl.optional(),
  AUTH_JWKS_MAX_AGE: integer(1, 86_400).default(60),
  AUTH_JWKS_COOLDOWN_MS: integer(1, 600_000).default(2_000),
  AUTH_JWT_SECRET: secret('the secret that callers’ tokens are signed with').optional(),
  AUTH_ISSUER: text('the `iss` of callers’ tokens').optional(),
  AUTH_AUDIENCE: text('the `aud` of callers’ tokens').optional(),
  AUTH_KEY_OWNER_CLAIM: text('the claim of callers’ tokens that names the owner of idempotency keys').default(
    'sub',
  ),
  LIMIT_TOKENS: integer(1, 100_000).default(2_000),
  LIMIT_DEPTH: integer(1, 1_000).default(15),
  LIMIT_ALIASES: integer(0, 100_000).default(30),
  LIMIT_DIRECTIVES: integer(0, 100_000).default(50),
  LIMIT_COST: integer(1, 100_000_000).default(10_000),
  LIMIT_STREAMS: integer(1, 10_000_000).default(20_000),
  LIMIT_STREAMS_PER_ADDRESS: integer(1, 10_000_000).default(1_000),
  LIMIT_STREAMS_PER_CLIENT: integer(1, 10_000_000).default(10_000),
  LIMIT_STREAMS_PER_CALLER: integer(1, 10_000_000).optional(),
  TRUSTED_PROXIES: list(network)
    .describe('addresses or networks such as 10.0.0.0/8, comma-separated')
    .default(['127.0.0.0/8', '::1']),
  TRUSTED_DOCUMENTS: list(z.string().min(1))
    .describe('JSON files of id → document, comma-separated')
    .optional(),
  REDIS_URL: redisUrl.describe('redis://…, rediss://…, redis+sentinel://… or redis+cluster://…').optional(),
  REDIS_TLS_CA: pemFile.optional(),
  REDIS_TLS_CERT: pemFile.optional(),
  REDIS_TLS_KEY: pemFile.optional(),
  DATA_DIR: z.string().describe('a folder').optional(),
  EVENTS_RETENTION: integer(1, 100_000_000).default(100_000),
  EVENTS_RETENTION_BYTES: integer(1, Number.MAX_SAFE_INTEGER).optional(),
  PUBLIC_URL: baseUrl.optional(),
  WEBHOOK_SECRET: list(z.string().min(1))
    .pipe(z.tuple([z.string()]).or(z.tuple([z.string(), z.string()])))
    .transform(([first, ...rest]): readonly [Secret, ...Secret[]] => [
      new Secret(first),
      ...rest.map((value) => new Secret(value)),
    ])
    .describe('a secret, or two, comma-separated, while rotating (the first one signs)')
    .optional(),
  WEBHOOK_TOKEN_HEADER: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/)
    .transform((value) => value.toLowerCase())
    .describe('the name of an HTTP header')
    .optional(),
  MONEY_IN_DECISION_URL: httpUrl.optional(),
  CORS_ORIGINS: list(origin).describe('origins such as https://app.example.mx, comma-separated').optional(),
  GRAPHIQL: flag.optional(),
  INTROSPECTION: flag.optional(),
  UPSTREAM_REPORT: flag.optional(),
  REUSE_PORT: flag.default(false),
  KEEP_ALIVE_TIMEOUT_MS: integer(1_000, 3_600_000).default(75_000),
  SHUTDOWN_DELAY_MS: integer(0, 600_000).default(0),
  SHUTDOWN_GRACE_MS: integer(1_000, 3_600_000).default(40_000),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .describe('fatal, error, warn, info, debug, trace or silent')
    .default('info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: baseUrl.optional(),
  PASARELA_TOKEN: secret('an access token for the commands to act with').optional(),
  PASARELA_TOKEN_FILE: z.string().describe('a file that holds an access token').optional(),
  PASARELA_TOKEN_COMMAND: secret('a command of the shell that prints an access token').optional(),
  PASARELA_TOKEN_URL: httpUrl.optional(),
  PASARELA_TOKEN_CLIENT_ID: text('the id that tokens are issued for').optional(),
  PASARELA_TOKEN_CLIENT_SECRET: secret('the secret that tokens are issued for').optional(),
  PASARELA_TOKEN_SCOPE: text('the scopes that tokens are issued with').optional(),
  FORWARD_SECRET: secret('the secret that forwarded events are signed with').optional(),
  SANDBOX_PORT: integer(0, 65_535).default(4010),
  SANDBOX_SPEED: z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .transform(Number)
    .refine((value) => value <= 100_000)
    .describe('how many times faster than real time, from 0 (stands still) to 100000')
    .default(5),
  SANDBOX_SEED: integer(0, Number.MAX_SAFE_INTEGER).default(1),
  SANDBOX_HOSTS: list(host).describe(HOST_NAMES).default([]),
  SANDBOX_WEBHOOK_HOSTS: list(host).describe(HOST_NAMES).default([]),
  SANDBOX_CUSTOMERS: integer(0, 10_000_000).default(0),
});

export type Variables = z.output<typeof variables>;

/** The names of all of them. */
export const VARIABLE_NAMES: readonly string[] = Object.keys(variables.shape);

/** Names whose value is never repeated in an error message. */
const SECRET = new Set<string>([
  'WEBHOOK_SECRET',
  'REDIS_URL',
  'UPSTREAM_API_KEY',
  'UPSTREAM_CLIENT_SECRET',
  'AUTH_JWT_SECRET',
  'PASARELA_TOKEN',
  'PASARELA_TOKEN_COMMAND',
  'PASARELA_TOKEN_CLIENT_SECRET',
  'FORWARD_SECRET',
]);

/** What `AUTH_MODE=service` cannot do without. */
const SERVICE = [
  'UPSTREAM_API_KEY',
  'UPSTREAM_CLIENT_ID',
  'UPSTREAM_CLIENT_SECRET',
  'AUTH_ISSUER',
  'AUTH_AUDIENCE',
] as const;

/** The environment is wrong: the message names every wrong variable, what it got and what it wants. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the configuration.
 *
 * @param environment such as `process.env`; variables that are not Pasarela's are ignored.
 * @throws ConfigError
 */
export function readVariables(environment: Readonly<Record<string, string | undefined>>): Variables {
  const given = Object.fromEntries(
    Object.keys(variables.shape)
      .map((name) => [name, environment[name]] as const)
      .filter(([, value]) => value !== undefined && value !== ''),
  );
  const read = variables.safeParse(given);
  const problems = new Map<string, string>();
  for (const issue of read.error?.issues ?? []) {
    const name = String(issue.path[0]);
    const got = SECRET.has(name) ? 'a value' : JSON.stringify(given[name]);
    const own = name === 'REDIS_URL' && issue.code === 'custom';
    problems.set(name, own ? `${issue.message}.` : `${name}: got ${got}, wants ${wants(name)}.`);
  }
  for (const [name, problem] of problemsBetween(given, read.data)) problems.set(name, problem);
  if (!read.success || problems.size > 0) {
    const list = [...problems.values()].map((problem) => `  ${problem}`).join('\n');
    throw new ConfigError(`The configuration is wrong:\n${list}`);
  }
  const { REDIS_URL: url, REDIS_TLS_CA: ca, REDIS_TLS_CERT: cert, REDIS_TLS_KEY: key } = read.data;
  return { ...read.data, REDIS_URL: url && new Secret(withTlsFiles(url.reveal(), { ca, cert, key })) };
}

/** What is wrong with variables that could each be read, by the name of the one that is missing. */
function problemsBetween(
  given: Readonly<Record<string, string | undefined>>,
  read: Variables | undefined,
): ReadonlyMap<string, string> {
  const problems = new Map<string, string>();
  if (given['UPSTREAM_URL'] !== undefined && given['WEBHOOK_SECRET'] === undefined) {
    problems.set(
      'WEBHOOK_SECRET',
      `WEBHOOK_SECRET: is not set, and UPSTREAM_URL is; wants ${wants('WEBHOOK_SECRET')}, the same in every process.`,
    );
  }
  const ports = [read?.PORT, read?.SANDBOX_PORT];
  if (
    given['UPSTREAM_URL'] === undefined &&
    ports[0] !== 0 &&
    ports[0] !== undefined &&
    ports[0] === ports[1]
  ) {
    problems.set(
      'SANDBOX_PORT',
      `PORT, SANDBOX_PORT: both are ${ports[0]}; wants two ports, as the embedded sandbox listens beside the gateway.`,
    );
  }
  if (given['REUSE_PORT'] === 'true' && given['REDIS_URL'] === undefined) {
    problems.set(
      'REDIS_URL',
      `REDIS_URL: is not set, and REUSE_PORT is true; wants ${wants('REDIS_URL')}, as processes on one port share their events.`,
    );
  }
  if (given['AUTH_MODE'] === 'service') {
    for (const name of SERVICE.filter((name) => given[name] === undefined)) {
      problems.set(name, `${name}: is not set, and AUTH_MODE is service; wants ${wants(name)}.`);
    }
    if ((given['AUTH_JWKS_URL'] === undefined) === (given['AUTH_JWT_SECRET'] === undefined)) {
      const both = given['AUTH_JWKS_URL'] !== undefined;
      problems.set(
        'AUTH_JWKS_URL',
        `AUTH_JWKS_URL, AUTH_JWT_SECRET: ${both ? 'both are set' : 'neither is set, and AUTH_MODE is service'}; wants one: ${wants('AUTH_JWKS_URL')}, or ${wants('AUTH_JWT_SECRET')}.`,
      );
    }
  }
  if ((given['REDIS_TLS_CERT'] === undefined) !== (given['REDIS_TLS_KEY'] === undefined)) {
    problems.set(
      'REDIS_TLS_KEY',
      'REDIS_TLS_CERT, REDIS_TLS_KEY: one is set without the other; wants a certificate and its key, or neither.',
    );
  }
  const files = ['REDIS_TLS_CA', 'REDIS_TLS_CERT', 'REDIS_TLS_KEY'].filter(
    (name) => given[name] !== undefined,
  );
  if (files.length > 0 && !given['REDIS_URL']?.startsWith('rediss')) {
    problems.set(
      'REDIS_TLS_CA',
      `${files.join(', ')}: set, and REDIS_URL uses no TLS; wants a REDIS_URL of the form rediss….`,
    );
  }
  return problems;
}

/** How a gateway in service mode is known to the upstream, and how it knows its callers. */
export interface ServiceVariables {
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly apiKey: Secret;
  readonly keys:
    | { readonly jwksUrl: string; readonly cooldownMs: number; readonly maxAgeMs: number }
    | { readonly secret: Secret };
  readonly issuer: string;
  readonly audience: string;
  readonly keyOwnerClaim: string;
}

/** What service mode needs, once {@link readVariables} has seen to it that it is all there; undefined in another mode. */
export function serviceOf(read: Variables): ServiceVariables | undefined {
  if (read.AUTH_MODE !== 'service') return undefined;
  const { UPSTREAM_CLIENT_ID: clientId, UPSTREAM_CLIENT_SECRET: clientSecret } = read;
  const { UPSTREAM_API_KEY: apiKey, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = read;
  const { AUTH_JWKS_URL: jwksUrl, AUTH_JWT_SECRET: secret } = read;
  const { AUTH_JWKS_COOLDOWN_MS: cooldownMs, AUTH_JWKS_MAX_AGE: maxAge } = read;
  const keys =
    jwksUrl === undefined ? secret && { secret } : { jwksUrl, cooldownMs, maxAgeMs: maxAge * 1_000 };
  if (!clientId || !clientSecret || !apiKey || !issuer || !audience || !keys) {
    throw new ConfigError('AUTH_MODE is service, and what it needs is not set.');
  }
  const { AUTH_KEY_OWNER_CLAIM: keyOwnerClaim } = read;
  return { clientId, clientSecret, apiKey, keys, issuer, audience, keyOwnerClaim };
}

function wants(name: string): string {
  for (let type = Reflect.get(variables.shape, name); type instanceof z.ZodType; ) {
    if (type.description !== undefined) return type.description;
    if (!(type instanceof z.ZodOptional || type instanceof z.ZodDefault)) break;
    // The public type of an inner type is the core's own class; every type here is made by `z`.
    type = type.unwrap() as z.ZodType;
  }
  return 'another value';
}

/** What this process was started with. */
export const environmentOfProcess = (): Readonly<Record<string, string | undefined>> => process.env;

/** The configuration of this process. */
export const readEnvironment = (): Variables => readVariables(environmentOfProcess());
