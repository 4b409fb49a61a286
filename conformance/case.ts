import { readdir, readFile } from 'node:fs/promises';
import { z } from 'zod';

export const TRANSPORTS = ['sse', 'websocket'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** The least pause of the client since the gateway's last word, in milliseconds. */
const noSoonerThanMs = z.number().optional();
/** What the client has to send next. A list of cursors: one of them. */
const EXPECT = z.union([
  z.strictObject({
    expect: z.literal('subscribe'),
    after: z.union([z.string(), z.array(z.string())]),
    token: z.string().optional(),
    noSoonerThanMs,
  }),
  z.strictObject({ expect: z.literal('eventCursor'), token: z.string().optional(), noSoonerThanMs }),
  z.strictObject({ expect: z.literal('mutation'), noSoonerThanMs }),
  z.strictObject({ expect: z.literal('pong') }),
]);

/** What the gateway says to the operation that was expected last. */
const SEND = z.union([
  z.strictObject({ send: z.literal('event'), cursor: z.string(), errors: z.array(z.unknown()).optional() }),
  z.strictObject({ send: z.literal('bookmark'), cursor: z.string() }),
  z.strictObject({ send: z.literal('ping'), payload: z.unknown().optional() }),
  z.strictObject({ send: z.literal('error'), extensions: z.record(z.string(), z.unknown()) }),
  z.strictObject({ send: z.enum(['complete', 'cut', 'drain', 'later', 'token refused', 'defect']) }),
  z.strictObject({ answer: z.record(z.string(), z.unknown()) }),
]);

/** The next line that the client writes, or that it ends. */
const CLIENT = z.strictObject({ client: z.union([z.literal('ends'), z.record(z.string(), z.unknown())]) });

/** The client's program is killed, unless it has ended, and started anew with the same command. */
const RESTART = z.strictObject({ restart: z.literal('client') });

const CASE = z.strictObject({
  name: z.string(),
  /** Identifiers of PROTOCOL.md. */
  rules: z.array(z.string()).min(1),
  /** Both, unless given. */
  transports: z.array(z.enum(TRANSPORTS)).default([...TRANSPORTS]),
  command: z.strictObject({
    do: z.enum(['follow', 'pay']),
    saved: z.string().optional(),
    tokens: z.array(z.string()).default(['first']),
  }),
  script: z.array(z.union([EXPECT, SEND, CLIENT, RESTART])),
});

export type Case = z.infer<typeof CASE>;
export type Send = z.infer<typeof SEND>;
export type Step = Case['script'][number];

/** All cases, in the order of their files. @throws where one is not well formed. */
export async function readCases(): Promise<readonly Case[]> {
  const folder = new URL('cases/', import.meta.url);
  const files = (await readdir(folder)).sort();
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, folder), 'utf8')));
  return texts.flatMap((text) => z.array(CASE).parse(JSON.parse(text)));
}
