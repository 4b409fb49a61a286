import {
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  getVariableValues,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import type { Executor } from '../../operation/way.ts';
import { type PreparedOperation, preparedOperation } from '../documents/prepared-operation.ts';
import { type QueryPlan, UnplannedError, type UnplannedReason } from './plan.ts';
import { conditionsOf } from './plan-fields.ts';
import { Run, reasonOf, type VariableValues } from './plan-run.ts';
import { planQuery } from './query-plan.ts';

/** How an operation is executed. */
export type Execute = (args: ExecutionArgs) => ExecutionResult | Promise<ExecutionResult>;

/** Plans of one operation that differ in what its conditions include. */
const MAX_VARIANTS = 8;

const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

/** Why graphql-js executes an operation from the start, or again. */
type Reason =
  | UnplannedReason
  | 'no query'
  | 'its first runs'
  | 'plans are off'
  | 'variables that cannot be coerced'
  | 'too many combinations of conditions';

/** What executing by plans needs, of an operation's context among it. */
export interface PlannedExecutionOptions {
  /** graphql-js' `execute`. */
  readonly interpret: Execute;
  /** Whether the caller of an operation is known by now: plans take memory. */
  isIdentified(context: unknown): boolean;
  /** Drops what an execution has counted towards the operation's limits, as it is made again. */
  recount(context: unknown): void;
  /** Told of what executes an operation, and why it is not a plan. */
  note(context: unknown, executor: Executor, because?: Reason): void;
}

/** Executes every operation by graphql-js, and notes that no plan was asked for. */
export function createUnplannedExecution({
  interpret,
  note,
}: Pick<PlannedExecutionOptions, 'interpret' | 'note'>): Execute {
  return (args) => {
    note(args.contextValue, 'graphql-js', 'plans are off');
    return interpret(args);
  };
}

/**
 * Executes queries by plans. graphql-js stays the one reference for what an operation means: it executes mutations,
 * subscriptions, and what identified callers have not run twice yet; and it has the last word on every error. A plan
 * knows plain data alone: an execution in which anything else comes up is thrown away and made again on graphql-js, over
 * what the session has already read. So a plan holds no field that may not run twice (schema/builder.ts, `readOnce`).
 */
export function createPlannedExecution(options: PlannedExecutionOptions): Execute {
  const { interpret, isIdentified, note } = options;
  return (args) => {
    const operation = preparedOperation(args);
    if (operation?.type !== OperationTypeNode.QUERY) {
      note(args.contextValue, 'graphql-js', 'no query');
      return interpret(args);
    }
    const isNew = operation.runs === 0;
    const variables = isNew ? undefined : variablesOf(args, operation.node);
    const plans = variables && operation.derived(plansOf);
    const plan = variables && plans?.for(variables);
    if (variables !== undefined && plan !== undefined && typeof plan !== 'string') {
      note(args.contextValue, 'plan');
      return execute(plan, args, operation.node, variables, options);
    }
    const unknown = isNew ? 'its first runs' : 'variables that cannot be coerced';
    note(args.contextValue, 'graphql-js', typeof plan === 'string' ? plan : unknown);

    const learn = (): void => {
      if (!isIdentified(args.contextValue)) return;
      operation.runs += 1;
      if (variables !== undefined) plans?.make(variables);
    };
    const result = interpret(args);
    if (!(result instanceof Promise)) {
      learn();
      return result;
    }
    return result.then((settled) => {
      learn();
      return settled;
    });
  };
}

/** Undefined for what cannot be coerced: what is wrong with it, graphql-js says. One error is enough to know. */
function variablesOf(
  { schema, variableValues }: ExecutionArgs,
  { variableDefinitions = [] }: OperationDefinitionNode,
): VariableValues | undefined {
  if (variableDefinitions.length === 0) return NO_VARIABLES;
  const options = { maxErrors: 1, hideSuggestions: true };
  return getVariableValues(schema, variableDefinitions, variableValues ?? {}, options).variableValues;
}

const plansOf = (operation: PreparedOperation): Plans => new Plans(operation);

/** The plans of one operation, one for each of the combinations of its conditions that have come. */
class Plans {
  readonly #operation: PreparedOperation;
  readonly #conditions: readonly string[];
  /** Of what cannot be planned, why. */
  readonly #variants = new Map<string, QueryPlan | UnplannedReason>();

  constructor(operation: PreparedOperation) {
    this.#operation = operation;
    this.#conditions = conditionsOf(operation.node, operation.document.fragments.values());
  }

  /** The plan for these variables, or why there is none. */
  for(variables: VariableValues): QueryPlan | Reason {
    const known = this.#variants.get(this.#valuesIn(variables).join());
    if (known !== undefined) return known;
    return this.#variants.size < MAX_VARIANTS ? 'its first runs' : 'too many combinations of conditions';
  }

  /** Makes the plan for these variables, unless it was made or has turned out to be impossible. */
  make(variables: VariableValues): void {
    const values = this.#valuesIn(variables);
    const key = values.join();
    if (this.#variants.has(key) || this.#variants.size >= MAX_VARIANTS) return;
    const plan = this.#plan(values);
    this.#variants.set(key, plan);
    if (typeof plan === 'object') this.#operation.document.addPlan(plan.bytes);
  }

  #valuesIn({ coerced }: VariableValues): readonly unknown[] {
    return this.#conditions.map((name) => coerced[name]);
  }

  #plan(values: readonly unknown[]): QueryPlan | UnplannedReason {
    const conditions = new Map<string, boolean>();
    for (const [index, name] of this.#conditions.entries()) {
      const value = values[index];
      if (typeof value === 'boolean') conditions.set(name, value);
    }
    const { document, node } = this.#operation;
    try {
      return planQuery(document.schema, node, document.fragments, conditions);
    } catch (error) {
      if (error instanceof UnplannedError) return error.reason;
      // An argument that cannot be coerced spoils its own field alone, which graphql-js knows how to say.
      if (error instanceof GraphQLError) return 'an argument';
      throw error;
    }
  }
}

/** Executes a plan; graphql-js executes the operation again once nothing of a plan that was given up is under way any more. */
function execute(
  plan: QueryPlan,
  args: ExecutionArgs,
  operation: OperationDefinitionNode,
  variables: VariableValues,
  { interpret, recount, note }: PlannedExecutionOptions,
): ExecutionResult | Promise<ExecutionResult> {
  const again = (because: UnplannedReason): ReturnType<Execute> => {
    note(args.contextValue, 'fell back', because);
    recount(args.contextValue);
    return interpret(args);
  };
  let run: Run | undefined;
  try {
    const begun = new Run(plan, args, operation, variables);
    run = begun;
    const data = plan.execute(args.rootValue, begun);
    if (!begun.isWaiting) return { data };
    return begun.settled().then(() => (begun.abandoned === undefined ? { data } : again(begun.abandoned)));
  } catch (error) {
    const because = reasonOf(error);
    run?.abandon(error);
    return run?.isWaiting === true ? run.settled().then(() => again(because)) : again(because);
  }
}
