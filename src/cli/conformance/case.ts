import { z } from 'zod';
import list from './cases.json' with { type: 'json' };

export const TRANSPORTS = ['sse', 'websocket'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** How long the gateway may take for a step without a time of its own, in milliseconds. */
const PATIENCE_MS = 15_000;

const WITHIN = { withinMs: z.number().default(PATIENCE_MS) };
/** In texts, also in those of variables, `$name` stands for the value that an earlier step has kept under that name. */
const VARIABLES = { variables: z.record(z.string(), z.unknown()).default({}) };

const STEP = z.union([
  /** A query. `keep`: name → path into the answer. `is`: path → what has to stand there. `code`: the error that has to come. */
  z.strictObject({
    query: z.string(),
    keep: z.record(z.string(), z.string()).default({}),
    is: z.record(z.string(), z.unknown()).default({}),
    code: z.string().optional(),
    ...VARIABLES,
  }),
  /** At least so many values must have been kept under the name. Otherwise the case cannot be tried. */
  z.strictObject({ needs: z.string(), atLeast: z.number(), otherwise: z.string() }),
  z.strictObject({
    subscribe: z.string(),
    lastEventId: z.string().optional(),
    streams: z.number().default(1),
    ...VARIABLES,
  }),
  /** Waits for bookmarks of so many streams. Events may come before them. */
  z.strictObject({
    hear: z.literal('bookmark'),
    keep: z.string().optional(),
    streams: z.number().default(1),
    ...WITHIN,
  }),
  /** Waits for the events whose ids were kept under the name, in that order, with nothing before or between them. */
  z.strictObject({ hear: z.literal('events'), ids: z.string(), ...WITHIN }),
  /** Waits for a last result without data, or for a message `error`. */
  z.strictObject({ hear: z.enum(['failure', 'error']), code: z.string(), ...WITHIN }),
  z.strictObject({ hear: z.enum(['complete', 'beat']), ...WITHIN }),
  z.strictObject({ hear: z.literal('pong'), payload: z.unknown(), ...WITHIN }),
  z.strictObject({ hear: z.literal('closed'), code: z.number(), ...WITHIN }),
  /** Sends this message of the subprotocol unchanged. */
  z.strictObject({ send: z.record(z.string(), z.unknown()) }),
  /** Sends a message of so many bytes. */
  z.strictObject({ sendBytes: z.number() }),
]);

const CASE = z.strictObject({
  name: z.string(),
  /** Identifiers of PROTOCOL.md. */
  rules: z.array(z.string()).min(1),
  transports: z.array(z.enum(TRANSPORTS)).default([...TRANSPORTS]),
  /** A token that no gateway accepts, in the place of the caller's. */
  token: z.string().optional(),
  /** True if a socket begins with `connection_init`, as it should. */
  init: z.boolean().default(true),
  /** True if it waits for something that takes its time. */
  slow: z.boolean().default(false),
  script: z.array(STEP).min(1),
});

export type Case = z.infer<typeof CASE>;
export type Step = Case['script'][number];

/** The cases by which a gateway is tried, rule by rule. */
export const CASES: readonly Case[] = z.array(CASE).parse(list);
