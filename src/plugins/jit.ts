import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
  type GraphQLType,
  getNamedType,
  getOperationAST,
  getVariableValues,
  isInputObjectType,
  type OperationDefinitionNode,
  OperationTypeNode,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { isPromise } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';

/** Operations whose compiled form is kept. */
const MAX_OPERATIONS = 500;

type Compiler = typeof import('graphql-jit');

type Result = ExecutionResult | Promise<ExecutionResult>;

/** How an operation is executed. */
export type Execute = (args: ExecutionArgs) => Result;

type Run = (root: unknown, context: unknown, variables: object) => Result;

/**
 * Runs queries as compiled functions. graphql-js stays the one reference for what an operation means: it runs mutations,
 * subscriptions, what has been seen only once, and what graphql-jit is known to treat otherwise. It also has the last
 * word on every error: a result with one is made again on graphql-js, over what the session has already read.
 *
 * @param interpret graphql-js' `execute`.
 */
export function createJit(interpret: Execute): Execute {
  const operations = new LRUCache<OperationDefinitionNode, 'seen' | 'interpreted' | Run>({
    max: MAX_OPERATIONS,
  });

  let compiler: Compiler | undefined;
  let loading = false;
  // It brings a hundred modules: a start does not wait for them, nor does the first query that could use them.
  const load = async (): Promise<void> => {
    compiler = await import('graphql-jit');
  };

  const runOf = (args: ExecutionArgs, operation: OperationDefinitionNode): Run | undefined => {
    const known = operations.get(operation);
    if (known === undefined) operations.set(operation, 'seen');
    if (known !== 'seen') return typeof known === 'function' ? known : undefined;
    if (compiler === undefined) {
      if (!loading) void load();
      loading = true;
      return undefined;
    }
    const run = compile(compiler, args.schema, args.document, operation);
    operations.set(operation, run ?? 'interpreted');
    return run;
  };

  return (args) => {
    const operation = getOperationAST(args.document, args.operationName);
    if (operation?.operation !== OperationTypeNode.QUERY) return interpret(args);
    const run = runOf(args, operation);
    if (run === undefined || !hasGoodVariables(args, operation)) return interpret(args);
    const settle = (result: ExecutionResult): Result =>
      result.errors === undefined ? result : interpret(args);
    const result = run(args.rootValue, args.contextValue, args.variableValues ?? {});
    return isPromise(result) ? result.then(settle) : settle(result);
  };
}

/** Whether the variables can be coerced. What is wrong with others, graphql-js says best. */
function hasGoodVariables(
  { schema, variableValues }: ExecutionArgs,
  { variableDefinitions = [] }: OperationDefinitionNode,
): boolean {
  if (variableDefinitions.length === 0) return true;
  return getVariableValues(schema, variableDefinitions, variableValues ?? {}).errors === undefined;
}

function compile(
  { compileQuery, isCompiledQuery }: Compiler,
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Run | undefined {
  if (!isFaithful(schema, document)) return undefined;
  // graphql-jit leaves marks in what it compiles, so it is given a copy.
  const copy = visit(document, { enter: (node) => ({ ...node }) });
  const compiled = compileQuery(schema, copy, operation.name?.value);
  // The declared result is that of an older graphql-js, of the same shape.
  return isCompiledQuery(compiled) ? (compiled.query as Run) : undefined;
}

/**
 * Whether graphql-jit means the same by a document as graphql-js does: it does not enforce `@oneOf` on variables, leaves
 * introspection aside, knows two directives, and mistakes conditions where there are fragments.
 */
function isFaithful(schema: GraphQLSchema, document: DocumentNode): boolean {
  let faithful = true;
  let conditions = false;
  let fragments = false;
  const types = new TypeInfo(schema);
  const doubtIf = (doubtful: boolean): void => {
    faithful &&= !doubtful;
  };
  visit(
    document,
    visitWithTypeInfo(types, {
      Directive({ name }) {
        conditions = true;
        doubtIf(name.value !== 'skip' && name.value !== 'include');
      },
      InlineFragment() {
        fragments = true;
      },
      FragmentDefinition() {
        fragments = true;
      },
      Field({ name }) {
        doubtIf(name.value.startsWith('__') && name.value !== '__typename');
      },
      VariableDefinition({ type }) {
        doubtIf(holdsOneOf(typeFromAST(schema, type)));
      },
      Argument() {
        doubtIf(holdsOneOf(types.getInputType()));
      },
    }),
  );
  return faithful && !(conditions && fragments);
}

function holdsOneOf(type: GraphQLType | null | undefined, above: readonly unknown[] = []): boolean {
  const named = type && getNamedType(type);
  if (!isInputObjectType(named) || above.includes(named)) return false;
  return (
    named.isOneOf ||
    Object.values(named.getFields()).some((field) => holdsOneOf(field.type, [...above, named]))
  );
}
