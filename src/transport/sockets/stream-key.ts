import {
  type DocumentNode,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  visit,
} from 'graphql';

/** What a subscription asks, and of whom. */
export interface StreamRequest {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operationName: string | null | undefined;
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
export function createStreamKeys(): (request: StreamRequest) => StreamKey | undefined {
  const analysed = new WeakMap<
    OperationDefinitionNode,
    { readonly after: After; readonly id: number } | false
  >();
  let count = 0;
  return ({ schema, document, operationName, variables, credential }) => {
    const operation = getOperationAST(document, operationName);
    if (operation?.operation !== OperationTypeNode.SUBSCRIPTION) return undefined;
    let known = analysed.get(operation);
    if (known === undefined) {
      const after = afterOf(schema, document, operation);
      count += 1;
      known = after === undefined ? false : { after, id: count };
      analysed.set(operation, known);
    }
    if (known === false) return undefined;
    const { [known.after ?? '']: after, ...others } = variables ?? {};
    return {
      key: `${known.id} ${JSON.stringify(others)} ${credential}`,
      resumes: after !== undefined && after !== null,
    };
  };
}

/** Undefined when the operation cannot be shared, or where it continues is not said by a variable of its own. */
function afterOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): After | undefined {
  const [root] = operation.selectionSet.selections;
  if (root?.kind !== Kind.FIELD || (root.directives ?? []).length > 0) return undefined;
  const field = schema.getSubscriptionType()?.getFields()[root.name.value];
  if (field?.extensions['fansOut'] !== true) return undefined;
  const argument = root.arguments?.find(({ name }) => name.value === 'after');
  if (argument === undefined) return null;
  if (argument.value.kind !== Kind.VARIABLE) return undefined;
  const name = argument.value.name.value;
  const definition = operation.variableDefinitions?.find(({ variable }) => variable.name.value === name);
  if (definition?.defaultValue !== undefined) return undefined;
  let uses = 0;
  visit(document, {
    Variable(node) {
      if (node.name.value === name) uses += 1;
    },
  });
  // Once where it is defined, and once here.
  return uses === 2 ? name : undefined;
}
