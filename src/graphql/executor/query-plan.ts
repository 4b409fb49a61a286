import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from 'graphql';

/** Fields of all objects that a plan may hold. Fragments can be spread to more than any answer should have. */
const MAX_FIELDS = 2_000;

/** What a plan takes for each of its fields, in bytes, code included. Measured. */
const BYTES_PER_FIELD = 2_000;

/** A query that is not planned, or an execution that is not as planned: graphql-js knows what becomes of it. */
export class UnplannedError extends Error {}

/** One execution, as the functions of a plan see it. */
export interface PlanRun {
  readonly context: unknown;
  /** Arguments of the fields whose arguments depend on variables, by their place in {@link QueryPlan.argumentsOf}. */
  readonly args: readonly object[];
  /** What the resolver of a field is told about it, by its place in {@link QueryPlan.fields}. */
  info(field: number): GraphQLResolveInfo;
  /** Puts what a promise holds to its place in the answer, completed. */
  wait(promise: PromiseLike<unknown>, target: object, key: string | number, complete: Complete): void;
}

/** Makes what stands in the answer of what a resolver has given. */
export type Complete = (value: unknown, run: PlanRun) => unknown;

/** A field that has a resolver, once for each place in the document. */
export interface PlannedField {
  readonly definition: GraphQLField<unknown, unknown>;
  readonly parentType: GraphQLObjectType;
  readonly nodes: readonly FieldNode[];
  /** Where it stands in the answer; undefined beneath a list, where that differs from item to item. */
  readonly path: GraphQLResolveInfo['path'] | undefined;
}

/** How one query is executed, with its conditions decided. */
export interface QueryPlan {
  /** Memory that it takes with the code made for it, as an upper estimate. */
  readonly bytes: number;
  readonly fields: readonly PlannedField[];
  readonly argumentsOf: readonly {
    readonly definition: PlannedField['definition'];
    readonly node: FieldNode;
  }[];
  /**
   * Makes the answer, but for what it waits for.
   *
   * @throws UnplannedError, or what a resolver throws, when the answer is not plain data without an error.
   */
  readonly execute: (root: unknown, run: PlanRun) => Record<string, unknown>;
}

/** The variables that decide what is included. */
export function conditionsOf(
  operation: OperationDefinitionNode,
  fragments: Iterable<FragmentDefinitionNode>,
): readonly string[] {
  const names = new Set<string>();
  for (const definition of [operation, ...fragments]) {
    visit(definition, {
      Directive({ arguments: given = [] }) {
        for (const { value } of given) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
      },
    });
  }
  return [...names];
}

/**
 * Plans a valid query: one function for each object that it selects, which reads plain properties in place. Only data that
 * is as the schema says is planned for. Whatever else comes (an error, a null where none may be, a value that is not of
 * its type) ends the execution, and graphql-js says what it means.
 *
 * @param conditions the values of the variables in `@skip` and `@include`.
 * @throws UnplannedError for introspection, other directives, what is too large, and fields that may not run twice.
 */
export function planQuery(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  conditions: ReadonlyMap<string, boolean>,
): QueryPlan {
  const root = schema.getQueryType();
  if (root == null || (operation.directives ?? []).length > 0) throw new UnplannedError();
  const planner = new Planner(schema, fragments, conditions);
  return planner.plan(root, operation.selectionSet);
}

interface Place {
  readonly path: PlannedField['path'];
  readonly beneathList: boolean;
}

class Planner {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #conditions: ReadonlyMap<string, boolean>;
  readonly #fields: PlannedField[] = [];
  readonly #argumentsOf: QueryPlan['argumentsOf'][number][] = [];
  /** What the generated functions use, by its place, under the name `h<place>`. */
  readonly #helpers: unknown[] = [];
  readonly #functions: string[] = [];
  #fieldCount = 0;

  constructor(
    schema: GraphQLSchema,
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    conditions: ReadonlyMap<string, boolean>,
  ) {
    this.#schema = schema;
    this.#fragments = fragments;
    this.#conditions = conditions;
  }

  plan(root: GraphQLObjectType, selectionSet: SelectionSetNode): QueryPlan {
    const execute = this.#objectFunction(root, [selectionSet], { path: undefined, beneathList: false });
    const names = this.#helpers.map((_, place) => `h${place}`);
    // Response names are GraphQL names and are quoted, so that no text of a document becomes code.
    const make = new Function(
      'unplanned',
      'forget',
      ...names,
      `${this.#functions.join('\n')}\nreturn ${execute};`,
    );
    return {
      bytes: BYTES_PER_FIELD * (1 + this.#fieldCount),
      fields: this.#fields,
      argumentsOf: this.#argumentsOf,
      execute: make(unplanned, forget, ...this.#helpers),
    };
  }

  #helper(value: unknown): string {
    this.#helpers.push(value);
    return `h${this.#helpers.length - 1}`;
  }

  /** Adds a function of a value and the run. */
  #function(body: string): string {
    const name = `f${this.#functions.length}`;
    this.#functions.push(`function ${name}(v, r) {${body}}`);
    return name;
  }

  /** The function that makes the answer's object of a source object. */
  #objectFunction(type: GraphQLObjectType, selectionSets: readonly SelectionSetNode[], place: Place): string {
    const properties: string[] = [];
    const statements: string[] = [];
    for (const [key, nodes] of this.#collect(type, selectionSets)) {
      this.#fieldCount += 1;
      const property = JSON.stringify(key);
      // As a key of a literal it would be taken for the prototype.
      if (key === '__proto__' || this.#fieldCount > MAX_FIELDS) throw new UnplannedError();
      const [first] = nodes;
      const name = first?.name.value ?? '';
      if (name === '__typename') {
        properties.push(`${property}: ${JSON.stringify(type.name)}`);
        continue;
      }
      const definition = name.startsWith('__') ? undefined : this.#schema.getField(type, name);
      if (definition === undefined) throw new UnplannedError();
      if (definition.resolve !== undefined && !this.#mayRunAgain(type, definition))
        throw new UnplannedError();
      // A resolver's arguments are coerced where it is called; a property is only read.
      if (definition.resolve === undefined && definition.args.length > 0) throw new UnplannedError();
      const path = place.beneathList ? undefined : { prev: place.path, key, typename: type.name };
      const field: PlannedField = { definition, parentType: type, nodes, path };
      const inner = { path, beneathList: place.beneathList };
      if (definition.resolve === undefined && isLeafType(nullable(definition.type))) {
        properties.push(`${property}: ${this.#leaf(definition.type, `v[${JSON.stringify(name)}]`)}`);
        continue;
      }
      const complete = this.#complete(definition.type, field, inner);
      const value =
        definition.resolve === undefined
          ? `v[${JSON.stringify(name)}]`
          : this.#call(field, definition.resolve);
      properties.push(`${property}: null`);
      // A promise is waited for before anything else can fail: it may be rejected with nobody listening otherwise.
      statements.push(
        `p = ${value};
        if (${isThenable('p')}) r.wait(p, t, ${property}, ${complete}); else t[${property}] = ${complete}(p, r);`,
      );
    }
    return this.#function(
      `let p;
      const t = {${properties.join(', ')}};
      ${statements.join('\n')}
      return t;`,
    );
  }

  /**
   * Whether a field's resolver may be called a second time, after a plan has been given up: where it leads to objects that are
   * marked as read once, or is a leaf of such an object.
   */
  #mayRunAgain(parent: GraphQLObjectType, { type }: GraphQLField<unknown, unknown>): boolean {
    const named = getNamedType(type);
    if (isObjectType(named)) return isReadOnce(named);
    return isAbstractType(named)
      ? this.#schema.getPossibleTypes(named).every(isReadOnce)
      : isReadOnce(parent);
  }

  /** The call of a field's resolver. */
  #call(field: PlannedField, resolve: GraphQLFieldResolver<unknown, unknown>): string {
    return `${this.#helper(resolve)}(v, ${this.#arguments(field)}, r.context, ${this.#info(field)})`;
  }

  #info(field: PlannedField): string {
    return `r.info(${this.#fields.push(field) - 1})`;
  }

  #arguments(field: PlannedField): string {
    const [node] = field.nodes;
    if (node === undefined) throw new UnplannedError();
    const { definition } = field;
    if (usesVariables(node)) return `r.args[${this.#argumentsOf.push({ definition, node }) - 1}]`;
    return this.#helper(Object.freeze(getArgumentValues(definition, node)));
  }

  /** What becomes of a value that a field without a resolver of its own exposes. */
  #leaf(type: GraphQLOutputType, value: string): string {
    const named = nullable(type) as GraphQLLeafType;
    const complete = this.#helper(completeLeaf(named, isNonNullType(type)));
    if (named.name !== 'String' && named.name !== 'ID') return `${complete}(${value})`;
    return `typeof (p = ${value}) === 'string' ? p : ${complete}(p)`;
  }

  /** The function that completes values of a type. */
  #complete(type: GraphQLOutputType, field: PlannedField, place: Place): string {
    const ofNull = isNonNullType(type) ? 'unplanned()' : 'null';
    const inner = nullable(type);
    if (isLeafType(inner)) return this.#helper(completeLeaf(inner, isNonNullType(type)));
    if (isListType(inner)) {
      const item = this.#complete(inner.ofType, field, { path: undefined, beneathList: true });
      return this.#function(
        `if (v == null) return ${ofNull};
        if (!Array.isArray(v)) unplanned();
        const t = [];
        let i = 0;
        try {
          for (; i < v.length; i += 1) {
            const p = v[i];
            if (${isThenable('p')}) { t.push(null); r.wait(p, t, i, ${item}); }
            else t.push(${item}(p, r));
          }
        } catch (error) {
          forget(v, i);
          throw error;
        }
        return t;`,
      );
    }
    const selectionSets = field.nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    const head = `if (v == null) return ${ofNull};
      if (typeof v !== 'object' || v instanceof Error) unplanned();`;
    const object = (of: GraphQLObjectType): string => {
      const make = this.#objectFunction(of, selectionSets, place);
      if (of.isTypeOf == null) return `return ${make}(v, r);`;
      const isTypeOf = `${this.#helper(of.isTypeOf)}(v, r.context, ${this.#info(field)})`;
      return `if (${isTypeOf} !== true) unplanned(); return ${make}(v, r);`;
    };
    if (isObjectType(inner)) return this.#function(`${head} ${object(inner)}`);
    if (!isAbstractType(inner)) throw new UnplannedError();
    const typeOf = this.#helper(typeResolver(inner));
    const cases = this.#schema
      .getPossibleTypes(inner)
      .map((possible) => `case ${JSON.stringify(possible.name)}: ${object(possible)}`);
    return this.#function(
      `${head} switch (${typeOf}(v, r.context, ${this.#info(field)})) {${cases.join('\n')} default: unplanned();}`,
    );
  }

  /** The fields that an object of a type has in the answer, in their order (GraphQL, "CollectFields"). */
  #collect(type: GraphQLObjectType, selectionSets: readonly SelectionSetNode[]): Map<string, FieldNode[]> {
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
        if (fragment === undefined || (fragment.directives ?? []).length > 0) throw new UnplannedError();
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
        throw new UnplannedError();
      included &&= holds === (name.value === 'include');
    }
    return included;
  }
}

/** The code that asks whether a value is a promise, in place: only there does V8 know what comes. */
const isThenable = (name: string): string => `${name} != null && typeof ${name}.then === 'function'`;

/** Lets promises of a list that nobody waits for any more be rejected. */
function forget(items: readonly unknown[], from: number): void {
  void Promise.allSettled(items.slice(from));
}

function unplanned(): never {
  throw new UnplannedError();
}

const isReadOnce = ({ extensions }: GraphQLObjectType): boolean => extensions['readOnce'] === true;

const nullable = (type: GraphQLOutputType): GraphQLOutputType => (isNonNullType(type) ? type.ofType : type);

const completeLeaf =
  (type: GraphQLLeafType, isNonNull: boolean): ((value: unknown) => unknown) =>
  (value) => {
    if (value == null) return isNonNull ? unplanned() : null;
    if (typeof value === 'function') unplanned();
    if (typeof value === 'object' && (value instanceof Error || 'then' in value)) unplanned();
    return type.coerceOutputValue(value) ?? unplanned();
  };

/** Types that are told apart by asking each of them are not planned for. */
function typeResolver(
  type: GraphQLAbstractType,
): (value: unknown, context: unknown, info: GraphQLResolveInfo) => unknown {
  const { resolveType } = type;
  if (resolveType == null) throw new UnplannedError();
  return (value, context, info) => resolveType(value, context, info, type);
}

function usesVariables(node: FieldNode): boolean {
  let uses = false;
  for (const argument of node.arguments ?? []) {
    visit(argument, {
      Variable() {
        uses = true;
      },
    });
  }
  return uses;
}
