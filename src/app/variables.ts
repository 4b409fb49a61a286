import { z } from 'zod';
import { Secret } from '../common/secret.ts';
import { RETENTION_DAYS } from '../money/record.ts';
import {
  bankFieldNames,
  baseUrl,
  certificateFile,
  clientsFile,
  flag,
  HOST_NAMES,
  host,
  httpUrl,
  integer,
  keyFile,
  layers,
  list,
  network,
  origin,
  redisUrl,
  secret,
  text,
} from './variable-types.ts';

/** A variable: the type of its text, and the value that it has where it is not set. */
interface Variable<Value> {
  /** Makes the type. Most variables are not set, and to make the types of all takes a tenth of a start. */
  readonly type: () => z.ZodType<NonNullable<Value>, string>;
  readonly byDefault: Value;
}

function variable<Value extends {}>(type: () => z.ZodType<Value, string>): Variable<Value | undefined>;
function variable<Value extends {}>(
  type: () => z.ZodType<Value, string>,
  byDefault: NoInfer<Value>,
): Variable<Value>;
function variable<Value extends {}>(type: () => z.ZodType<Value, string>, byDefault?: Value) {
  return { type, byDefault };
}

/**
 * Every variable that Pasarela reads. This is the only table of them. An empty variable counts as unset. The description of
 * each is its meaning; docs/configuration.md explains it to people.
 */
export const variables = {
  PORT: variable(() => integer(0, 65_535), 4000),
  HOST: variable(
    () =>
      z
        .string()
        .refine((value) => !value.startsWith('['))
        .describe('an address of this machine, without brackets'),
    '127.0.0.1',
  ),
  UPSTREAM_URL: variable(origin),
  UPSTREAM_TIMEOUT_MS: variable(() => integer(1, 600_000), 10_000),
  OPERATION_TIMEOUT_MS: variable(() => integer(1, 600_000), 30_000),
  UPSTREAM_ANSWER_BYTES: variable(() => integer(65_536, 1_073_741_824), 67_108_864),
  UPSTREAM_CALLS_PER_CALLER: variable(() => integer(1, 128), 16),
  OPERATIONS_QUEUE: variable(() => integer(0, 100_000), 500),
  LISTS_MAX_AGE: variable(() => integer(0, 3_600), 5),
  UPSTREAM_POLLS_PER_SECOND: variable(() => integer(1, 10_000), 20),
  UPSTREAM_UTC_OFFSET: variable(
    () =>
      z
        .string()
        .regex(/^([+-](0\d|1[0-4]):[0-5]\d|Z)$/)
        .describe('an offset such as -06:00, or Z'),
    '-06:00',
  ),
  UPSTREAM_TOKEN_CLIENT_CLAIM: variable(
    () => list(z.string().min(1)).describe('names of JWT claims, comma-separated'),
    ['client_id', 'clientId', 'cid', 'sub'],
  ),
  UPSTREAM_BANK_FIELDS: variable(() =>
    list(z.string().regex(/^(name|institutionCode|clabeCode)=[^=\s]+$/))
      .transform((pairs) => bankFieldNames(pairs.map((pair) => pair.split('=', 2))))
      .describe('such as name=nombre,institutionCode=clave,clabeCode=prefijo'),
  ),
  AUTH_MODE: variable(
    () => z.enum(['passthrough', 'service']).describe('passthrough or service'),
    'passthrough',
  ),
  UPSTREAM_API_KEY: variable(() => secret("the client's API key")),
  // As `isUuid` reads them: `z.uuid` refuses versions and variants that RFC 9562 does not name.
  UPSTREAM_CLIENT_ID: variable(() => z.guid().describe('the UUID of the client')),
  UPSTREAM_CLIENT_SECRET: variable(() => secret("the client's secret")),
  UPSTREAM_CLIENTS: variable(clientsFile),
  AUTH_CLIENT_CLAIM: variable(() => text('the claim of callers’ tokens that names the client they act for')),
  AUTH_JWKS_URL: variable(httpUrl),
  AUTH_JWKS_MAX_AGE: variable(() => integer(1, 86_400), 60),
  AUTH_JWKS_COOLDOWN_MS: variable(() => integer(1, 600_000), 2_000),
  AUTH_JWT_SECRET: variable(() => secret('the secret that callers’ tokens are signed with')),
  AUTH_ISSUER: variable(() => text('the `iss` of callers’ tokens')),
  AUTH_AUDIENCE: variable(() => text('the `aud` of callers’ tokens')),
  AUTH_KEY_OWNER_CLAIM: variable(
    () => text('the claim of callers’ tokens that names the owner of idempotency keys'),
    'sub',
  ),
  LIMIT_TOKENS: variable(() => integer(1, 100_000), 2_000),
  LIMIT_DEPTH: variable(() => integer(1, 1_000), 15),
  LIMIT_ALIASES: variable(() => integer(0, 100_000), 30),
  LIMIT_DIRECTIVES: variable(() => integer(0, 100_000), 50),
  LIMIT_COST: variable(() => integer(1, 100_000_000), 10_000),
  LIMIT_STREAMS: variable(() => integer(1, 10_000_000), 20_000),
  LIMIT_STREAMS_PER_ADDRESS: variable(() => integer(1, 10_000_000), 1_000),
  LIMIT_STREAMS_PER_CLIENT: variable(() => integer(1, 10_000_000), 10_000),
  LIMIT_STREAMS_PER_CALLER: variable(() => integer(1, 10_000_000)),
  TRUSTED_PROXIES: variable(
    () => list(network()).describe('addresses or networks such as 10.0.0.0/8, comma-separated'),
    ['127.0.0.0/8', '::1'],
  ),
  TRUSTED_DOCUMENTS: variable(() =>
    list(z.string().min(1)).describe('JSON files of id → document, comma-separated'),
  ),
  REDIS_URL: variable(() =>
    redisUrl().describe('redis://…, rediss://…, redis+sentinel://… or redis+cluster://…'),
  ),
  NEEDS_REDIS: variable(flag, false),
  REDIS_TLS_CA: variable(certificateFile),
  REDIS_TLS_CERT: variable(certificateFile),
  REDIS_TLS_KEY: variable(keyFile),
  DATA_DIR: variable(() => z.string().describe('a folder')),
  EVENTS_RETENTION: variable(() => integer(1, 100_000_000), 100_000),
  EVENTS_RETENTION_BYTES: variable(() => integer(1, Number.MAX_SAFE_INTEGER)),
  PAYMENTS: variable(() => z.enum(['on', 'off']).describe('on or off'), 'on'),
  // A day longer than a record after its sending. In Redis a record needs its first line for as long as it is kept, so LEAST_JOURNAL_MS
  // (open-money.ts) keeps lines longer there, whatever is set here.
  JOURNAL_RETENTION: variable(() => integer(RETENTION_DAYS + 1, 3_650), 400),
  RECONCILE_EVERY: variable(() => integer(60, 86_400)),
  PUBLIC_URL: variable(() =>
    baseUrl()
      .refine((value) => !/[?#]/.test(value))
      .describe('an http or https address without query and fragment'),
  ),
  WEBHOOK_SECRET: variable(() =>
    list(z.string().min(1))
      .pipe(z.tuple([z.string()]).or(z.tuple([z.string(), z.string()])))
      .transform(([first, ...rest]): readonly [Secret, ...Secret[]] => [
        new Secret(first),
        ...rest.map((value) => new Secret(value)),
      ])
      .describe('a secret, or two, comma-separated, while rotating (the first one signs)'),
  ),
  WEBHOOK_TOKEN_HEADER: variable(() =>
    z
      .string()
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/)
      .transform((value) => value.toLowerCase())
      .describe('the name of an HTTP header'),
  ),
  MONEY_IN_DECISION_URL: variable(httpUrl),
  CORS_ORIGINS: variable(() =>
    list(origin()).describe('origins such as https://app.example.mx, comma-separated'),
  ),
  GRAPHIQL: variable(flag),
  INTROSPECTION: variable(flag),
  UPSTREAM_REPORT: variable(flag),
  LAYERS_OFF: variable(layers, []),
  REUSE_PORT: variable(flag, false),
  KEEP_ALIVE_TIMEOUT_MS: variable(() => integer(1_000, 3_600_000), 75_000),
  SOCKET_LIFETIME: variable(() => integer(0, 2_592_000), 3_600),
  SHUTDOWN_DELAY_MS: variable(() => integer(0, 600_000), 0),
  SHUTDOWN_GRACE_MS: variable(() => integer(1_000, 3_600_000), 40_000),
  LOG_LEVEL: variable(
    () =>
      z
        .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
        .describe('fatal, error, warn, info, debug, trace or silent'),
    'info',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: variable(baseUrl),
  PASARELA_TOKEN: variable(() => secret('an access token for the commands to act with')),
  PASARELA_TOKEN_FILE: variable(() => z.string().describe('a file that holds an access token')),
  PASARELA_TOKEN_COMMAND: variable(() => secret('a command of the shell that prints an access token')),
  PASARELA_TOKEN_URL: variable(httpUrl),
  PASARELA_TOKEN_CLIENT_ID: variable(() => text('the id that tokens are issued for')),
  PASARELA_TOKEN_CLIENT_SECRET: variable(() => secret('the secret that tokens are issued for')),
  PASARELA_TOKEN_SCOPE: variable(() => text('the scopes that tokens are issued with')),
  FORWARD_SECRET: variable(() => secret('the secret that forwarded events are signed with')),
  SANDBOX_PORT: variable(() => integer(0, 65_535), 4010),
  SANDBOX_SPEED: variable(
    () =>
      z
        .string()
        .regex(/^\d+(\.\d+)?$/)
        .transform(Number)
        .refine((value) => value <= 100_000)
        .describe('how many times faster than real time, from 0 (stands still) to 100000'),
    5,
  ),
  SANDBOX_SEED: variable(() => integer(0, Number.MAX_SAFE_INTEGER), 1),
  SANDBOX_HOSTS: variable(() => list(host()).describe(HOST_NAMES), []),
  SANDBOX_WEBHOOK_HOSTS: variable(() => list(host()).describe(HOST_NAMES), []),
  SANDBOX_CUSTOMERS: variable(() => integer(0, 10_000_000), 0),
};

/** The values of all variables. */
export type Variables = {
  readonly [Name in keyof typeof variables]: (typeof variables)[Name]['byDefault'];
};

/** The names of all variables. */
export const VARIABLE_NAMES = Object.keys(variables) as readonly (keyof Variables)[];

/** Returns what a variable wants, in words for people. */
export const wants = (name: keyof Variables): string => variables[name].type().description ?? 'another value';
