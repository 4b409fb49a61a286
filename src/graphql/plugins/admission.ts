import { type ExecutionArgs, GraphQLError, OperationTypeNode } from 'graphql';
import { isPromise, type Plugin } from 'graphql-yoga';
import { FairQueue } from '../../common/fair-queue.ts';
import { preparedOperation } from './prepared-operation.ts';

/** What this plugin needs of an operation's context. */
interface AdmittedContext {
  /** Whose operation it is: each has its share of what can be under way at once. */
  readonly callerKey: string;
  readonly signal: AbortSignal;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Whether it came over a socket, where there is no status of HTTP to answer with. */
  readonly endsWithSocket: boolean;
}

export interface AdmissionOptions {
  /**
   * How many operations of one caller may be under way: as many as REST calls (`UPSTREAM_CALLS_PER_CALLER`), since more of
   * them would only wait for each other's.
   */
  readonly perCaller: number;
  /** How many operations of one caller may wait (`OPERATIONS_QUEUE`). */
  readonly queue: number;
  /** Told of how many operations wait, when that changes. */
  readonly onWaiting: (count: number) => void;
  /** Told of each operation that is refused. */
  readonly onRefused: () => void;
}

/** Queries and mutations that may be under way at once, of all callers together. */
const UNDER_WAY = 256;
/** Mutations of one caller. Its queries are not in their way, and those that share a key wait for each other anyway. */
const MUTATIONS_PER_CALLER = 64;
/**
 * What an operation needs to have left of its time when it begins, in milliseconds; half of its time where that is less. A
 * payment that begins too late is sent, and nobody hears what has become of it.
 */
const NEEDED_MS = 1_000;
/** What a refused caller is told to wait, in milliseconds. */
const SHORTEST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** Weight of the latest operation in the mean duration of all. */
const SMOOTHING = 0.05;

/**
 * Admits queries and mutations fairly between callers: one that has many under way waits for its own, behind a caller that
 * has none. What waits beyond the queue, or for too long to be served in what is left of its time, is refused as
 * `RATE_LIMITED`, with `retryAfterMs`; over HTTP with status 429.
 *
 * Must stand behind the plugin that shares results: an answer that is shared has to be sent to each all the same.
 */
export function useAdmission({
  perCaller,
  queue,
  onWaiting,
  onRefused,
}: AdmissionOptions): Plugin<AdmittedContext> {
  const told = (): void => onWaiting(queries.waiting + mutations.waiting);
  const queries = new FairQueue({ total: UNDER_WAY, perCaller, onWaiting: told });
  const mutations = new FairQueue({
    total: UNDER_WAY,
    perCaller: MUTATIONS_PER_CALLER,
    onWaiting: told,
  });
  let meanMs = 0;

  const leave = (admission: FairQueue, key: string, start: number): void => {
    meanMs += SMOOTHING * (performance.now() - start - meanMs);
    admission.leave(key);
  };

  const refuse = (admission: FairQueue, { callerKey, endsWithSocket }: AdmittedContext) => {
    onRefused();
    const turns = Math.ceil((admission.waitingOf(callerKey) + 1) / perCaller);
    const retryAfterMs = Math.round(Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, turns * meanMs)));
    const http = { status: 429, headers: { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) } };
    return {
      errors: [
        new GraphQLError('Too many operations of this caller are waiting; ask again later.', {
          extensions: { code: 'RATE_LIMITED', retryAfterMs, ...(endsWithSocket ? {} : { http }) },
        }),
      ],
    };
  };

  return {
    onExecute({ args, executeFn, setExecuteFn }) {
      const context = args.contextValue;
      const key = context.callerKey;
      const isMutation = preparedOperation(args)?.type === OperationTypeNode.MUTATION;
      const admission = isMutation ? mutations : queries;

      const run = (given: ExecutionArgs): unknown => {
        const start = performance.now();
        let result: unknown;
        try {
          result = executeFn(given);
        } catch (error) {
          admission.leave(key);
          throw error;
        }
        if (isPromise(result)) return result.finally(() => leave(admission, key, start));
        admission.leave(key);
        return result;
      };

      const wait = async (given: ExecutionArgs): Promise<unknown> => {
        const leftMs = context.deadline - Date.now();
        const waitMs = leftMs - Math.min(NEEDED_MS, leftMs / 2);
        const entered = await admission.enter(key, waitMs, context.signal);
        return entered ? run(given) : refuse(admission, context);
      };

      setExecuteFn((given) => {
        if (admission.tryEnter(key)) return run(given);
        return admission.waitingOf(key) < queue ? wait(given) : refuse(admission, context);
      });
    },
  };
}
