import type { DocumentNode, GraphQLSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { type PreparedOperation, preparedOperation } from '../documents/prepared-operation.ts';

/** What came with a request, and is kept as long as what it began. */
interface RequestContext {
  readonly params?: object | undefined;
}

const declaredBy = ({ node }: PreparedOperation): ReadonlySet<string> =>
  new Set(node.variableDefinitions?.map(({ variable }) => variable.name.value));

/**
 * Takes out of a request's variables, in place, what its operation does not declare. A stream keeps them as long as it lasts, and
 * so does what was parsed with them: to leave them out of a copy would free nothing.
 */
export function dropUndeclared(
  operation: PreparedOperation | undefined,
  variables: Readonly<Record<string, unknown>> | null | undefined,
): void {
  if (variables == null) return;
  const declared = operation?.derived(declaredBy);
  for (const name of Object.keys(variables)) {
    if (declared?.has(name) !== true) Reflect.deleteProperty(variables, name);
  }
}

/** Drops what an operation does not ask for before anything of it is kept. Must stand before all plugins that read variables. */
export function useDeclaredVariables(): Plugin<RequestContext> {
  const drop = (args: {
    readonly schema: GraphQLSchema;
    readonly document: DocumentNode;
    readonly operationName?: string | null | undefined;
    readonly variableValues?: unknown;
    readonly contextValue: RequestContext;
  }): void => {
    const { variableValues, contextValue } = args;
    // The transports have checked that they are an object, where there are any.
    dropUndeclared(preparedOperation(args), variableValues as Readonly<Record<string, unknown>> | undefined);
    if (contextValue.params !== undefined) Object.assign(contextValue.params, { extensions: undefined });
  };
  return {
    onExecute({ args }) {
      drop(args);
    },
    onSubscribe({ args }) {
      drop(args);
    },
  };
}
