import { type ExecutionResult, GraphQLError, type GraphQLErrorOptions } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { MappedStream, PushStream } from '../../common/push-stream.ts';
import type { Incoming } from '../../operation/incoming.ts';
import { type RefusedRequestLog, withRequestId } from '../refused-requests.ts';

/** What this plugin needs of an operation's context. */
export interface ErrorContext {
  readonly requestId: string;
}

/** What it needs of a request. */
interface RequestContext {
  readonly incoming: Pick<Incoming, 'requestId'>;
}

export interface ErrorMaskingOptions {
  /** The public form of an error, or undefined when callers must not see it. */
  translate(error: GraphQLError): GraphQLError | undefined;
  /** The public form of an error that validation has found. */
  translateInvalid(error: GraphQLError): GraphQLError;
  /** The places in the document that a public form names. */
  locationsOf(error: GraphQLError): Pick<GraphQLErrorOptions, 'nodes' | 'source' | 'positions'>;
  /** Called with the errors of each result that has some, as they were thrown. */
  onErrors(errors: readonly GraphQLError[]): void;
  /** Called with each error that was masked. */
  onMasked(error: unknown, requestId: string): void;
  /** Called with each result that has errors, in their public form, and is no part of a stream. */
  onFailed(result: ExecutionResult): void;
  readonly tellRefused: RefusedRequestLog;
}

/** Errors that one result lists. What fails for each item of a list fails as often as there are items. */
const MAX_ERRORS = 100;

/**
 * Stands for the errors that are left out. It has no path, and one of them may be that of a payment: a client that reads it as the error
 * of the payment must take the payment for one that may have moved. So its code is on no list of codes that say otherwise.
 */
const leftOut = (count: number, requestId: string): GraphQLError =>
  new GraphQLError(`${count} more errors are left out.`, { extensions: { code: 'MORE_ERRORS', requestId } });

/**
 * Gives every error of a result its public form: `extensions.code`, and `requestId` to ask about. What is not meant for
 * callers is replaced by "Unexpected error" and handed to `onMasked`. A stream that fails ends with the error as its
 * last result, over every transport alike.
 */
export function useErrorMasking(options: ErrorMaskingOptions): Plugin<ErrorContext, RequestContext> {
  const publicForm = (error: GraphQLError, requestId: string): GraphQLError => {
    const known = options.translate(error);
    if (known === undefined) options.onMasked(error.originalError ?? error, requestId);
    const { message, extensions } = known ?? {
      message: 'Unexpected error',
      extensions: { code: 'INTERNAL' },
    };
    return new GraphQLError(message, {
      ...options.locationsOf(error),
      path: error.path,
      extensions: { ...extensions, requestId },
    });
  };

  const maskResult = (result: ExecutionResult, requestId: string): ExecutionResult => {
    const { errors = [] } = result;
    if (errors.length === 0) return result;
    options.onErrors(errors);
    const shown = errors.slice(0, MAX_ERRORS).map((error) => publicForm(error, requestId));
    const left = errors.length - shown.length;
    return { ...result, errors: left === 0 ? shown : [...shown, leftOut(left, requestId)] };
  };

  const maskWhole = (result: ExecutionResult, requestId: string): ExecutionResult => {
    const masked = maskResult(result, requestId);
    if (masked !== result) options.onFailed(masked);
    return masked;
  };

  const maskStream = (results: PushStream<ExecutionResult>, requestId: string) =>
    new MappedStream(
      results,
      (result: ExecutionResult) => maskResult(result, requestId),
      (error) => ({ errors: [publicForm(toGraphQLError(error), requestId)] }),
    );

  return {
    onValidate() {
      return ({ result, setResult }) => {
        const errors: readonly Error[] = result;
        setResult(
          errors.map((error) => (error instanceof GraphQLError ? options.translateInvalid(error) : error)),
        );
      };
    },
    onResultProcess: namesRefusals(options.tellRefused),
    onExecute({ args }) {
      return {
        onExecuteDone({ result, setResult }) {
          if (!isAsyncIterable(result)) setResult(maskWhole(result, args.contextValue.requestId));
        },
      };
    },
    onSubscribe({ args }) {
      const { requestId } = args.contextValue;
      return {
        onSubscribeResult({ result, setResult }) {
          setResult(
            // What executes makes no other streams.
            result instanceof PushStream
              ? maskStream(result, requestId)
              : maskWhole(result as ExecutionResult, requestId),
          );
        },
      };
    },
  };
}

/** Gives the errors of a request that is refused before its operation begins the id of that request. */
const namesRefusals =
  (tell: RefusedRequestLog): NonNullable<Plugin<ErrorContext, RequestContext>['onResultProcess']> =>
  ({ result, setResult, serverContext: { incoming } }) => {
    // Batches are switched off: what is no stream is one result.
    const { errors } = result as ExecutionResult;
    if (errors !== undefined)
      setResult({ ...result, errors: withRequestId(errors, incoming.requestId, tell) });
  };

const toGraphQLError = (error: unknown): GraphQLError =>
  error instanceof GraphQLError
    ? error
    : new GraphQLError('Unexpected error', {
        originalError: error instanceof Error ? error : new Error(String(error)),
      });
