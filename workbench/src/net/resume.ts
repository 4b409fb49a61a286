import { type FieldNode, Kind, parse, type SelectionSetNode, type ValueNode } from 'graphql';
import type { Operation } from './result.ts';

/**
 * Writes a cursor where the operation names the event that it begins after: into its variable, or into its text.
 *
 * @returns undefined where the subscribed field has no argument `after`.
 */
export function beginningAt(operation: Operation, cursor: string): Operation | undefined {
  const { query, variables } = operation;
  const after = afterOf(operation);
  if (after === undefined) return undefined;
  if (after.kind === Kind.VARIABLE) {
    return { ...operation, variables: { ...variables, [after.name.value]: cursor } };
  }
  const { start = 0, end = 0 } = after.loc ?? {};
  return { ...operation, query: query.slice(0, start) + JSON.stringify(cursor) + query.slice(end) };
}

/** The value of `after` of the field that is subscribed to. Other operations and nested lists have an `after` of their own. */
function afterOf({ query, operationName }: Operation): ValueNode | undefined {
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
  return (
    operation && fieldIn(operation.selectionSet)?.arguments?.find(({ name }) => name.value === 'after')?.value
  );
}
