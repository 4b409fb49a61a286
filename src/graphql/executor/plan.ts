import type { FieldNode, GraphQLField, GraphQLObjectType, GraphQLResolveInfo } from 'graphql';

/** Why graphql-js executes what a plan cannot, or does not go on with. Few, as they label a metric. */
export type UnplannedReason =
  | 'a directive other than @skip and @include'
  | 'introspection'
  | 'too many fields'
  | 'a field that may run only once'
  | 'an argument'
  | 'a null that may not be'
  | 'a value of another type'
  | 'a resolver failed'
  | 'a resolver asks for more';

/** A query that is not planned, or an execution that is not as planned: graphql-js knows what becomes of it. */
export class UnplannedError extends Error {
  readonly reason: UnplannedReason;

  constructor(reason: UnplannedReason) {
    super(reason);
    this.reason = reason;
  }
}

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
