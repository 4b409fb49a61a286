import { z } from 'zod';

/**
 * Every variable that Pasarela reads, and the only place that reads them. An empty variable counts as unset. What a
 * variable means is its description here; README and docs repeat it for people.
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

const list = (item: z.ZodType<string, string>) =>
  z
    .string()
    .transform((value) => value.split(',').map((part) => part.trim()))
    .pipe(z.array(item).min(1));

const variables = z.object({
  PORT: integer(0, 65_535).default(4000),
  HOST: z.string().default('127.0.0.1').describe('an address of this machine'),
  UPSTREAM_URL: origin.optional(),
  UPSTREAM_TIMEOUT_MS: integer(1, 600_000).default(10_000),
  OPERATION_TIMEOUT_MS: integer(1, 600_000).default(30_000),
  UPSTREAM_UTC_OFFSET: z
    .string()
    .regex(/^([+-](0\d|1[0-4]):[0-5]\d|Z)$/)
    .describe('an offset such as -06:00, or Z')
    .default('-06:00'),
  UPSTREAM_TOKEN_CLIENT_CLAIM: list(z.string().min(1))
    .describe('names of JWT claims, comma-separated')
    .default(['client_id', 'clientId', 'cid', 'sub']),
  AUTH_MODE: z.enum(['passthrough']).describe('passthrough').default('passthrough'),
  REDIS_URL: z
    .string()
    .regex(/^(rediss?|rediss?\+(sentinel|cluster)):\/\/./)
    .describe('redis://…, rediss://…, redis+sentinel://… or redis+cluster://…')
    .optional(),
  DATA_DIR: z.string().describe('a folder').optional(),
  EVENTS_RETENTION: integer(1, 100_000_000).default(100_000),
  PUBLIC_URL: httpUrl.transform((value) => value.replace(/\/+$/, '')).optional(),
  WEBHOOK_SECRET: list(z.string().min(1))
    .pipe(z.tuple([z.string()]).or(z.tuple([z.string(), z.string()])))
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
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .describe('fatal, error, warn, info, debug, trace or silent')
    .default('info'),
  SANDBOX_PORT: integer(0, 65_535).default(4010),
  SANDBOX_SPEED: z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .transform(Number)
    .refine((value) => value <= 100_000)
    .describe('how many times faster than real time, from 0 (stands still) to 100000')
    .default(60),
  SANDBOX_SEED: integer(0, Number.MAX_SAFE_INTEGER).default(1),
});

export type Variables = z.output<typeof variables>;

/** Names whose value is never repeated in an error message. */
const SECRET = new Set<string>(['WEBHOOK_SECRET', 'REDIS_URL']);

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
    problems.set(name, `${name}: got ${got}, wants ${wants(name)}.`);
  }
  if (given['UPSTREAM_URL'] !== undefined && given['WEBHOOK_SECRET'] === undefined) {
    problems.set(
      'WEBHOOK_SECRET',
      `WEBHOOK_SECRET: is not set, and UPSTREAM_URL is; wants ${wants('WEBHOOK_SECRET')}, the same in every process.`,
    );
  }
  if (!read.success || problems.size > 0) {
    const list = [...problems.values()].map((problem) => `  ${problem}`).join('\n');
    throw new ConfigError(`The configuration is wrong:\n${list}`);
  }
  return read.data;
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

/** The configuration of this process. */
export const readEnvironment = (): Variables => readVariables(process.env);
