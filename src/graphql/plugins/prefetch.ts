import {
  type GraphQLNamedType,
  getNamedType,
  getNullableType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  OperationTypeNode,
  type SelectionSetNode,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { type PreparedOperation, preparedOperation } from '../documents/prepared-operation.ts';

/** What this plugin needs of an operation's context. */
export interface PrefetchContext {
  readonly reads: { prefetch(lists: readonly string[]): void };
}

/**
 * Tells a query's context, before anything is read, which lists its fields are going to need, so that three levels of
 * fields cost one round trip. A field names its list in its extensions, as `reads`. Only fields beneath a list count: the
 * one item of a look-up may turn out to be absent.
 */
export function usePrefetch(): Plugin<PrefetchContext> {
  return {
    onExecute({ args }) {
      const operation = preparedOperation(args);
      if (operation?.type === OperationTypeNode.QUERY)
        args.contextValue.reads.prefetch(operation.derived(listsOf));
    },
  };
}

function listsOf({ node: operation, document: { schema, fragments } }: PreparedOperation): readonly string[] {
  const found = new Set<string>();
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
  return [...found];
}
