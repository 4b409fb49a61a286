import {
  ConflictError,
  NotFoundError,
  OutcomeUnknown,
  PreconditionError,
  RefusedError,
  ValidationError,
} from '../resolvers/errors.ts';

/** All that a mutation may answer besides its success. Apart from errors.ts, which needs nouns that need this. */
export const ANY_FAILURE = [
  ValidationError,
  PreconditionError,
  NotFoundError,
  ConflictError,
  RefusedError,
  OutcomeUnknown,
] as const;
