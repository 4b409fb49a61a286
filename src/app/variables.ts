import { z } from 'zod';
import { Secret } from '../common/secret.ts';
import {
  bankFieldNames,
  baseUrl,
  clientsFile,
  flag,
  HOST_NAMES,
  host,
  httpUrl,
  integer,
  layers,
  list,
  network,
  origin,
  pemFile,
  redisUrl,
  secret,
  text,
} from './variable-types.ts';

/**
 * Every variable that Pasarela reads. This is the only table of them. An empty variable counts as unset. The description of
 * each is its meaning; docs/configuration.md explains it to people.
 */
export const variables = z.object({
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
    .transform((pairs) => bankFieldNames(pairs.map((pair) => pair.split('=', 2))))
    .describe('such as name=nombre,institutionCode=clave,clabeCode=prefijo')
    .optional(),
  AUTH_MODE: z.enum(['passthrough', 'service']).describe('passthrough or service').default('passthrough'),
  UPSTREAM_API_KEY: secret("the client's API key").optional(),
  UPSTREAM_CLIENT_ID: z.uuid().describe('the UUID of the client').optional(),
  UPSTREAM_CLIENT_SECRET: secret("the client's secret").optional(),
  UPSTREAM_CLIENTS: clientsFile.optional(),
  AUTH_CLIENT_CLAIM: text('the claim of callers’ tokens that names the client they act for').optional(),
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
  PAYMENTS: z.enum(['on', 'off']).describe('on or off').default('on'),
  // In Redis the journal's first line of a payment describes its record, so lines are kept longer than the 30 days of
  // records.
  JOURNAL_RETENTION: integer(31, 3_650).default(400),
  RECONCILE_EVERY: integer(60, 86_400).optional(),
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
  LAYERS_OFF: layers.default([]),
  REUSE_PORT: flag.default(false),
  KEEP_ALIVE_TIMEOUT_MS: integer(1_000, 3_600_000).default(75_000),
  SOCKET_LIFETIME: integer(0, 2_592_000).default(3_600),
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

/** The names of all variables. */
export const VARIABLE_NAMES: readonly string[] = Object.keys(variables.shape);

/** Returns what a variable wants, in words for people. */
export function wants(name: string): string {
  for (let type = Reflect.get(variables.shape, name); type instanceof z.ZodType; ) {
    if (type.description !== undefined) return type.description;
    if (!(type instanceof z.ZodOptional || type instanceof z.ZodDefault)) break;
    // zod types an inner type as a class of its core, but every type here is made by `z`.
    type = type.unwrap() as z.ZodType;
  }
  return 'another value';
}
