/** A result of GraphQL as it comes over the wire. */
export interface Result {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly ResultError[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export interface ResultError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** What is sent. */
export interface Operation {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  readonly operationName?: string | undefined;
}

/** One REST call beneath a result, as `extensions.upstream` tells it (src/graphql/plugins/upstream-report.ts). */
export interface UpstreamCall {
  readonly method: string;
  readonly route: string;
  readonly path: string;
  readonly status: number | null;
  /** Milliseconds into the operation: when the call left. */
  readonly began: number;
  readonly milliseconds: number;
  readonly batched: number;
  readonly coalesced: boolean;
  readonly cached: boolean;
  /** Whether it only found out who is calling, as one call a minute does; not in sessions that were kept before it was told. */
  readonly identifies?: boolean;
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Undefined where the gateway does not report. */
export function upstreamOf(result: Result): readonly UpstreamCall[] | undefined {
  const upstream = result.extensions?.['upstream'];
  // The gateway and its page are built and released together.
  return Array.isArray(upstream) ? (upstream as readonly UpstreamCall[]) : undefined;
}

export const codeOf = (result: Result): unknown => result.errors?.[0]?.extensions?.['code'];

/** Whether a result refuses the bearer token: `header` names another credential that is at fault (PROTOCOL.md, T3). */
export const refusesToken = (result: Result): boolean =>
  codeOf(result) === 'UNAUTHENTICATED' &&
  ['authorization', undefined].includes(result.errors?.[0]?.extensions?.['header'] as string | undefined);

/** Whether an answer that refuses the token shows that nothing was done: no field was begun, or each was refused as a whole. */
export const hasDoneNothing = ({ data, errors = [] }: Result): boolean =>
  Object.values(data ?? {}).every((field) => field === null) &&
  errors.every(({ path = [], extensions }) => path.length < 2 && extensions?.['code'] === 'UNAUTHENTICATED');
