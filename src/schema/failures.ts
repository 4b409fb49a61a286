import {
  ConflictError,
  NotFoundError,
  OutcomeUnknown,
  PreconditionError,
  RefusedError,
  ValidationError,
} from '../resolvers/errors.ts';
import { builder } from './builder.ts';

/**
 * All that a mutation may answer besides its success. One that cannot fail in some of these ways names its members by `builder.errorUnion`, as
 * `createWebhook` does. Apart from errors.ts, which needs nouns that need this.
 */
const ANY_FAILURE = [
  ValidationError,
  PreconditionError,
  NotFoundError,
  ConflictError,
  RefusedError,
  OutcomeUnknown,
] as const;

const successOf = <T>(name: string) => builder.objectRef<T>(name).implement({});

/**
 * The union of what a mutation may answer: its success, or any failure.
 *
 * @param name of the mutation, with a capital: its success is called `<name>Success`.
 * @param outcomes what it may come to, for people.
 */
export const resultOf = <T>(name: string, success: ReturnType<typeof successOf<T>>, outcomes = '') =>
  builder.errorUnion(`${name}Result`, {
    description: `What came of \`${name[0]?.toLowerCase()}${name.slice(1)}\`${outcomes}.`,
    types: [success, ...ANY_FAILURE],
    resolveType: () => `${name}Success`,
  });
