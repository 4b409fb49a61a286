import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionResult, GraphQLError } from 'graphql';
import {
  type GraphQLParams,
  isAsyncIterable,
  processRegularResult,
  type YogaServerInstance,
} from 'graphql-yoga';
import { endUnread, NOT_ACCEPTABLE } from '../common/undelivered.ts';

export interface JsonPostOptions {
  /** The longest body that is read here, in bytes. What is longer, Yoga refuses. */
  readonly maxBodyBytes: number;
  /** Whether pages of an origin may read answers. */
  readonly allowsOrigin: (origin: string) => boolean;
  /** The JSON of a result that has no errors. */
  readonly stringify: (result: ExecutionResult) => string | Buffer;
  /** The public form of an error from before an operation ran. */
  readonly mask: (error: unknown) => GraphQLError;
}

/** Serves one request at the graph's path. Never rejects. */
export type Transport<TContext> = (
  request: IncomingMessage,
  response: ServerResponse,
  context: TContext,
) => Promise<void>;

type MediaType = 'application/graphql-response+json' | 'application/json';

const JSON_CONTENT = /^application\/json *(; *charset=utf-8)?$/i;
const JSON_RANGES: ReadonlyMap<string, MediaType> = new Map([
  ['application/graphql-response+json', 'application/graphql-response+json'],
  ['application/json', 'application/json'],
  ['*/*', 'application/json'],
]);

/**
 * GraphQL over HTTP in its everyday form, a POST of JSON that is answered with JSON, without the classes of fetch, which
 * cost more than all else of a small query. Only the bytes are handled here: what they mean, with every plugin's say in
 * it, is Yoga's, and whatever is not quite everyday is handed to Yoga's own transport as it came.
 */
export function createJsonPost<TContext extends object>(
  yoga: YogaServerInstance<TContext, object>,
  options: JsonPostOptions,
): Transport<TContext> {
  async function execute(
    request: IncomingMessage,
    params: GraphQLParams,
    context: TContext,
  ): Promise<ExecutionResult | AsyncIterable<ExecutionResult>> {
    const fetchRequest = new yoga.fetchAPI.Request(`http://${request.headers.host}${request.url}`, {
      method: 'POST',
      // In the form in which Yoga's own transport hands them in.
      headers: request.headers as Record<string, string>,
    });
    try {
      // It is undefined only where a plugin has made it so, and none does.
      return (await yoga.getResultForParams({ params, request: fetchRequest }, context)) ?? {};
    } catch (error) {
      return { errors: [options.mask(error)] };
    }
  }

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    context: TContext,
    mediaType: MediaType,
  ): Promise<void> {
    const text = await readText(request);
    if (text === undefined) return;
    const params = parseParams(text);
    // A body that has been read already is what Yoga then reads.
    if (params === undefined) return yoga(Object.assign(request, { body: text }), response, context);

    const result = await execute(request, params, context);
    const { origin } = request.headers;
    if (origin !== undefined && options.allowsOrigin(origin)) {
      response.setHeader('access-control-allow-origin', origin);
    }
    if (isAsyncIterable(result)) {
      await endUnread(result);
      response.writeHead(406, { 'content-type': 'application/json' }).end(JSON.stringify(NOT_ACCEPTABLE));
      return;
    }
    if (result.errors !== undefined) {
      const made = processRegularResult(result, yoga.fetchAPI, mediaType);
      response.writeHead(made.status, Object.fromEntries(made.headers)).end(await made.text());
      return;
    }
    const body = options.stringify(result);
    response
      .writeHead(200, {
        'content-type': `${mediaType}; charset=utf-8`,
        'content-length': Buffer.byteLength(body),
      })
      .end(body);
  }

  return async (request, response, context) => {
    const mediaType = everydayAnswer(request, options.maxBodyBytes);
    if (mediaType === undefined) await yoga(request, response, context);
    else await serve(request, response, context, mediaType);
  };
}

/** The media type that Yoga would answer an everyday request with; undefined for any other request. */
function everydayAnswer({ method, headers }: IncomingMessage, maxBodyBytes: number): MediaType | undefined {
  const length = headers['content-length'];
  if (
    method !== 'POST' ||
    length === undefined ||
    Number(length) > maxBodyBytes ||
    headers['content-encoding'] !== undefined ||
    !JSON_CONTENT.test(headers['content-type'] ?? '')
  ) {
    return undefined;
  }
  const accepted = headers.accept ?? '*/*';
  const only = JSON_RANGES.get(accepted);
  if (only !== undefined) return only;
  // Only UTF-8 is spoken; Yoga passes over ranges that ask for anything else.
  if (accepted.includes('charset')) return undefined;
  const ranges = accepted.split(',').map((range) => range.split(';', 1)[0]?.trim().toLowerCase());
  return ranges.map((range) => JSON_RANGES.get(range ?? '')).find((type) => type !== undefined);
}

/** The whole body; undefined when its sender is gone. */
function readText(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    request
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => resolve((chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))?.toString()))
      .on('error', () => resolve(undefined));
  });
}

/**
 * What is plainly a query or a mutation; undefined for what is none, which Yoga knows how to put, and for what is a stream or
 * may be one: a document that is named instead of written.
 */
function parseParams(text: string): GraphQLParams | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return isOperation(body) && !body.query.includes('subscription') ? body : undefined;
  } catch {
    return undefined;
  }
}

const isOperation = (value: unknown): value is { readonly query: string } =>
  typeof value === 'object' &&
  value !== null &&
  'query' in value &&
  typeof value.query === 'string' &&
  value.query !== '';
