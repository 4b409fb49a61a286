import { type DocumentNode, GraphQLError, parse } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { isRounded } from '../../common/long-numbers.ts';
import { noteRefusal } from '../../common/refusals.ts';
import type { IdentifiedContext } from '../../operation/identity.ts';
import type { Report } from '../../operation/report.ts';
import { complexityOf, pageSizeVariables } from '../documents/complexity.ts';
import { introspectionCost, introspectionSizes } from '../documents/introspection-cost.ts';
import {
  type PreparedDocument,
  type PreparedOperation,
  preparedDocument,
  preparedOperation,
} from '../documents/prepared-operation.ts';
import { wordsOf } from '../documents/words.ts';

/** What one operation may ask for at most. */
export interface Limits {
  /** Tokens of the document, before it is parsed. */
  readonly tokens: number;
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  /** Objects that the answer may hold (complexity.ts). */
  readonly cost: number;
}

/** What an operation costs, by the values of the variables that the cost depends on. */
interface Costs {
  readonly sizes: readonly string[];
  readonly measured: Map<string, number>;
}

/** Combinations of page sizes whose cost is kept of one operation. */
const MAX_MEASURED = 20;
/** Values that take more characters than this are no page sizes. */
const MAX_KEY = 100;
/** A name comes back in errors, and in answers once for each item of a list. */
const LONGEST_NAME = 128;
/** How many pairs of equal names a document may have for each token that it may have: of 2,000 tokens graphql-js compares so many in a tenth of a second. */
const PAIRS_PER_TOKEN = 30;

/** Fields of one object among the variables. Each error of graphql-js shows them all; no input of the graph has ten. */
const MOST_FIELDS = 100;

const costsOf = ({ document }: PreparedOperation): Costs => ({
  sizes: pageSizeVariables(document.node),
  measured: new Map(),
});

const sizesOf = ({ document }: PreparedOperation) => introspectionSizes(document.schema);

function tooComplex(message: string): GraphQLError {
  noteRefusal('document');
  return new GraphQLError(message, { extensions: { code: 'TOO_COMPLEX' } });
}

/** What an operation costs, and the fields whose pages multiply each other in it. */
interface Cost {
  readonly cost: number;
  readonly pages: readonly string[];
  /** Keeps the cost for the next time. */
  readonly learn?: () => void;
}

const NOTHING: Cost = { cost: 0, pages: [] };

/** How an operation that costs too much is made cheaper. */
const adviceOn = (pages: readonly string[]): string =>
  pages.length === 0
    ? ''
    : ` Its pages multiply each other: ${pages.join(' × ')}. Ask for fewer items with "first".`;

/** What this plugin needs of an operation's context. */
interface LimitsContext extends IdentifiedContext {
  readonly report: Pick<Report, 'noteCost'>;
}

/**
 * Bounds documents over every transport: lines before parsing and tokens while parsing, so that a huge one is refused before it costs
 * anything; names, depth, aliases, directives and introspection before validation, whose own cost grows with them; and the cost once
 * the variables say how large the pages are. The error says which limit, its value, and what the document has. Must stand
 * behind plugins that choose what executes.
 */
export function useLimits(limits: Limits): Plugin<LimitsContext> {
  return {
    onParse({ setParseFn }) {
      setParseFn((source: string, options: object) => parseWithin(limits, source, options));
    },
    onValidate({ params, setResult }) {
      const document = preparedDocument(params.schema, params.documentAST);
      if (document.isValid) return;
      const errors = beyond(limits, document);
      if (errors.length > 0) setResult(errors);
    },
    // As results like any other, so that errors get their public form and are counted.
    onExecute({ args, setExecuteFn }) {
      const flaw = flawIn(Object.values(args.variableValues ?? {}));
      if (flaw !== undefined) {
        setExecuteFn(() => ({ errors: [flaw] }));
        return undefined;
      }
      const { cost, pages, learn } = costOf(limits, args);
      args.contextValue.report.noteCost(cost);
      const errors = refuse(limits, 'cost', cost, adviceOn(pages));
      if (errors.length > 0) setExecuteFn(() => ({ errors }));
      if (learn === undefined) return undefined;
      return {
        onExecuteDone() {
          if (args.contextValue.identity.isIdentified) learn();
        },
      };
    },
    onSubscribe({ args, setSubscribeFn }) {
      const flaw = flawIn(Object.values(args.variableValues ?? {}));
      if (flaw !== undefined) {
        setSubscribeFn(() => ({ errors: [flaw] }));
        return;
      }
      const { cost, pages } = costOf(limits, args);
      const errors = refuse(limits, 'cost', cost, adviceOn(pages));
      if (errors.length > 0) setSubscribeFn(() => ({ errors }));
    },
  };
}

const refuse = (limits: Limits, name: 'depth' | 'cost', had: number, advice = ''): GraphQLError[] =>
  had > limits[name]
    ? [tooComplex(`The operation's ${name} is ${had}; at most ${limits[name]} is allowed.${advice}`)]
    : [];

const refuseMany = (limits: Limits, name: 'aliases' | 'directives', had: number): GraphQLError[] =>
  had > limits[name]
    ? [tooComplex(`The operation has ${had} ${name}; at most ${limits[name]} are allowed.`)]
    : [];

/** What graphql-js takes for the end of a line. */
const LINE_END = /\r\n|[\n\r]/g;

/** Refuses a text of more lines: each error of graphql-js counts the lines before its place anew, and an answer may make thousands of errors. */
function refuseLines(source: string, most: number): void {
  let ends = 0;
  for (const _ of source.matchAll(LINE_END)) {
    ends += 1;
    if (ends >= most)
      throw tooComplex(
        `The document has more lines than the ${most} that are allowed, which are as many as it may have tokens.`,
      );
  }
}

function parseWithin({ tokens }: Limits, source: string, options: object): DocumentNode {
  refuseLines(source, tokens);
  try {
    return parse(source, { ...options, maxTokens: tokens });
  } catch (error) {
    if (error instanceof GraphQLError && error.message.includes(`more than ${tokens} tokens`)) {
      throw tooComplex(
        `The document has more tokens than the ${tokens} that are allowed; reading stopped there.`,
      );
    }
    throw error;
  }
}

/** The first limit that a document is beyond, whatever its variables are. */
function beyond(limits: Limits, document: PreparedDocument): GraphQLError[] {
  const { longest, pairs } = wordsOf(document.node);
  if (longest > LONGEST_NAME) {
    return [
      tooComplex(
        `The document's longest name has ${longest} characters; at most ${LONGEST_NAME} are allowed.`,
      ),
    ];
  }
  const { schema, fragments } = document;
  const errors = document.operations.flatMap((operation) => {
    const { depth, aliases, directives } = complexityOf(schema, fragments, operation.node, {});
    return [
      ...refuse(limits, 'depth', depth),
      ...refuseMany(limits, 'aliases', aliases),
      ...refuseMany(limits, 'directives', directives),
      ...refuse(limits, 'cost', introspectionCost(operation.derived(sizesOf), fragments, operation.node)),
    ];
  });
  if (errors.length > 0) return errors.slice(0, 1);
  return pairs > PAIRS_PER_TOKEN * limits.tokens
    ? [tooComplex('The document repeats the same names too often.')]
    : [];
}

interface Operation {
  readonly schema: PreparedDocument['schema'];
  readonly document: PreparedDocument['node'];
  readonly operationName?: string | null | undefined;
  readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
}

/** What an operation costs with these variables; `learn` keeps it. */
function costOf(limits: Limits, args: Operation): Cost {
  const operation = preparedOperation(args);
  if (operation === undefined) return NOTHING;
  const { sizes, measured } = operation.derived(costsOf);
  const variables = args.variableValues ?? {};
  // A variable that is left out has its default, which one that is null has not.
  const key = JSON.stringify(
    sizes.map((name) => (Object.hasOwn(variables, name) ? [sizeOf(variables[name])] : 0)),
  );
  const known = measured.get(key);
  if (known !== undefined && known <= limits.cost) return { cost: known, pages: [] };
  const { cost, pages } = complexityOf(args.schema, operation.document.fragments, operation.node, variables);
  return {
    cost,
    pages,
    learn() {
      if (measured.size < MAX_MEASURED && key.length < MAX_KEY) measured.set(key, cost);
    },
  };
}

/** Of a list of ids only their number matters. */
const sizeOf = (value: unknown): unknown => (Array.isArray(value) ? [value.length] : value);

const tooWide = (): GraphQLError =>
  tooComplex(`An object of the variables has more than the ${MOST_FIELDS} fields that are allowed.`);

/** An id would be another's: GraphQL takes a number for one. */
const lostDigits = (): GraphQLError =>
  new GraphQLError(
    'The variables hold a number beyond 2^53, which has lost digits as it was read: write it as a string.',
    { extensions: { code: 'BAD_USER_INPUT' } },
  );

/** What is wrong anywhere in values of JSON: an object with more than {@link MOST_FIELDS} fields, or a number that is another by now. */
function flawIn(values: readonly unknown[]): GraphQLError | undefined {
  const waiting = [...values];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (isRounded(value)) return lostDigits();
    if (typeof value !== 'object' || value === null) continue;
    const parts: unknown[] = Array.isArray(value) ? value : Object.values(value);
    if (!Array.isArray(value) && parts.length > MOST_FIELDS) return tooWide();
    for (const part of parts)
      if ((typeof part === 'object' && part !== null) || isRounded(part)) waiting.push(part);
  }
  return undefined;
}
