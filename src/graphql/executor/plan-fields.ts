import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  isAbstractType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { UnplannedError } from './plan.ts';

/** The variables that decide what is included. */
export function conditionsOf(
  operation: OperationDefinitionNode,
  fragments: Iterable<FragmentDefinitionNode>,
): readonly string[] {
  const names = new Set<string>();
  for (const definition of [operation, ...fragments]) {
    visit(definition, {
      Directive({ arguments: args = [] }) {
        for (const { value } of args) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
      },
    });
  }
  return [...names];
}

/** Collects the fields of objects in one document whose conditions are decided. */
export class FieldCollector {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #conditions: ReadonlyMap<string, boolean>;

  constructor(
    schema: GraphQLSchema,
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    conditions: ReadonlyMap<string, boolean>,
  ) {
    this.#schema = schema;
    this.#fragments = fragments;
    this.#conditions = conditions;
  }

  /** The fields that an object of a type has in the answer, in their order (GraphQL, "CollectFields"). */
  collect(type: GraphQLObjectType, selectionSets: readonly SelectionSetNode[]): Map<string, FieldNode[]> {
    const fields = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    const collect = ({ selections }: SelectionSetNode): void => {
      for (const selection of selections) {
        if (!this.#isIncluded(selection)) continue;
        if (selection.kind === Kind.FIELD) {
          const key = selection.alias?.value ?? selection.name.value;
          const nodes = fields.get(key);
          if (nodes === undefined) fields.set(key, [selection]);
          else nodes.push(selection);
          continue;
        }
        if (selection.kind === Kind.INLINE_FRAGMENT) {
          if (this.#applies(selection.typeCondition?.name.value, type)) collect(selection.selectionSet);
          continue;
        }
        const { value: name } = selection.name;
        if (spread.has(name)) continue;
        spread.add(name);
        const fragment = this.#fragments.get(name);
        if (fragment === undefined || (fragment.directives ?? []).length > 0)
          throw new UnplannedError('a directive other than @skip and @include');
        if (this.#applies(fragment.typeCondition.name.value, type)) collect(fragment.selectionSet);
      }
    };
    selectionSets.forEach(collect);
    return fields;
  }

  #applies(condition: string | undefined, type: GraphQLObjectType): boolean {
    if (condition === undefined || condition === type.name) return true;
    const named = this.#schema.getType(condition);
    return isAbstractType(named) && this.#schema.isSubType(named, type);
  }

  #isIncluded({ directives = [] }: SelectionNode): boolean {
    let included = true;
    for (const { name, arguments: [{ value } = { value: undefined }] = [] } of directives) {
      const holds =
        value?.kind === Kind.VARIABLE
          ? this.#conditions.get(value.name.value)
          : value?.kind === Kind.BOOLEAN
            ? value.value
            : undefined;
      if (holds === undefined || (name.value !== 'skip' && name.value !== 'include'))
        throw new UnplannedError('a directive other than @skip and @include');
      included &&= holds === (name.value === 'include');
    }
    return included;
  }
}
