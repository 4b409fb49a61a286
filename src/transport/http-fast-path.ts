import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ExecutionResult, type GraphQLError, OperationTypeNode } from 'graphql';
import { isAsyncIterable, processRegularResult, type YogaServerInstance } from 'graphql-yoga';
import { endUnread, NOT_ACCEPTABLE } from '../common/undelivered.ts';
import { preparedOperation } from '../graphql/plugins/prepared-operation.ts';
import { unwrapped } from '../graphql/plugins/pushed-streams.ts';

export interface JsonPostOptions {
  /** The longest body that is read here, in bytes. What is longer, Yoga refuses. */
  readonly maxBodyBytes: number;
  /** Whether pages of an origin may read answers. */
  readonly allowsOrigin: (origin: string) => boolean;
  /** The JSON of a result that has no errors. */
  readonly stringify: (result: ExecutionResult) => string | Buffer;
  /**
   * The document that a request may run.
   *
   * @throws GraphQLError where it may not run.
   */
  readonly documentOf: (params: Operation) => string;
  /** The public form of an error from before an operation ran. */
  readonly mask: (error: unknown) => GraphQLError;
}

/** A request of GraphQL over HTTP whose members are all of the kind that they must be. */
interface Operation {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly operationName?: string | null | undefined;
  readonly extensions?: object | null | undefined;
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

const PARAMETERS = new Set(['query', 'variables', 'operationName', 'extensions']);

/**
 * GraphQL over HTTP in its everyday form, a POST of JSON that is answered with JSON, without the classes of fetch, which
 * cost more than all else of a small query. Only the bytes are handled here: what they mean, with every plugin's say in
 * it, is the executor's, and whatever is not quite everyday is handed to Yoga's own transport as it came.
 */
export function createJsonPost<TContext extends object>(
  yoga: YogaServerInstance<TContext, object>,
  options: JsonPostOptions,
): Transport<TContext> {
  // All of these share one: Yoga's plugins ask it for its method alone.
  const request = new yoga.fetchAPI.Request('http://localhost', { method: 'POST' });

  async function run(
    params: Operation,
    context: TContext,
  ): Promise<ExecutionResult | AsyncIterable<ExecutionResult>> {
    try {
      const { schema, parse, validate, contextFactory, execute, subscribe } = yoga.getEnveloped(
        Object.assign(context, { request, params }),
      );
      const document = parse(options.documentOf(params));
      const errors = validate(schema, document);
      if (errors.length > 0) return { errors };
      const { variables, operationName } = params;
      const args = { schema, document, variableValues: variables, operationName };
      const isStream = preparedOperation(args)?.type === OperationTypeNode.SUBSCRIPTION;
      const run = isStream ? subscribe : execute;
      return unwrapped(await run({ ...args, contextValue: await contextFactory() }));
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
    const operation = parseOperation(text);
    // A body that has been read already is what Yoga then reads.
    if (operation === undefined) return yoga(Object.assign(request, { body: text }), response, context);

    const result = await run(operation, context);
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
function parseOperation(text: string): Operation | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return isOperation(body) && !body.query.includes('subscription') ? body : undefined;
  } catch {
    return undefined;
  }
}

function isOperation(value: unknown): value is Operation {
  if (!isObject(value)) return false;
  for (const name in value) if (!PARAMETERS.has(name)) return false;
  const { query, variables, operationName, extensions } = value;
  return (
    typeof query === 'string' &&
    query !== '' &&
    (variables == null || isObject(variables)) &&
    (operationName == null || typeof operationName === 'string') &&
    (extensions == null || isObject(extensions))
  );
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
