import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { type ZodType, z } from 'zod';
import { type ApiError, dataError, type Operation } from './errors.ts';
import type { Transaction } from './state.ts';
import { withExtraFields } from './views.ts';
import type { World } from './world.ts';

export interface Env {
  Bindings: HttpBindings;
  Variables: {
    /** The client that the credentials belong to. */
    clientId: string;
    operation: Operation | undefined;
    bodyText: Promise<string> | undefined;
    /** Real ms by which a fault holds the work up. */
    delayMs: number | undefined;
    /** The transfer that the request has made; undefined where a key's first answer is given again. */
    performed: Transaction | undefined;
  };
}

export type App = Hono<Env>;
export type Ctx = Context<Env>;

/** Largest request body, in bytes. */
const BODY_LIMIT_BYTES = 1024 * 1024;

/** A UUID in its text form, of any version. */
export const uuid = z.guid();

/** By the handlers that {@link operation} has made. */
const operations = new WeakMap<object, Operation>();

/** Names the module and method that this route's error bodies carry (docs/upstream-api.md, "Errors"). */
export function operation(module: string, method: string): MiddlewareHandler<Env> {
  const handler: MiddlewareHandler<Env> = (_c, next) => next();
  operations.set(handler, { module, method });
  return handler;
}

/** Takes the operation of the route that will serve a request. It goes before all else, so that each refusal names the operation. */
export const nameOperation: MiddlewareHandler<Env> = (c, next) => {
  const found = matchedRoutes(c).map(({ handler }) => operations.get(handler));
  c.set(
    'operation',
    found.find((one) => one !== undefined),
  );
  return next();
};

/** The request's body, checked. @throws ApiError DATA_ERROR that names the first field at fault. */
export async function readBody<T>(c: Ctx, schema: ZodType<T>): Promise<T> {
  return check(schema, parseJson(await readText(c)), 'body');
}

/** @throws ApiError DATA_ERROR naming the first field at fault. */
export function check<T>(schema: ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = [what, ...(issue?.path ?? [])].join('.');
  throw dataError(`${path}: ${issue?.message ?? 'invalid'}`);
}

/**
 * The request's body as text, read once. (Hono's own body limit copies the request, which its Node server supports only
 * with the global `Request` replaced.)
 *
 * @throws ApiError DATA_ERROR past the limit.
 */
export function readText(c: Ctx): Promise<string> {
  const known = c.get('bodyText');
  if (known !== undefined) return known;
  const text = readLimited(c);
  c.set('bodyText', text);
  return text;
}

async function readLimited(c: Ctx): Promise<string> {
  if (Number(c.req.header('content-length') ?? 0) > BODY_LIMIT_BYTES) throw tooLarge(c);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of c.req.raw.body ?? []) {
      size += chunk.length;
      if (size > BODY_LIMIT_BYTES) break;
      chunks.push(chunk);
    }
  } catch {
    throw dataError('The request body ended early.');
  }
  if (size > BODY_LIMIT_BYTES) throw tooLarge(c);
  return Buffer.concat(chunks).toString('utf8');
}

function tooLarge(c: Ctx): ApiError {
  // The rest of the body is not read, so that the connection cannot serve another request.
  c.header('connection', 'close');
  return dataError(`The request body is larger than ${BODY_LIMIT_BYTES} bytes.`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw dataError('The request body is not valid JSON.');
  }
}

/** Answers with JSON: `Body` is what `RestAnswers` says of the endpoint. */
export function answer<Body>(c: Ctx, world: World, body: Body, status: ContentfulStatusCode = 200): Response {
  return c.json(withExtraFields(world.choices, body), status);
}

/** The route that will serve a request, as the spec writes it: `/v1/clients/{clientId}/accounts`; undefined for none. */
export function routeTemplate(c: Context): string | undefined {
  const route = matchedRoutes(c).findLast(({ method, path }) => method !== 'ALL' && !path.endsWith('*'));
  return route?.path.replaceAll(/:(\w+)/g, '{$1}');
}

/** A path parameter that the route's own pattern guarantees. */
export function pathId(c: Ctx, name: string): string {
  return (c.req.param(name) ?? '').toLowerCase();
}
