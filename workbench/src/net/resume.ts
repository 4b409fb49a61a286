import { type FieldNode, Kind, parse, type SelectionSetNode, type ValueNode } from 'graphql';
import type { Operation } from './result.ts';

/**
 * Writes a cursor where the operation names the event that it begins after: into its variable, or into its text.
 *
 * @returns undefined where the subscribed field has no argument `after`.
 */
export function beginningAt(operation: Operation, cursor: string): Operation | undefined {
  const { query, variables } = operation;
  const after = afterOf(subscribedField(operation));
  if (after === undefined) return undefined;
  if (after.kind === Kind.VARIABLE) {
    return { ...operation, variables: { ...variables, [after.name.value]: cursor } };
  }
  const { start = 0, end = 0 } = after.loc ?? {};
  return { ...operation, query: query.slice(0, start) + JSON.stringify(cursor) + query.slice(end) };
}

/** Subscriptions that begin with what is so at that moment: they come back without a cursor. */
const STATUSES: readonly string[] = ['cepStatus', 'transactionStatus'];

/** Whether a stream loses nothing where its socket is cut: each event tells its cursor, and the operation takes one. */
export function resumesOverSocket(operation: Operation): boolean {
  const field = subscribedField(operation);
  const tellsCursor = field?.selectionSet?.selections.some(
    (one) => one.kind === Kind.FIELD && one.name.value === 'cursor' && one.alias === undefined,
  );
  return (tellsCursor && afterOf(field) !== undefined) || STATUSES.includes(field?.name.value ?? '');
}

/** Other operations and nested lists have an `after` of their own. */
const afterOf = (field: FieldNode | undefined): ValueNode | undefined =>
  field?.arguments?.find(({ name }) => name.value === 'after')?.value;

function subscribedField({ query, operationName }: Operation): FieldNode | undefined {
  const { definitions } = parse(query);
  const operations = definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  const operation = operations.find(({ name }) => name?.value === operationName) ?? operations[0];
  const fieldIn = ({ selections: [selection] }: SelectionSetNode): FieldNode | undefined => {
    if (selection === undefined || selection.kind === Kind.FIELD) return selection;
    if (selection.kind === Kind.INLINE_FRAGMENT) return fieldIn(selection.selectionSet);
    const fragment = definitions.find(
      (one) => one.kind === Kind.FRAGMENT_DEFINITION && one.name.value === selection.name.value,
    );
    return fragment?.kind === Kind.FRAGMENT_DEFINITION ? fieldIn(fragment.selectionSet) : undefined;
  };
  return operation && fieldIn(operation.selectionSet);
}
