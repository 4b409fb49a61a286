import { GraphQLError } from 'graphql';
import type { Logger } from '../common/logger.ts';
import type { Limit } from '../common/refusals.ts';
import { locationsOf } from './public-errors.ts';

/** Told of each request that is refused before its operation begins: the code that it was answered, and the limit, if that is why. */
export type RefusedRequestLog = (
  requestId: string,
  why: { readonly code: unknown; readonly limit?: Limit },
) => void;

/** Makes the function that logs refused requests at `debug`: anybody may make thousands of them. */
export const createRefusedRequestLog =
  (logger: Logger): RefusedRequestLog =>
  (requestId, why) =>
    logger.debug({ requestId, ...why }, 'A request was refused before its operation began');

/**
 * Adds the id of their request to errors that lack it, which are those from before an operation began, and logs the request. Errors of an
 * operation have the id already.
 */
export function withRequestId(
  errors: readonly GraphQLError[],
  requestId: string,
  tell: RefusedRequestLog,
): readonly GraphQLError[] {
  const first = errors.find(({ extensions }) => extensions['requestId'] === undefined);
  if (first === undefined) return errors;
  tell(requestId, { code: first.extensions['code'] });
  return errors.map((error) => {
    const { message, path, originalError } = error;
    const extensions = { ...error.extensions, requestId };
    return new GraphQLError(message, { ...locationsOf(error), path, originalError, extensions });
  });
}
