import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { type Measure, measure, pageSizeVariables } from './complexity.ts';

/** What one operation may ask for at most. */
export interface Limits {
  /** Tokens of the document, before it is parsed. */
  readonly tokens: number;
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  /** Objects that the answer may hold (measure.ts). */
  readonly cost: number;
}

/** What an operation costs, by the values of the variables that the cost depends on. */
interface Costs {
  readonly sizes: readonly string[];
  readonly measured: Map<string, number>;
}

/** Combinations of page sizes whose cost is kept of one operation. */
const MAX_MEASURED = 100;
/** Values that take more characters than this are no page sizes. */
const MAX_KEY = 200;

const tooComplex = (message: string): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'TOO_COMPLEX' } });

/** How an operation that costs too much is made cheaper. */
const adviceOn = (pages: readonly string[]): string =>
  pages.length === 0
    ? ''
    : ` Its pages multiply each other: ${pages.join(' × ')}. Ask for fewer items with "first".`;

/**
 * Bounds documents over every transport: tokens while parsing, so that a huge one is refused before it costs anything;
 * depth, aliases and directives before validation, whose own cost grows with them; and the cost once the variables say
 * how large the pages are. The error says which limit, its value, and what the document has. Must stand behind plugins
 * that choose what executes.
 */
export function useLimits(limits: Limits): Plugin {
  const refuse = (name: keyof Omit<Measure, 'pages'>, had: number, advice = ''): GraphQLError[] =>
    had > limits[name]
      ? [tooComplex(`The operation's ${name} is ${had}; at most ${limits[name]} is allowed.${advice}`)]
      : [];

  const beyond = (schema: GraphQLSchema, document: DocumentNode): GraphQLError[] =>
    document.definitions.flatMap((definition) => {
      if (definition.kind !== Kind.OPERATION_DEFINITION) return [];
      const { depth, aliases, directives } = measure(schema, document, definition, {});
      return [...refuse('depth', depth), ...refuse('aliases', aliases), ...refuse('directives', directives)];
    });

  /** Documents are kept by the parser, and asked again: what was measured of one is kept with it. */
  const withinLimits = new WeakSet<DocumentNode>();
  const costs = new WeakMap<OperationDefinitionNode, Costs>();

  const tooCostly = (args: {
    readonly schema: GraphQLSchema;
    readonly document: DocumentNode;
    readonly operationName?: string | null | undefined;
    readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
  }): GraphQLError[] => {
    const { schema, document, variableValues } = args;
    const operation = getOperationAST(document, args.operationName);
    if (operation === null || operation === undefined) return [];
    let known = costs.get(operation);
    if (known === undefined) {
      known = { sizes: pageSizeVariables(document), measured: new Map() };
      costs.set(operation, known);
    }
    const given = variableValues ?? {};
    // A variable that is left out has its default, which one that is null has not.
    const key = JSON.stringify(known.sizes.map((name) => (Object.hasOwn(given, name) ? [given[name]] : 0)));
    let cost = known.measured.get(key);
    if (cost === undefined || cost > limits.cost) {
      const measured = measure(schema, document, operation, given);
      cost = measured.cost;
      if (known.measured.size < MAX_MEASURED && key.length < MAX_KEY) known.measured.set(key, cost);
      return refuse('cost', cost, adviceOn(measured.pages));
    }
    return [];
  };

  return {
    onParse({ setParseFn }) {
      setParseFn((source: string, options: object) => {
        try {
          return parse(source, { ...options, maxTokens: limits.tokens });
        } catch (error) {
          if (error instanceof GraphQLError && error.message.includes(`more than ${limits.tokens} tokens`)) {
            throw tooComplex(
              `The document has more tokens than the ${limits.tokens} that are allowed; reading stopped there.`,
            );
          }
          throw error;
        }
      });
    },
    onValidate({ params, setResult }) {
      if (withinLimits.has(params.documentAST)) return;
      const errors = beyond(params.schema, params.documentAST);
      if (errors.length > 0) setResult(errors);
      else withinLimits.add(params.documentAST);
    },
    // As a result like any other, so that errors get their public form and are counted.
    onExecute({ args, setExecuteFn }) {
      const errors = tooCostly(args);
      if (errors.length > 0) setExecuteFn(() => ({ errors }));
    },
    onSubscribe({ args, setSubscribeFn }) {
      const errors = tooCostly(args);
      if (errors.length > 0) setSubscribeFn(() => ({ errors }));
    },
  };
}
