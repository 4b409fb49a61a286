import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isCompositeType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  visit,
} from 'graphql';
import { dependsOnValueAlone } from './event-only.ts';

/** What a subscription asks, and of whom. */
export interface StreamRequest {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operationName: string | null | undefined;
  readonly variables: Readonly<Record<string, unknown>> | null | undefined;
  readonly credential: string;
  /** The same for callers who may see the same of the client; undefined where the caller is not known. */
  readonly visibility: string | undefined;
}

/** A stream that others may ask for as well. */
export interface StreamKey {
  /** Subscriptions with the same one get the same result of every event. */
  readonly key: string;
  /** Whether it continues from a place of its own, the field's argument `after`. */
  readonly resumes: boolean;
  /** Whether it may be shared with other credentials, as nothing in it is read under one. */
  readonly ofAnyCredential: boolean;
}

/** Name of the variable that says where to continue; null when the document leaves `after` out. */
type After = string | null;

/**
 * Tells which subscriptions are the same but for where they continue: those of one document and one set of variables,
 * whose field says in its extensions, as `fansOut`, that what it shows begins with an event. Where the selection follows
 * from the event alone, they are the same for all callers who may see the same; otherwise for one credential.
 */
export function createStreamKeys(): (request: StreamRequest) => StreamKey | undefined {
  const analysed = new WeakMap<
    OperationDefinitionNode,
    { readonly after: After; readonly id: number; readonly ofEvent: boolean } | false
  >();
  let count = 0;
  return ({ schema, document, operationName, variables, credential, visibility }) => {
    const operation = getOperationAST(document, operationName);
    if (operation?.operation !== OperationTypeNode.SUBSCRIPTION) return undefined;
    let known = analysed.get(operation);
    if (known === undefined) {
      const after = afterOf(schema, document, operation);
      count += 1;
      known = after !== undefined && { after, id: count, ofEvent: isOfEvent(schema, document, operation) };
      analysed.set(operation, known);
    }
    if (known === false) return undefined;
    const { [known.after ?? '']: after, ...others } = variables ?? {};
    const ofAnyCredential = known.ofEvent && visibility !== undefined;
    const whose = ofAnyCredential ? `for ${visibility}` : `by ${credential}`;
    return {
      key: `${known.id} ${JSON.stringify(others)} ${whose}`,
      resumes: after !== undefined && after !== null,
      ofAnyCredential,
    };
  };
}

function isOfEvent(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): boolean {
  const [root] = operation.selectionSet.selections;
  if (root?.kind !== Kind.FIELD || root.selectionSet === undefined) return false;
  const field = schema.getSubscriptionType()?.getFields()[root.name.value];
  const type = field && getNamedType(field.type);
  return isCompositeType(type) && dependsOnValueAlone(schema, document, type, root.selectionSet);
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
