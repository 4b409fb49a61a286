import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  type OperationDefinitionNode,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { type PlannedField, type QueryPlan, UnplannedError } from './plan.ts';
import { FieldCollector } from './plan-fields.ts';
import { completeLeaf, forget, isNone, nullable, typeResolver, unplanned } from './plan-values.ts';

/** Fields of all objects that a plan may hold. Fragments can be spread to more than any answer should have. */
const MAX_FIELDS = 2_000;

/** What a plan takes for each of its fields, in bytes, code included. Measured. */
const BYTES_PER_FIELD = 2_000;

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
  if (root == null || (operation.directives ?? []).length > 0) {
    throw new UnplannedError('a directive other than @skip and @include');
  }
  const planner = new Planner(schema, new FieldCollector(schema, fragments, conditions));
  return planner.plan(root, operation.selectionSet);
}

interface Location {
  readonly path: PlannedField['path'];
  readonly beneathList: boolean;
}

class Planner {
  readonly #schema: GraphQLSchema;
  readonly #collector: FieldCollector;
  readonly #fields: PlannedField[] = [];
  readonly #argumentsOf: QueryPlan['argumentsOf'][number][] = [];
  /** What the generated functions use, by its index, under the name `h<index>`. */
  readonly #helpers: unknown[] = [];
  readonly #functions: string[] = [];
  #fieldCount = 0;

  constructor(schema: GraphQLSchema, collector: FieldCollector) {
    this.#schema = schema;
    this.#collector = collector;
  }

  plan(root: GraphQLObjectType, selectionSet: SelectionSetNode): QueryPlan {
    const execute = this.#objectFunction(root, [selectionSet], { path: undefined, beneathList: false });
    const names = this.#helpers.map((_, index) => `h${index}`);
    // Response names are GraphQL names and are quoted, so that no text of a document becomes code.
    const make = new Function(
      'unplanned',
      'isNone',
      'forget',
      ...names,
      `${this.#functions.join('\n')}\nreturn ${execute};`,
    );
    return {
      bytes: BYTES_PER_FIELD * (1 + this.#fieldCount),
      fields: this.#fields,
      argumentsOf: this.#argumentsOf,
      execute: make(unplanned, isNone, forget, ...this.#helpers),
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
  #objectFunction(
    type: GraphQLObjectType,
    selectionSets: readonly SelectionSetNode[],
    location: Location,
  ): string {
    const properties: string[] = [];
    const statements: string[] = [];
    for (const [key, nodes] of this.#collector.collect(type, selectionSets)) {
      this.#fieldCount += 1;
      const property = JSON.stringify(key);
      // As a key of a literal it would be taken for the prototype.
      if (key === '__proto__' || this.#fieldCount > MAX_FIELDS) throw new UnplannedError('too many fields');
      const [first] = nodes;
      const name = first?.name.value ?? '';
      if (name === '__typename') {
        properties.push(`${property}: ${JSON.stringify(type.name)}`);
        continue;
      }
      const definition = name.startsWith('__') ? undefined : this.#schema.getField(type, name);
      if (definition === undefined) throw new UnplannedError('introspection');
      if (definition.resolve !== undefined && !mayRunAgain(this.#schema, type, definition)) {
        throw new UnplannedError('a field that may run only once');
      }
      // A resolver's arguments are coerced where it is called; a property is only read.
      if (definition.resolve === undefined && definition.args.length > 0) {
        throw new UnplannedError('an argument');
      }
      const path = location.beneathList ? undefined : { prev: location.path, key, typename: type.name };
      const field: PlannedField = { definition, parentType: type, nodes, path };
      const inner = { path, beneathList: location.beneathList };
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

  /** The call of a field's resolver. */
  #call(field: PlannedField, resolve: GraphQLFieldResolver<unknown, unknown>): string {
    return `${this.#helper(resolve)}(v, ${this.#arguments(field)}, r.context, ${this.#info(field)})`;
  }

  #info(field: PlannedField): string {
    return `r.info(${this.#fields.push(field) - 1})`;
  }

  #arguments(field: PlannedField): string {
    const [node] = field.nodes;
    if (node === undefined) throw new UnplannedError('an argument');
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
  #complete(type: GraphQLOutputType, field: PlannedField, location: Location): string {
    const ofNull = isNonNullType(type) ? 'isNone()' : 'null';
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
      const make = this.#objectFunction(of, selectionSets, location);
      if (of.isTypeOf == null) return `return ${make}(v, r);`;
      const isTypeOf = `${this.#helper(of.isTypeOf)}(v, r.context, ${this.#info(field)})`;
      return `if (${isTypeOf} !== true) unplanned(); return ${make}(v, r);`;
    };
    if (isObjectType(inner)) return this.#function(`${head} ${object(inner)}`);
    if (!isAbstractType(inner)) throw new UnplannedError('a value of another type');
    const typeOf = this.#helper(typeResolver(inner));
    const cases = this.#schema
      .getPossibleTypes(inner)
      .map((possible) => `case ${JSON.stringify(possible.name)}: ${object(possible)}`);
    return this.#function(
      `${head} switch (${typeOf}(v, r.context, ${this.#info(field)})) {${cases.join('\n')} default: unplanned();}`,
    );
  }
}

/** The code that asks whether a value is a promise, in place: only there does V8 know what comes. */
const isThenable = (name: string): string => `${name} != null && typeof ${name}.then === 'function'`;

/**
 * Whether a field's resolver may be called a second time, after a plan has been given up: where it leads to objects that are marked
 * as read once, or is a leaf of such an object. A test holds that such a field reads nothing but the session.
 */
export function mayRunAgain(
  schema: GraphQLSchema,
  parent: GraphQLObjectType,
  { type }: GraphQLField<unknown, unknown>,
): boolean {
  const named = getNamedType(type);
  if (isObjectType(named)) return isReadOnce(named);
  return isAbstractType(named) ? schema.getPossibleTypes(named).every(isReadOnce) : isReadOnce(parent);
}

const isReadOnce = ({ extensions }: GraphQLObjectType): boolean => extensions['readOnce'] === true;

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
