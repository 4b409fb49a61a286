/** Which transport brought an operation. */
export type Transport = 'fast path' | 'yoga' | 'socket';

/** What executed it. A query that fell back was begun by a plan, and executed again by graphql-js. */
export type Executor = 'plan' | 'graphql-js' | 'fell back';

/** The way that an operation took through the layers (docs/layers.md). Every value is one of few, as it labels a metric. */
export interface Way {
  /** Undefined where nobody has said. */
  readonly transport: Transport | undefined;
  /** Whether its document had been kept from before, or was parsed and validated for it. */
  readonly document: 'kept' | 'read';
  /** Undefined where it was not executed: it was refused before, or shared the result of another. */
  readonly executor: Executor | undefined;
  /** Why no plan executed it, or not to the end; undefined for a plan. */
  readonly because: string | undefined;
  /** Whether its result is that of another operation of the same caller. */
  readonly isShared: boolean;
}
