import {
  type GraphQLAbstractType,
  type GraphQLLeafType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  isNonNullType,
} from 'graphql';
import { UnplannedError } from './plan.ts';

/** Lets promises of a list that nobody waits for any more be rejected. */
export function forget(items: readonly unknown[], from: number): void {
  void Promise.allSettled(items.slice(from));
}

/** Gives a plan's execution up, as a value is not of the type that it is planned for. */
export function unplanned(): never {
  throw new UnplannedError('a value of another type');
}

/** Likewise, as a value is null. */
export function isNone(): never {
  throw new UnplannedError('a null that may not be');
}

/** The type without the mark that its values are not null. */
export const nullable = (type: GraphQLOutputType): GraphQLOutputType =>
  isNonNullType(type) ? type.ofType : type;

/** Makes the function that completes a leaf's value. */
export const completeLeaf =
  (type: GraphQLLeafType, isNonNull: boolean): ((value: unknown) => unknown) =>
  (value) => {
    if (value == null) return isNonNull ? isNone() : null;
    if (typeof value === 'function') unplanned();
    if (value instanceof Error) throw new UnplannedError('a resolver failed');
    if (typeof value === 'object' && 'then' in value) unplanned();
    return type.coerceOutputValue(value) ?? unplanned();
  };

/** Types that are told apart by asking each of them are not planned for. */
export function typeResolver(
  type: GraphQLAbstractType,
): (value: unknown, context: unknown, info: GraphQLResolveInfo) => unknown {
  const { resolveType } = type;
  if (resolveType == null) throw new UnplannedError('a value of another type');
  return (value, context, info) => resolveType(value, context, info, type);
}
