import { Kind, OperationTypeNode, visit } from 'graphql';
import type { PreparedOperation } from '../../graphql/plugins/prepared-operation.ts';

/** What a subscription asks, and of whom. */
export interface StreamRequest {
  readonly operation: PreparedOperation;
  readonly variables: Readonly<Record<string, unknown>> | null | undefined;
  readonly credential: string;
}

/** A stream that others may ask for as well. */
export interface StreamKey {
  /** Subscriptions with the same one get the same result of every event. */
  readonly key: string;
  /** Whether it continues from a place of its own, the field's argument `after`. */
  readonly resumes: boolean;
}

/** Name of the variable that says where to continue; null when the document leaves `after` out. */
type After = string | null;

/**
 * Tells which subscriptions are the same but for where they continue: those of one credential, one document and one set
 * of variables, whose field says in its extensions, as `fansOut`, that an event is all that its results depend on.
 */
export function streamKey({ operation, variables, credential }: StreamRequest): StreamKey | undefined {
  const after = operation.derived(afterOf);
  if (after === undefined) return undefined;
  const { [after ?? '']: place, ...others } = variables ?? {};
  return {
    key: `${operation.id} ${JSON.stringify(others)} ${credential}`,
    resumes: place !== undefined && place !== null,
  };
}

/** Undefined when the operation cannot be shared, or where it continues is not said by a variable of its own. */
function afterOf({ type, node: operation, document }: PreparedOperation): After | undefined {
  if (type !== OperationTypeNode.SUBSCRIPTION) return undefined;
  const [root] = operation.selectionSet.selections;
  if (root?.kind !== Kind.FIELD || (root.directives ?? []).length > 0) return undefined;
  const field = document.schema.getSubscriptionType()?.getFields()[root.name.value];
  if (field?.extensions['fansOut'] !== true) return undefined;
  const argument = root.arguments?.find(({ name }) => name.value === 'after');
  if (argument === undefined) return null;
  if (argument.value.kind !== Kind.VARIABLE) return undefined;
  const name = argument.value.name.value;
  const definition = operation.variableDefinitions?.find(({ variable }) => variable.name.value === name);
  if (definition?.defaultValue !== undefined) return undefined;
  let uses = 0;
  visit(document.node, {
    Variable(node) {
      if (node.name.value === name) uses += 1;
    },
  });
  // Once where it is defined, and once here.
  return uses === 2 ? name : undefined;
}
