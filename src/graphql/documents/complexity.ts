import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type NameNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { DEFAULT_PAGE, MAX_PAGE } from '../../resolvers/connection.ts';

/** How large an operation is. */
export interface Complexity {
  /** The longest chain of fields, introspection aside. */
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  /** Objects that the answer may hold: every object field counts 1, times the page sizes above it. */
  readonly cost: number;
  /** The connections whose pages make the dearest part of it, outermost first, such as `instruments(first: 100)`. */
  readonly pages: readonly string[];
}

/**
 * What a connection that is asked for without a page size counts as beneath a list, where the page is that of each item: most hold a few. An answer that
 * turns out to hold more than it may is cut off while it is made.
 */
const DEFAULT_NESTED_PAGE = 10;
/** The argument of a list that holds one object for each of its values. */
const ONE_EACH = 'ids';
/** What a list without pages, such as `banks`, is taken to hold. */
const UNPAGED_LIST = 100;

/** The same of a part of an operation. */
interface Part extends Complexity {
  /** What it costs besides, for each item of the page that the connection around it may hold. */
  readonly costOfItem: number;
}

const NOTHING: Part = { depth: 0, aliases: 0, directives: 0, cost: 0, costOfItem: 0, pages: [] };

type Variables = Readonly<Record<string, unknown>>;

/**
 * Measures what one operation of a document asks for. Each fragment is measured once, however often it is spread, so that
 * a small document cannot cost much to measure; a fragment within itself, which validation refuses, counts once.
 *
 * @param variables values of the operation's variables; a page size that they leave open counts as one that nobody wrote.
 */
export function complexityOf(
  schema: GraphQLSchema,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  operation: OperationDefinitionNode,
  variables: Variables,
): Complexity {
  const measure = new Measure(schema, fragments, { ...defaultsOf(operation), ...variables });
  const root = schema.getRootType(operation.operation) ?? undefined;
  const { costOfItem, ...whole } = measure.selections(operation.selectionSet, root, false);
  return {
    ...whole,
    cost: whole.cost + costOfItem,
    directives: whole.directives + (operation.directives?.length ?? 0),
  };
}

/**
 * One measuring of one operation. `nested` is true beneath a list. How many items a page may hold is known only where its connection
 * is asked for, so a fragment is measured for one item, and its connection multiplies that.
 */
class Measure {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #values: Variables;
  readonly #measured = new Map<string, Part>();

  constructor(
    schema: GraphQLSchema,
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    values: Variables,
  ) {
    this.#schema = schema;
    this.#fragments = fragments;
    this.#values = values;
  }

  selections(set: SelectionSetNode, type: GraphQLNamedType | undefined, nested: boolean): Part {
    let sum = NOTHING;
    for (const selection of set.selections) {
      const found = this.#selection(selection, type, nested);
      const directives = found.directives + (selection.directives?.length ?? 0);
      sum = plus(sum, { ...found, directives });
    }
    return sum;
  }

  /** Without the directives of the selection itself. */
  #selection(selection: SelectionNode, type: GraphQLNamedType | undefined, nested: boolean): Part {
    if (selection.kind === Kind.FIELD) return this.#field(selection, type, nested);
    if (selection.kind === Kind.FRAGMENT_SPREAD) return this.#fragment(selection.name.value, nested);
    const name = selection.typeCondition?.name.value;
    const on = name === undefined ? type : this.#schema.getType(name);
    return this.selections(selection.selectionSet, on, nested);
  }

  #fragment(name: string, nested: boolean): Part {
    // What a page counts that nobody has sized depends on where the fragment is spread.
    const key = `${name} ${nested}`;
    const known = this.#measured.get(key);
    if (known !== undefined) return known;
    this.#measured.set(key, NOTHING);
    const fragment = this.#fragments.get(name);
    if (fragment === undefined) return NOTHING;
    const type = this.#schema.getType(fragment.typeCondition.name.value);
    const inner = this.selections(fragment.selectionSet, type, nested);
    const found = { ...inner, directives: inner.directives + (fragment.directives?.length ?? 0) };
    this.#measured.set(key, found);
    return found;
  }

  #field(
    { name: { value: name }, alias, arguments: args = [], selectionSet }: FieldNode,
    type: GraphQLNamedType | undefined,
    nested: boolean,
  ): Part {
    const aliases = alias === undefined ? 0 : 1;
    if (selectionSet === undefined || name.startsWith('__')) return { ...NOTHING, depth: 1, aliases };
    const field = fieldOf(type, name);
    const named = field && getNamedType(field.type);
    const isConnection = named?.name.endsWith('Connection') === true;
    const size = isConnection ? pageSize(args, this.#values) : undefined;
    const inner = this.selections(selectionSet, named, nested || isListField(field));
    const page = isConnection ? (size ?? (nested ? DEFAULT_NESTED_PAGE : DEFAULT_PAGE)) : 1;
    const cost = 1 + inner.cost + page * inner.costOfItem;
    const times = isConnection ? 1 : (idsIn(args, this.#values) ?? listSize(field));
    return {
      depth: inner.depth + 1,
      aliases: inner.aliases + aliases,
      directives: inner.directives,
      cost: times === 'page' ? 0 : times * cost,
      costOfItem: times === 'page' ? cost : 0,
      pages: isConnection ? [pageName(name, size), ...inner.pages] : inner.pages,
    };
  }
}

/** The variables that a document's costs depend on: those that stand as page sizes, or for the ids of a list. */
export function pageSizeVariables(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    Argument({ name, value }) {
      if ((isPageSize(name) || name.value === ONE_EACH) && value.kind === Kind.VARIABLE)
        names.add(value.name.value);
    },
  });
  return [...names];
}

const isPageSize = ({ value }: NameNode): boolean => value === 'first' || value === 'last';

/** What variables are when they are left out, as far as numbers and the lengths of lists go. */
function defaultsOf({ variableDefinitions = [] }: OperationDefinitionNode): Variables {
  return Object.fromEntries(
    variableDefinitions.flatMap(({ variable, defaultValue }): [string, unknown][] => {
      if (defaultValue?.kind === Kind.INT) return [[variable.name.value, defaultValue.value]];
      return defaultValue?.kind === Kind.LIST ? [[variable.name.value, defaultValue.values]] : [];
    }),
  );
}

const plus = (a: Part, b: Part): Part => ({
  depth: Math.max(a.depth, b.depth),
  aliases: a.aliases + b.aliases,
  directives: a.directives + b.directives,
  cost: a.cost + b.cost,
  costOfItem: a.costOfItem + b.costOfItem,
  pages: isDearer(b, a) ? b.pages : a.pages,
});

/** What costs for each item of a page counts first. */
const isDearer = (a: Part, b: Part): boolean =>
  a.costOfItem === b.costOfItem ? a.cost > b.cost : a.costOfItem > b.costOfItem;

const pageName = (field: string, size: number | undefined): string =>
  size === undefined ? `${field} (no "first")` : `${field}(first: ${size})`;

function isListField(field: GraphQLField<unknown, unknown> | undefined): boolean {
  return field !== undefined && isListType(isNonNullType(field.type) ? field.type.ofType : field.type);
}

function fieldOf(
  type: GraphQLNamedType | undefined,
  name: string,
): GraphQLField<unknown, unknown> | undefined {
  return isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined;
}

/** A connection's `edges` and `nodes` hold a page; any other list is taken to be a whole one. */
function listSize(field: GraphQLField<unknown, unknown> | undefined): number | 'page' {
  if (field === undefined || !isListField(field)) return 1;
  return field.name === 'edges' || field.name === 'nodes' ? 'page' : UNPAGED_LIST;
}

interface Argument {
  readonly name: NameNode;
  readonly value: {
    readonly kind: string;
    readonly value?: unknown;
    readonly values?: readonly unknown[];
    readonly name?: { readonly value: string };
  };
}

/** How many ids are written, where a field has such an argument; one alone stands for a list of one. More than are allowed are refused. */
function idsIn(args: readonly Argument[], variables: Variables): number | undefined {
  const value = args.find(({ name }) => name.value === ONE_EACH)?.value;
  if (value === undefined) return undefined;
  const resolved = value.kind === Kind.VARIABLE ? variables[value.name?.value ?? ''] : value.values;
  return Array.isArray(resolved) ? Math.min(resolved.length, MAX_PAGE) : 1;
}

/** The page size that is written, the larger of two; undefined where none is, and where what is written is none. */
function pageSize(args: readonly Argument[], variables: Variables): number | undefined {
  let written: number | undefined;
  for (const { name, value } of args) {
    if (!isPageSize(name)) continue;
    const resolved = value.kind === Kind.VARIABLE ? variables[value.name?.value ?? ''] : value.value;
    // Anything may stand in a variable; an object is not asked what number it is.
    const size = typeof resolved === 'number' || typeof resolved === 'string' ? Number(resolved) : Number.NaN;
    if (Number.isInteger(size) && size > 0) written = Math.max(written ?? 0, Math.min(size, MAX_PAGE));
  }
  return written;
}
