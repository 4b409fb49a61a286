import {
  type FragmentDefinitionNode,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isUnionType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

/** How many objects a field of introspection gives, by its name; one where it is not named. */
type Sizes = Readonly<Record<string, number>>;

/** What the lists of introspection hold in a schema. */
export interface IntrospectionSizes {
  /** Beneath `types`, which gives every type once. */
  readonly average: Sizes;
  /** Beneath a type that was chosen. */
  readonly largest: Sizes;
}

/** How many types `ofType` gives, on average: one for a list and for what is not null, else none. */
const WRAPPED = 0.6;

const known = new WeakMap<GraphQLSchema, IntrospectionSizes>();

/** The sizes of a schema, which are counted once. */
export function introspectionSizes(schema: GraphQLSchema): IntrospectionSizes {
  const sizes = known.get(schema) ?? sizesOf(schema);
  known.set(schema, sizes);
  return sizes;
}

function sizesOf(schema: GraphQLSchema): IntrospectionSizes {
  const types = Object.values(schema.getTypeMap());
  const composite = types.filter((type) => isObjectType(type) || isInterfaceType(type));
  const fields = composite.flatMap((type) => Object.values(type.getFields()));
  const lists: Readonly<Record<string, readonly number[]>> = {
    fields: composite.map((type) => Object.keys(type.getFields()).length),
    inputFields: types.filter(isInputObjectType).map((type) => Object.keys(type.getFields()).length),
    enumValues: types.filter(isEnumType).map((type) => type.getValues().length),
    interfaces: composite.map((type) => type.getInterfaces().length),
    possibleTypes: types
      .filter((type) => isUnionType(type) || isInterfaceType(type))
      .map((type) => schema.getPossibleTypes(type).length),
  };
  const args = fields.map((field) => field.args.length);
  const always = { types: types.length, directives: schema.getDirectives().length, ofType: WRAPPED };
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  const largest = (numbers: readonly number[]) => Math.max(0, ...numbers);
  return {
    average: {
      ...always,
      args: sum(args) / fields.length,
      ...Object.fromEntries(
        Object.entries(lists).map(([name, counts]) => [name, sum(counts) / types.length]),
      ),
    },
    largest: {
      ...always,
      args: largest(args),
      ...Object.fromEntries(Object.entries(lists).map(([name, counts]) => [name, largest(counts)])),
    },
  };
}

/**
 * How many objects the answer to an operation's introspection holds. Each fragment is looked at once, however often it is
 * spread, so that a small document cannot cost much to measure.
 */
export function introspectionCost(
  { average, largest }: IntrospectionSizes,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  operation: OperationDefinitionNode,
): number {
  const known = new Map<string, number>();

  const ofFragment = (name: string, sizes: Sizes | undefined): number => {
    const place = `${name} ${sizes === undefined ? '' : sizes === average}`;
    const cost = known.get(place);
    if (cost !== undefined) return cost;
    // One within itself, which validation refuses, counts once.
    known.set(place, 0);
    const fragment = fragments.get(name);
    const found = fragment === undefined ? 0 : ofSelections(fragment.selectionSet, sizes);
    known.set(place, found);
    return found;
  };

  /** @param sizes of the lists beneath; undefined outside of introspection. */
  const ofSelections = ({ selections }: SelectionSetNode, sizes: Sizes | undefined): number => {
    let sum = 0;
    for (const selection of selections) {
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        sum += ofFragment(selection.name.value, sizes);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        sum += ofSelections(selection.selectionSet, sizes);
      } else if (selection.selectionSet !== undefined) {
        const name = selection.name.value;
        if (sizes === undefined && name !== '__schema' && name !== '__type') continue;
        const beneath = name === 'types' || (CHILDREN.has(name) && sizes === average) ? average : largest;
        sum += (sizes?.[name] ?? 1) * (1 + ofSelections(selection.selectionSet, beneath));
      }
    }
    return sum;
  };

  return Math.ceil(ofSelections(operation.selectionSet, undefined));
}

/** What is part of a type itself, and no other type. */
const CHILDREN: ReadonlySet<string> = new Set(['fields', 'inputFields', 'args', 'enumValues']);
