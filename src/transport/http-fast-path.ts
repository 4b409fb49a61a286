import { isUtf8 } from 'node:buffer';
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
import { type Limit, noteRefusal } from '../common/refusals.ts';
import { endUnread, notAcceptable } from '../common/undelivered.ts';
import { preparedOperation } from '../graphql/documents/prepared-operation.ts';
import type { Execute } from '../graphql/execution-hook.ts';
import { unwrapped } from '../graphql/plugins/pushed-streams.ts';
import { type RefusedRequestLog, withRequestId } from '../graphql/refused-requests.ts';
import { EXPOSED_HEADERS } from '../graphql/yoga.ts';
import {
  byWeight,
  everydayAnswer,
  type Operation,
  parametersOf,
  parseOperation,
  textOf,
} from './everyday-request.ts';

export interface FastPathOptions<TContext> {
  readonly schema: GraphQLSchema;
  /** Executes a query or a mutation. */
  readonly execute: Execute;
  /** False if Yoga's own transport serves everything. */
  readonly isOn: boolean;
  /** The longest body that is read here, in bytes. Yoga refuses longer ones. */
  readonly maxBodyBytes: number;
  /**
   * Reads a body. If it is longer than `maxBodyBytes`, reads at least one byte more than that.
   *
   * @param response whose end frees the body's share of memory.
   */
  readonly readBody: (request: IncomingMessage, response: ServerResponse) => Promise<Body>;
  /** Waits for the turn of a request that has been received in full. Returns no promise if its turn is now. */
  readonly turn: (request: IncomingMessage, context: TContext) => Promise<unknown> | undefined;
  /** True if pages of this origin may read answers. */
  readonly allowsOrigin: (origin: string) => boolean;
  /** The JSON of a result that has no errors. */
  readonly stringify: (result: ExecutionResult) => string | Buffer;
  /**
   * The document that a request may run.
   *
   * @throws GraphQLError where it may not run.
   */
  readonly documentOf: (params: Operation) => string;
  /** Returns a document that need not be parsed or validated again, if the text is known. */
  readonly findKept: (text: string) => DocumentNode | undefined;
  /** The public form of an error from before an operation ran. */
  readonly mask: (error: unknown) => GraphQLError;
  /** By which caller and operator find the request again. */
  readonly requestIdOf: (context: TContext) => string;
  readonly tellRefused: RefusedRequestLog;
}

/** Serves one request at the graph’s path. The router answers 500 where it rejects. */
export type GraphHandler<TContext> = (
  request: IncomingMessage,
  response: ServerResponse,
  context: TContext,
) => Promise<void>;

type WholeBody = Extract<Body, { readonly kind: 'whole' }>;

/**
 * Serves everyday requests of GraphQL over HTTP: a POST of JSON that is answered with JSON. It does without the classes of
 * fetch, which cost more than everything else of a small query. It handles the bytes alone; the executor and the plugins
 * decide what they mean. It hands any other request to Yoga's own transport unchanged.
 */
export function createFastPath<TContext extends object>(
  yoga: YogaServerInstance<TContext, object>,
  options: FastPathOptions<TContext>,
): GraphHandler<TContext> {
  const fastPath = new FastPath(yoga, options);
  return (request, response, context) => fastPath.receive(request, response, context);
}

class FastPath<TContext extends object> {
  readonly #yoga: YogaServerInstance<TContext, object>;
  readonly #options: FastPathOptions<TContext>;
  /** Shared by all operations, because Yoga's plugins read only its method. */
  readonly #request: Request;

  constructor(yoga: YogaServerInstance<TContext, object>, options: FastPathOptions<TContext>) {
    this.#yoga = yoga;
    this.#options = options;
    this.#request = new yoga.fetchAPI.Request('http://localhost', { method: 'POST' });
  }

  async receive(request: IncomingMessage, response: ServerResponse, context: TContext): Promise<void> {
    const { method, headers } = request;
    const { accept } = headers;
    if (accept?.includes('q=') === true) headers.accept = byWeight(accept);
    // Caches keep answers to GET, and some, such as nginx's, also those to requests with a token.
    if (method === 'GET') response.setHeader('cache-control', 'no-store');
    // Yoga refuses a body that is announced as too long, without reading it.
    if (method !== 'POST' || Number(headers['content-length']) > this.#options.maxBodyBytes) {
      await this.#options.turn(request, context);
      return response.destroyed ? undefined : this.#yoga(request, response, context);
    }
    const body = await this.#options.readBody(request, response);
    switch (body.kind) {
      case 'whole': {
        const { 'content-encoding': encoding = 'identity' } = headers;
        if (encoding === 'identity' && !isUtf8(body.bytes)) {
          this.#allowOrigin(request, response);
          this.#refuse(response, context, 400, NOT_UTF8);
          return undefined;
        }
        const turn = this.#options.turn(request, context);
        if (turn !== undefined) await turn;
        // Its client may have left while it waited.
        if (!response.destroyed) await this.#serve(request, response, context, body);
        return undefined;
      }
      case 'too-large':
        response.setHeader('connection', 'close');
        return this.#handOver(request, response, context, body);
      case 'full':
        this.#allowOrigin(request, response);
        this.#refuseFull(request, response, context, body.whose);
        return undefined;
      default:
        return undefined;
    }
  }

  async #serve(
    request: IncomingMessage,
    response: ServerResponse,
    context: TContext,
    sent: WholeBody,
  ): Promise<void> {
    const mediaType = this.#options.isOn ? everydayAnswer(request) : undefined;
    const operation = mediaType === undefined ? undefined : parseOperation(textOf(sent.bytes));
    if (mediaType === undefined || operation === undefined)
      return this.#handOver(request, response, context, sent);

    this.#allowOrigin(request, response);
    const result = await this.#run(operation, context);
    if (isAsyncIterable(result)) {
      await endUnread(result);
      const body = JSON.stringify(notAcceptable(this.#options.requestIdOf(context)));
      response.writeHead(406, { 'content-type': 'application/json' }).end(body);
      return;
    }
    if (result.errors !== undefined) {
      const { requestIdOf, tellRefused } = this.#options;
      const errors = withRequestId(result.errors, requestIdOf(context), tellRefused);
      const made = processRegularResult({ ...result, errors }, this.#yoga.fetchAPI, mediaType);
      response.writeHead(made.status, Object.fromEntries(made.headers)).end(await made.text());
      return;
    }
    const body = this.#options.stringify(result);
    response
      .writeHead(200, {
        'content-type': `${mediaType}; charset=utf-8`,
        'content-length': Buffer.byteLength(body),
      })
      .end(body);
  }

  /** Refuses a request whose body is not read to its end, as there is no room for it. */
  #refuseFull(
    request: IncomingMessage,
    response: ServerResponse,
    context: TContext,
    whose: keyof typeof FULL,
  ): void {
    const [status, message, limit] = FULL[whose];
    noteRefusal(limit);
    const extensions = { code: 'RATE_LIMITED', retryAfterMs: 1_000 };
    request.resume();
    response.setHeader('retry-after', '1').setHeader('connection', 'close');
    this.#refuse(response, context, status, { message: `${message} Try again later.`, extensions }, limit);
  }

  #refuse(
    response: ServerResponse,
    context: TContext,
    status: number,
    { message, extensions }: { readonly message: string; readonly extensions: { readonly code: string } },
    limit?: Limit,
  ): void {
    const requestId = this.#options.requestIdOf(context);
    const { code } = extensions;
    this.#options.tellRefused(requestId, limit === undefined ? { code } : { code, limit });
    const errors = [{ message, extensions: { ...extensions, requestId } }];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ errors }));
  }

  /** Lets the page that asks read the answer, whatever it is. */
  #allowOrigin({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
    if (origin === undefined || !this.#options.allowsOrigin(origin)) return;
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-expose-headers', EXPOSED_HEADERS.join());
  }

  async #run(
    params: Operation,
    context: TContext,
  ): Promise<ExecutionResult | AsyncIterable<ExecutionResult>> {
    try {
      const { schema, execute, mask } = this.#options;
      const { variables, operationName } = params;
      const contextValue = Object.assign(context, { request: this.#request, params, transport: 'fast path' });
      const text = this.#options.documentOf(params);
      const kept = this.#findKept(text, operationName);
      if (kept !== undefined) Object.assign(context, { isKept: true });
      const document = kept ?? this.#read(text, contextValue);
      if (!('kind' in document)) return { errors: document };
      const args = { schema, document, variableValues: variables, operationName, contextValue };
      if (preparedOperation(args)?.type === OperationTypeNode.SUBSCRIPTION)
        return unwrapped(await this.#yoga.getEnveloped(contextValue).subscribe(args));
      const made = execute(args);
      const result = isPromise(made) ? await made : made;
      return result.errors === undefined ? result : { ...result, errors: result.errors.map(mask) };
    } catch (error) {
      return { errors: [this.#options.mask(error)] };
    }
  }

  /** Parses and validates a document. Returns the errors of one that is not valid. */
  #read(text: string, context: TContext): DocumentNode | readonly GraphQLError[] {
    const { parse, validate, schema } = this.#yoga.getEnveloped(context);
    const document = parse(text);
    const errors = validate(schema, document);
    return errors.length > 0 ? errors : document;
  }

  /**
   * Returns a known document. If it has no operation of the requested name, returns undefined, so that Yoga reports that when
   * it validates.
   */
  #findKept(text: string, operationName: Operation['operationName']): DocumentNode | undefined {
    const { schema, findKept } = this.#options;
    const document = findKept(text);
    if (document === undefined) return undefined;
    return preparedOperation({ schema, document, operationName }) === undefined ? undefined : document;
  }

  /**
   * Hands a body that has been read to Yoga: a JSON object as an object, anything else as a stream. Yoga would keep a text as
   * long as a stream of events lasts. Of an object, the parts that the stream does not need are freed when it begins.
   */
  async #handOver(
    request: IncomingMessage,
    response: ServerResponse,
    context: TContext,
    { bytes, release }: Pick<WholeBody, 'bytes'> & Partial<Pick<WholeBody, 'release'>>,
  ): Promise<void> {
    const { 'content-type': type } = request.headers;
    // Yoga knows no media type in capitals, nor one with a space behind it, as JSON's.
    if (type !== undefined) request.headers['content-type'] = type.replace(JSON_TYPE, 'application/json');
    // What was read of a body that is too long may look like a whole one.
    const parsed = release && parametersOf(request, bytes);
    const releaseBody = (): void => {
      for (const name in parsed) if (name !== 'variables') Reflect.deleteProperty(parsed, name);
      release?.();
    };
    const readable = Object.assign(request, { body: parsed ?? Readable.from([bytes]) });
    Object.assign(context, { releaseBody });
    await this.#yoga(readable, response, context);
  }
}

/** What a body in another encoding is answered (RFC 8259, 8.1): another text than the caller's might be paid with. */
const NOT_UTF8 = {
  message: 'The body of a GraphQL request is JSON in UTF-8; this one is not UTF-8.',
  extensions: { code: 'BAD_USER_INPUT' },
};

const JSON_TYPE = /^application\/json[ \t]*/i;

/** Why there is no room for a body, with the HTTP status and the limit. */
const FULL = {
  own: [
    429,
    'The requests under way of this client, subject, customer or address hold too many bytes.',
    'bodies_of_sender',
  ],
  all: [503, 'The requests under way on this server hold too many bytes.', 'bodies'],
} as const;
