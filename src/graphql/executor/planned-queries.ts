import {
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLResolveInfo,
  getArgumentValues,
  getVariableValues,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql';
import {
  type PreparedOperation,
  preparedDocument,
  preparedOperation,
} from '../plugins/prepared-operation.ts';
import {
  type Complete,
  conditionsOf,
  type PlannedField,
  type PlanRun,
  planQuery,
  type QueryPlan,
  UnplannedError,
} from './query-plan.ts';

/** How an operation is executed. */
export type Execute = (args: ExecutionArgs) => ExecutionResult | Promise<ExecutionResult>;

type VariableValues = GraphQLResolveInfo['variableValues'];

/** Plans of one operation that differ in what its conditions include. */
const MAX_VARIANTS = 8;

const NO_VARIABLES: VariableValues = { sources: {}, coerced: {} };

/**
 * Executes queries by plans. graphql-js stays the one reference for what an operation means: it executes mutations,
 * subscriptions, and what identified callers have not run twice yet; and it has the last word on every error. A plan
 * knows plain data alone: an execution in which anything else comes up is thrown away and made again on graphql-js, over
 * what the session has already read. So a plan holds no field that may not run twice (schema/builder.ts, `readOnce`).
 *
 * @param interpret graphql-js' `execute`.
 * @param isIdentified whether the caller of an operation is known by now, whose context it is given: plans take memory.
 * @param recount drops what an execution has counted towards the operation's limits, as it is made again.
 */
export function createPlannedExecution(
  interpret: Execute,
  isIdentified: (context: unknown) => boolean,
  recount: (context: unknown) => void,
): Execute {
  const again = (args: ExecutionArgs): ReturnType<Execute> => {
    recount(args.contextValue);
    return interpret(args);
  };
  return (args) => {
    const operation = preparedOperation(args);
    if (operation?.type !== OperationTypeNode.QUERY) return interpret(args);
    const variables = operation.runs === 0 ? undefined : variablesOf(args, operation.node);
    const plans = variables && operation.derived(plansOf);
    const plan = variables && plans?.for(variables);
    if (plan !== undefined) return execute(plan, args, operation.node, variables ?? NO_VARIABLES, again);

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
  /** Undefined for what cannot be planned. */
  readonly #variants = new Map<string, QueryPlan | undefined>();

  constructor(operation: PreparedOperation) {
    this.#operation = operation;
    this.#conditions = conditionsOf(operation.node, operation.document.fragments.values());
  }

  for(variables: VariableValues): QueryPlan | undefined {
    return this.#variants.get(this.#valuesIn(variables).join());
  }

  /** Makes the plan for these variables, unless it was made or has turned out to be impossible. */
  make(variables: VariableValues): void {
    const values = this.#valuesIn(variables);
    const key = values.join();
    if (this.#variants.has(key) || this.#variants.size >= MAX_VARIANTS) return;
    const plan = this.#plan(values);
    this.#variants.set(key, plan);
    if (plan !== undefined) this.#operation.document.addPlan(plan.bytes);
  }

  #valuesIn({ coerced }: VariableValues): readonly unknown[] {
    return this.#conditions.map((name) => coerced[name]);
  }

  #plan(values: readonly unknown[]): QueryPlan | undefined {
    const conditions = new Map<string, boolean>();
    for (const [index, name] of this.#conditions.entries()) {
      const value = values[index];
      if (typeof value === 'boolean') conditions.set(name, value);
    }
    const { document, node } = this.#operation;
    try {
      return planQuery(document.schema, node, document.fragments, conditions);
    } catch (error) {
      // An argument that cannot be coerced spoils its own field alone, which graphql-js knows how to say.
      if (error instanceof UnplannedError || error instanceof GraphQLError) return undefined;
      throw error;
    }
  }
}

/** @param again executes the operation another time, once nothing of the plan's own execution is under way any more. */
function execute(
  plan: QueryPlan,
  args: ExecutionArgs,
  operation: OperationDefinitionNode,
  variables: VariableValues,
  again: Execute,
): ExecutionResult | Promise<ExecutionResult> {
  let run: Run | undefined;
  try {
    run = new Run(plan, args, operation, variables);
    const data = plan.execute(args.rootValue, run);
    if (!run.isWaiting) return { data };
    return run.settled().then((complete) => (complete ? { data } : again(args)));
  } catch {
    run?.abandon();
    return run?.isWaiting === true ? run.settled().then(() => again(args)) : again(args);
  }
}

/** One execution of a plan. */
class Run implements PlanRun {
  readonly context: unknown;
  readonly args: readonly object[];
  readonly #infos: (FieldInfo | undefined)[];
  readonly #execution: Execution;
  readonly #fields: readonly PlannedField[];
  #waiting = 0;
  #abandoned = false;
  #settle: ((complete: boolean) => void) | undefined;

  /** @throws GraphQLError when an argument cannot be coerced. */
  constructor(
    plan: QueryPlan,
    args: ExecutionArgs,
    operation: OperationDefinitionNode,
    variableValues: VariableValues,
  ) {
    this.context = args.contextValue;
    this.args = plan.argumentsOf.map(({ definition, node }) =>
      getArgumentValues(definition, node, variableValues),
    );
    this.#execution = { args, operation, variableValues };
    this.#fields = plan.fields;
    this.#infos = new Array(plan.fields.length);
  }

  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** Resolves once nothing is waited for any more, with whether everything has come as planned. */
  settled(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** What is still waited for changes the answer no more. */
  abandon(): void {
    this.#abandoned = true;
  }

  info(field: number): GraphQLResolveInfo {
    let info = this.#infos[field];
    if (info === undefined) {
      const planned = this.#fields[field];
      if (planned === undefined) throw new UnplannedError();
      info = new FieldInfo(planned, this.#execution);
      this.#infos[field] = info;
    }
    return info;
  }

  wait(promise: PromiseLike<unknown>, target: object, key: string | number, complete: Complete): void {
    this.#waiting += 1;
    const arrived = (): void => {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#settle?.(!this.#abandoned);
    };
    promise.then(
      (value) => {
        try {
          if (!this.#abandoned) Reflect.set(target, key, complete(value, this));
        } catch {
          this.abandon();
        }
        arrived();
      },
      () => {
        this.abandon();
        arrived();
      },
    );
  }
}

interface Execution {
  readonly args: ExecutionArgs;
  readonly operation: OperationDefinitionNode;
  readonly variableValues: VariableValues;
}

/** What a resolver is told. Reading an unsupported field throws; graphql-js then runs the query again. */
class FieldInfo implements GraphQLResolveInfo {
  readonly #field: PlannedField;
  readonly #execution: Execution;

  constructor(field: PlannedField, execution: Execution) {
    this.#field = field;
    this.#execution = execution;
  }

  get fieldName() {
    return this.#field.definition.name;
  }

  get fieldNodes() {
    return this.#field.nodes;
  }

  get returnType() {
    return this.#field.definition.type;
  }

  get parentType() {
    return this.#field.parentType;
  }

  get path() {
    if (this.#field.path === undefined) throw new UnplannedError();
    return this.#field.path;
  }

  get schema() {
    return this.#execution.args.schema;
  }

  get fragments(): GraphQLResolveInfo['fragments'] {
    const { schema, document } = this.#execution.args;
    return Object.fromEntries(preparedDocument(schema, document).fragments);
  }

  get rootValue() {
    return this.#execution.args.rootValue;
  }

  get operation() {
    return this.#execution.operation;
  }

  get variableValues() {
    return this.#execution.variableValues;
  }

  getAbortSignal = (): never => {
    throw new UnplannedError();
  };

  getAsyncHelpers = (): never => {
    throw new UnplannedError();
  };
}
