import {
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { PreparedDocument } from '../../graphql/documents/prepared-operation.ts';

/**
 * True if the selection beneath a field depends on the field's value alone, so that it is the same for all who may see the
 * value. A field without a resolver is a property of its parent. A field with a resolver must say in its extensions, as
 * `ofParent`, that it reads nothing else; otherwise it counts as reading the REST service under the caller's credential.
 *
 * @param type of the value.
 */
export function dependsOnValueAlone(
  { schema, fragments }: PreparedDocument,
  type: GraphQLCompositeType,
  selected: SelectionSetNode,
): boolean {
  const seen = new Set<FragmentDefinitionNode>();

  const isOfValue = (parent: GraphQLCompositeType, { selections }: SelectionSetNode): boolean =>
    selections.every((selection) => {
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        const fragment = fragments.get(selection.name.value);
        if (fragment === undefined) return false;
        if (seen.has(fragment)) return true;
        seen.add(fragment);
        return isOfValue(typeNamed(schema, fragment.typeCondition.name.value, parent), fragment.selectionSet);
      }
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        const { typeCondition, selectionSet } = selection;
        return isOfValue(typeNamed(schema, typeCondition?.name.value, parent), selectionSet);
      }
      const name = selection.name.value;
      if (name === '__typename') return true;
      const types = isAbstractType(parent) ? schema.getPossibleTypes(parent) : [parent];
      return types.every((possible) => {
        const field = possible.getFields()[name];
        if (field === undefined) return false;
        if (field.resolve !== undefined && field.extensions['ofParent'] !== true) return false;
        const inner = getNamedType(field.type);
        return selection.selectionSet === undefined || !isCompositeType(inner)
          ? true
          : isOfValue(inner, selection.selectionSet);
      });
    });

  return isOfValue(type, selected);
}

function typeNamed(
  schema: GraphQLSchema,
  name: string | undefined,
  otherwise: GraphQLCompositeType,
): GraphQLCompositeType {
  const type = name === undefined ? undefined : schema.getType(name);
  return type !== undefined && isCompositeType(type) ? type : otherwise;
}
