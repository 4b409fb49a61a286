import { hash } from 'node:crypto';
import { getNamedType, isCompositeType, Kind, OperationTypeNode, visit } from 'graphql';
import type { Caller } from '../../auth/caller.ts';
import type { PreparedOperation } from '../../graphql/documents/prepared-operation.ts';
import { dependsOnValueAlone } from './event-only.ts';

/** What a subscription asks for, and who asks. */
export interface StreamRequest {
  readonly operation: PreparedOperation;
  readonly variables: Readonly<Record<string, unknown>> | null | undefined;
  readonly credential: string;
  /** Equal for callers who may see the same of the client; undefined if the caller is not known. */
  readonly visibility: string | undefined;
}

/** The key of a stream that several sockets may share. */
export interface StreamKey {
  /** Every event gives the same result to all subscriptions with this key. */
  readonly key: string;
  /** True if it resumes from a position of its own, the field's argument `after`. */
  readonly resumes: boolean;
  /** True if it may be shared between credentials, because nothing in it is read under one. */
  readonly ofAnyCredential: boolean;
}

/** Name of the variable that holds the position to resume from; null if the document leaves `after` out. */
type After = string | null;

/**
 * Returns the key of a subscription. It is equal for subscriptions that differ only in the position to resume from: those of
 * one document and one set of variables, whose field says in its extensions, as `fansOut`, that what it shows begins with an
 * event. If the selection depends on the event alone, the key is equal for all callers who may see the same; otherwise for
 * one credential.
 */
export function streamKey({
  operation,
  variables,
  credential,
  visibility,
}: StreamRequest): StreamKey | undefined {
  const after = operation.derived(afterOf);
  if (after === undefined) return undefined;
  const { [after ?? '']: position, ...others } = variables ?? {};
  const ofAnyCredential = visibility !== undefined && operation.derived(isOfEvent);
  const whose = ofAnyCredential ? `for ${visibility}` : `by ${credential}`;
  return {
    // Hashed, because the text may be long and is kept with each stream.
    key: hash('sha256', JSON.stringify([operation.id, others, whose]), 'base64url'),
    resumes: position !== undefined && position !== null,
    ofAnyCredential,
  };
}

/** Returns a text that is equal for callers who may see the same of the client. */
export const visibilityOf = ({ clientId, customerId = '', scopes }: Caller): string =>
  `${clientId} ${customerId} ${[...scopes].sort().join(' ')}`;

/** True if the selection depends on the event alone. */
function isOfEvent({ node, document }: PreparedOperation): boolean {
  const [root] = node.selectionSet.selections;
  if (root?.kind !== Kind.FIELD || root.selectionSet === undefined) return false;
  const field = document.schema.getSubscriptionType()?.getFields()[root.name.value];
  const type = field && getNamedType(field.type);
  return isCompositeType(type) && dependsOnValueAlone(document, type, root.selectionSet);
}

/** Returns undefined if the operation cannot be shared, or if the position to resume from is not in a variable of its own. */
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
  // The variable stands once in its definition, and once here.
  return uses === 2 ? name : undefined;
}
