import {
  type ExecutionArgs,
  type GraphQLResolveInfo,
  getArgumentValues,
  type OperationDefinitionNode,
} from 'graphql';
import { preparedDocument } from '../documents/prepared-operation.ts';
import {
  type Complete,
  type PlannedField,
  type PlanRun,
  type QueryPlan,
  UnplannedError,
  type UnplannedReason,
} from './plan.ts';

/** The variables of an operation, coerced. */
export type VariableValues = GraphQLResolveInfo['variableValues'];

/** Why an execution that failed this way is given up. */
export const reasonOf = (error: unknown): UnplannedReason =>
  error instanceof UnplannedError ? error.reason : 'a resolver failed';

/** One execution of a plan. */
export class Run implements PlanRun {
  readonly context: unknown;
  readonly args: readonly object[];
  readonly #infos: (FieldInfo | undefined)[];
  readonly #execution: Execution;
  readonly #fields: readonly PlannedField[];
  #waiting = 0;
  #abandoned: UnplannedReason | undefined;
  #settle: (() => void) | undefined;

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

  /** Why it was given up; undefined as long as everything comes as planned. */
  get abandoned(): UnplannedReason | undefined {
    return this.#abandoned;
  }

  /** Resolves once nothing is waited for any more. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** What is still waited for changes the answer no more. */
  abandon(error: unknown): void {
    this.#abandoned ??= reasonOf(error);
  }

  info(field: number): GraphQLResolveInfo {
    let info = this.#infos[field];
    if (info === undefined) {
      const planned = this.#fields[field];
      if (planned === undefined) throw new UnplannedError('a resolver asks for more');
      info = new FieldInfo(planned, this.#execution);
      this.#infos[field] = info;
    }
    return info;
  }

  wait(promise: PromiseLike<unknown>, target: object, key: string | number, complete: Complete): void {
    this.#waiting += 1;
    const arrived = (): void => {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#settle?.();
    };
    promise.then(
      (value) => {
        try {
          if (this.#abandoned === undefined) Reflect.set(target, key, complete(value, this));
        } catch (error) {
          this.abandon(error);
        }
        arrived();
      },
      (error: unknown) => {
        this.abandon(error);
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
    if (this.#field.path === undefined) throw new UnplannedError('a resolver asks for more');
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
    throw new UnplannedError('a resolver asks for more');
  };

  getAsyncHelpers = (): never => {
    throw new UnplannedError('a resolver asks for more');
  };
}
