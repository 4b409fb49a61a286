import {
  type ExecutionArgs,
  type FragmentDefinitionNode,
  type GraphQLNamedType,
  getNamedType,
  getNullableType,
  getOperationAST,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  type SelectionSetNode,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';

/** What this plugin needs of an operation's context. */
export interface PrefetchContext {
  prefetch(lists: readonly string[]): void;
}

/**
 * Tells a query's context, before anything is read, which lists its fields are going to need, so that three levels of
 * fields cost one round trip. A field names its list in its extensions, as `reads`. Only fields beneath a list count: the
 * one item of a look-up may turn out to be absent.
 */
export function usePrefetch(): Plugin<PrefetchContext> {
  const known = new WeakMap<OperationDefinitionNode, readonly string[]>();
  return {
    onExecute({ args }) {
      const operation = getOperationAST(args.document, args.operationName);
      if (operation?.operation !== OperationTypeNode.QUERY) return;
      let lists = known.get(operation);
      if (lists === undefined) {
        lists = [...listsOf(args, operation)];
        known.set(operation, lists);
      }
      args.contextValue.prefetch(lists);
    },
  };
}

function listsOf({ schema, document }: ExecutionArgs, operation: OperationDefinitionNode): Set<string> {
  const found = new Set<string>();
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }

  const looked = new Set<string>();
  const look = (set: SelectionSetNode, type: GraphQLNamedType | undefined, beneathList: boolean): void => {
    for (const selection of set.selections) {
      // What is asked for on a condition is read when it is needed.
      if (selection.directives !== undefined && selection.directives.length > 0) continue;
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        const fragment = fragments.get(selection.name.value);
        const place = `${selection.name.value} ${beneathList}`;
        if (fragment === undefined || looked.has(place)) continue;
        looked.add(place);
        look(fragment.selectionSet, schema.getType(fragment.typeCondition.name.value), beneathList);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        const name = selection.typeCondition?.name.value;
        look(selection.selectionSet, name === undefined ? type : schema.getType(name), beneathList);
      } else {
        const field =
          isObjectType(type) || isInterfaceType(type) ? type.getFields()[selection.name.value] : undefined;
        if (field === undefined || selection.selectionSet === undefined) continue;
        const list = field.extensions['reads'];
        if (beneathList && typeof list === 'string') found.add(list);
        look(
          selection.selectionSet,
          getNamedType(field.type),
          beneathList || isListType(getNullableType(field.type)),
        );
      }
    }
  };

  look(operation.selectionSet, schema.getQueryType() ?? undefined, false);
  return found;
}
