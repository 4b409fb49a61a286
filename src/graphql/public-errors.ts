import { GraphQLError, Kind } from 'graphql';
import { UnauthenticatedError } from '../auth/authenticator.ts';
import { noteRefusal } from '../common/refusals.ts';
import {
  CursorInvalidError,
  DrainingError,
  EventsGapError,
  SlowConsumerError,
  StoreUnavailableError,
} from '../events/errors.ts';
import { publicMessage, withoutValues } from '../observability/redact.ts';
import { ApiKeyError, PublicError } from '../resolvers/errors.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { MalformedIdError } from '../upstream/call/path.ts';
import { withGap } from './gaps.ts';
import { withSlowReader } from './slow-readers.ts';

/**
 * The public form of an error that reached the top of a result: `extensions.code` is one of docs/graph.md's, and the message
 * is one that callers may read. Undefined for whatever is not meant for them.
 */
export function toPublicError(error: GraphQLError): GraphQLError | undefined {
  const known = publicForm(error);
  return known && rephrased(known, publicMessage(known.message));
}

/**
 * The public form of an error about a document, found before anything ran: what graphql-js says, without the values that
 * the document holds. Its code, where it has one, is GraphQL's own.
 */
export const toDocumentError = (error: GraphQLError): GraphQLError =>
  rephrased(error, withoutValues(error.message));

/** The error about a document of which it is not clear which operation is to run. */
export const unclearOperation = (): GraphQLError =>
  new GraphQLError(
    'Which operation is to run is not clear: "operationName" must name one of the document, and may be missing where there is one alone.',
    { extensions: { code: 'BAD_USER_INPUT' } },
  );

/** Places that an error names: a field may stand in a document hundreds of times. */
const MAX_PLACES = 5;

/** Where an error comes from, in as many ways as it may name. */
export const locationsOf = ({ nodes, source, positions }: GraphQLError) =>
  nodes === undefined
    ? { source, positions: positions?.slice(0, MAX_PLACES) }
    : { nodes: nodes.slice(0, MAX_PLACES) };

/** Without what Yoga adds of the error beneath: a parser's message quotes what it was given. */
function rephrased(error: GraphQLError, message: string): GraphQLError {
  const { originalError, ...extensions } = error.extensions;
  const isBrief = (error.nodes?.length ?? 0) <= MAX_PLACES;
  if (message === error.message && originalError === undefined && isBrief) return error;
  return new GraphQLError(message, { ...locationsOf(error), path: error.path, extensions });
}

/** @param isOfField whether a field of the answer failed, which an error beneath it does not say of itself. */
function publicForm(error: GraphQLError, isOfField = error.path !== undefined): GraphQLError | undefined {
  const cause = error.originalError;
  if (cause === undefined || cause === null || isOfVariable(error)) return ofGraphQL(error, isOfField);
  // An executor may wrap an error that it was handed already located.
  if (cause instanceof GraphQLError) return publicForm(cause, isOfField);
  const known = describe(cause);
  return known && new GraphQLError(known.message, { extensions: known.extensions });
}

/** Counts a result, once, of which fields were refused because the operation asks for too much. */
export function noteRefusedFields(errors: readonly GraphQLError[]): void {
  if (errors.some(isTooMuch)) noteRefusal('fields');
}

function isTooMuch({ originalError }: GraphQLError): boolean {
  if (originalError instanceof GraphQLError) return isTooMuch(originalError);
  return originalError instanceof PublicError && originalError.code === 'TOO_COMPLEX';
}

interface Description {
  readonly message: string;
  readonly extensions: Readonly<Record<string, unknown>>;
}

function describe(cause: Error): Description | undefined {
  // graphql-js' own Error: what is promised is missing in what the service has sent.
  if (NULL_IN_NON_NULL.test(cause.message)) {
    return { message: cause.message, extensions: { code: 'UPSTREAM_INVALID' } };
  }
  if (cause instanceof UpstreamError) return ofUpstream(cause);
  if (cause instanceof EventsGapError) {
    const { code, oldest, head, gap } = cause;
    return { message: cause.message, extensions: withGap({ code, oldest, head }, gap) };
  }
  if (cause instanceof CursorInvalidError) {
    return { message: cause.message, extensions: { code: cause.code, ...cause.bounds } };
  }
  if (cause instanceof SlowConsumerError) {
    const { code, retryable, clientId } = cause;
    return { message: cause.message, extensions: withSlowReader({ code, retryable }, clientId) };
  }
  if (cause instanceof DrainingError || cause instanceof StoreUnavailableError) {
    return { message: cause.message, extensions: { code: cause.code, retryable: cause.retryable } };
  }
  if (cause instanceof ApiKeyError) {
    return { message: cause.message, extensions: { code: cause.code, header: cause.header } };
  }
  if (
    cause instanceof PublicError ||
    cause instanceof MalformedIdError ||
    cause instanceof UnauthenticatedError
  ) {
    return { message: cause.message, extensions: { code: cause.code } };
  }
  return undefined;
}

/**
 * What callers are told to wait where the service asks for fewer calls and does not say for how long, in milliseconds. A client's own
 * pauses begin with a tenth of a second.
 */
const UNSAID_WAIT_MS = 5_000;

function ofUpstream({ publicCode: code, message, retryAfterMs: asked }: UpstreamError): Description {
  const retryAfterMs = asked ?? (code === 'UPSTREAM_RATE_LIMITED' ? UNSAID_WAIT_MS : undefined);
  return { message, extensions: { code, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) } };
}

/** What a scalar says of a variable's value is kept as the cause; the executor's message repeats it and names the variable. */
const isOfVariable = ({ path, nodes }: GraphQLError): boolean =>
  path === undefined && nodes?.[0]?.kind === Kind.VARIABLE_DEFINITION;

/** Yoga's own name for it. */
const BAD_REQUEST = 'BAD_REQUEST';
const NULL_IN_NON_NULL = /^Cannot return null for non-nullable field /;
/** What graphql-js says of a value that is not of its field's type. Of an argument's it begins with `Argument`. */
const OTHER_TYPE =
  /^(String|ID|Int|Float|Boolean|Enum "\w+") cannot represent |^Expected (Iterable|value of type)/;

/** Errors of the executor itself: variables it could not coerce, and fields that the upstream filled with another type. */
function ofGraphQL(error: GraphQLError, isOfField: boolean): GraphQLError {
  const known = toDocumentError(error);
  const ownCode = known.extensions['code'];
  if (ownCode === 'OPERATION_RESOLUTION_FAILURE') {
    const { message, extensions } = unclearOperation();
    return new GraphQLError(message, { extensions: { ...known.extensions, ...extensions } });
  }
  if (ownCode !== undefined && ownCode !== BAD_REQUEST) return known;
  const code = isOfField && OTHER_TYPE.test(known.message) ? 'UPSTREAM_INVALID' : 'BAD_USER_INPUT';
  const { http, ...others } = known.extensions;
  // With `spec` Yoga would answer 200 in the form application/json. A request of a wrong form is no request of GraphQL.
  const status = http === undefined ? {} : { http: { ...http, spec: false } };
  return new GraphQLError(known.message, { extensions: { ...others, ...status, code } });
}
