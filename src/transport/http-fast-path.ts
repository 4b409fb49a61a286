import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLSchema,
  OperationTypeNode,
} from 'graphql';
import { isAsyncIterable, isPromise, processRegularResult, type YogaServerInstance } from 'graphql-yoga';
import type { Body } from '../common/bodies.ts';
import { endUnread, NOT_ACCEPTABLE } from '../common/undelivered.ts';
import { preparedOperation } from '../graphql/plugins/prepared-operation.ts';
import { unwrapped } from '../graphql/plugins/pushed-streams.ts';

export interface JsonPostOptions<TContext> {
  /** Whether anything is served here; where not, Yoga's own transport serves all. */
  readonly isOn: boolean;
  /** The longest body that is read here, in bytes. What is longer, Yoga refuses. */
  readonly maxBodyBytes: number;
  /**
   * Reads a body. What is longer than `maxBodyBytes` is read one byte further at least.
   *
   * @param response whose end lets go of the body.
   */
  readonly readBody: (request: IncomingMessage, response: ServerResponse) => Promise<Body>;
  /** Waits until a request that is there in full may be worked on; no promise where that is at once. */
  readonly turn: (request: IncomingMessage, context: TContext) => Promise<unknown> | undefined;
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
  /** A document that needs neither be parsed nor validated. */
  readonly findKept: (text: string) => DocumentNode | undefined;
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

type WholeBody = Extract<Body, { readonly kind: 'whole' }>;

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
  options: JsonPostOptions<TContext>,
): Transport<TContext> {
  // All of these share one: Yoga's plugins ask it for its method alone.
  const request = new yoga.fetchAPI.Request('http://localhost', { method: 'POST' });

  /** A document that is kept. Of an operation that is not in it, Yoga tells where it validates. */
  function findKept(
    schema: GraphQLSchema,
    text: string,
    operationName: Operation['operationName'],
  ): DocumentNode | undefined {
    const document = options.findKept(text);
    if (document === undefined) return undefined;
    return preparedOperation({ schema, document, operationName }) === undefined ? undefined : document;
  }

  async function run(
    params: Operation,
    context: TContext,
  ): Promise<ExecutionResult | AsyncIterable<ExecutionResult>> {
    try {
      const enveloped = yoga.getEnveloped(
        Object.assign(context, { request, params, transport: 'fast path' }),
      );
      const { schema, contextFactory, execute, subscribe } = enveloped;
      const { variables, operationName } = params;
      const text = options.documentOf(params);
      const kept = findKept(schema, text, operationName);
      if (kept !== undefined) Object.assign(context, { isKept: true });
      const document = kept ?? enveloped.parse(text);
      const errors = kept === undefined ? enveloped.validate(schema, document) : [];
      if (errors.length > 0) return { errors };
      const args = { schema, document, variableValues: variables, operationName };
      const isStream = preparedOperation(args)?.type === OperationTypeNode.SUBSCRIPTION;
      const run = isStream ? subscribe : execute;
      const made = contextFactory();
      return unwrapped(await run({ ...args, contextValue: isPromise(made) ? await made : made }));
    } catch (error) {
      return { errors: [options.mask(error)] };
    }
  }

  /**
   * Hands a body that has been read to Yoga: what is a JSON object as that, and all else as a stream. Yoga would keep a text as
   * long as a stream of events lasts; of an object, what the stream does not need is let go of as it begins.
   */
  async function handOver(
    request: IncomingMessage,
    response: ServerResponse,
    context: TContext,
    { bytes, release }: Pick<WholeBody, 'bytes'> & Partial<Pick<WholeBody, 'release'>>,
  ): Promise<void> {
    const parsed = jsonObjectOf(request, bytes);
    const releaseBody = (): void => {
      for (const name in parsed) if (name !== 'variables') Reflect.deleteProperty(parsed, name);
      release?.();
    };
    const readable = Object.assign(request, { body: parsed ?? Readable.from([bytes]) });
    Object.assign(context, { releaseBody });
    await yoga(readable, response, context);
  }

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    context: TContext,
    sent: WholeBody,
  ): Promise<void> {
    const mediaType = options.isOn ? everydayAnswer(request) : undefined;
    const operation = mediaType === undefined ? undefined : parseOperation(sent.bytes.toString());
    if (mediaType === undefined || operation === undefined) return handOver(request, response, context, sent);

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
    const { method, headers } = request;
    // What is announced to be too long, Yoga refuses unread.
    if (method !== 'POST' || Number(headers['content-length']) > options.maxBodyBytes) {
      await options.turn(request, context);
      return response.destroyed ? undefined : yoga(request, response, context);
    }
    const body = await options.readBody(request, response);
    switch (body.kind) {
      case 'whole': {
        const turn = options.turn(request, context);
        if (turn !== undefined) await turn;
        // Its client may have left while it waited.
        return response.destroyed ? undefined : serve(request, response, context, body);
      }
      case 'too-large':
        response.setHeader('connection', 'close');
        return handOver(request, response, context, body);
      case 'full':
        refuse(request, response, body.whose);
        return undefined;
      default:
        return undefined;
    }
  };
}

/** Why there is no room for a body, and the status of HTTP. */
const REFUSALS = {
  own: [429, 'The requests of this caller or address that are being sent hold too many bytes.'],
  all: [503, 'The requests that are being sent to this server hold too many bytes.'],
} as const;

/** Refuses a request whose body is not read to its end. */
function refuse(request: IncomingMessage, response: ServerResponse, whose: keyof typeof REFUSALS): void {
  const [status, message] = REFUSALS[whose];
  const retryAfterMs = 1_000;
  const error = {
    message: `${message} Try again later.`,
    extensions: { code: 'RATE_LIMITED', retryAfterMs },
  };
  request.resume();
  response
    .writeHead(status, { 'content-type': 'application/json', 'retry-after': '1', connection: 'close' })
    .end(JSON.stringify({ errors: [error] }));
}

/** The media type that Yoga would answer an everyday request with; undefined for any other request. */
function everydayAnswer({ headers }: IncomingMessage): MediaType | undefined {
  if (
    headers['content-length'] === undefined ||
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

/** A body of JSON that is an object with something in it; undefined for any other. */
function jsonObjectOf({ headers }: IncomingMessage, bytes: Buffer): object | undefined {
  if (!headers['content-type']?.toLowerCase().startsWith('application/json')) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isObject(value) && Object.keys(value).length > 0 ? value : undefined;
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
