import { type ExecutionArgs, type ExecutionResult, OperationTypeNode } from 'graphql';
import { isPromise, type Plugin } from 'graphql-yoga';
import type { MaybePromise } from '../../common/maybe-promise.ts';
import { type Flight, SingleFlight } from '../../common/single-flight.ts';
import type { Waiters } from '../../common/waiters.ts';
import type { Report } from '../../operation/report.ts';
import { type PreparedOperation, preparedOperation } from '../documents/prepared-operation.ts';

/** What this plugin needs of an operation's context. */
interface SharingContext {
  readonly identity: {
    readonly credential: string;
    /** Two fields are read under it; undefined where the caller brought none. */
    readonly apiKey: string | undefined;
    /** The same for all whom the REST service takes for one; known once the caller is identified. */
    readonly upstreamIdentity: string;
    /** Runs work once the caller is known to have the right to a change that it asks for. */
    onceMayChange(work: () => void): void;
    /** Finds out who is calling; rejects when that is nobody. What the caller may be told depends on it. */
    identify(): MaybePromise<unknown>;
    /** Whether it came over a socket. A refusal has another form there. */
    readonly isOverSocket: boolean;
  };
  readonly budget: { readonly waiters: Waiters | undefined };
  readonly report: Pick<Report, 'calls' | 'sharedCalls' | 'share'>;
}

export interface QueryDeduplication {
  /**
   * Lets a query join the same one that is under way. Must wrap the plugin that admits operations, so that those that join
   * take no seat, and so that queries which wait for one join each other.
   */
  readonly plugin: Plugin<SharingContext>;
  /** What a caller asks from now on is read afresh: it has changed something, or has been told of a change. */
  forget(credential: string, upstreamIdentity: string): void;
  /** The JSON of a result, written once for all who share it. */
  stringify(result: ExecutionResult): string | Buffer;
}

/** What is noted of a query under way. */
interface QueryDetails {
  readonly first: SharingContext;
  shared: boolean;
}

/** The same for the same question: another API key may have another answer. */
const keyOf = (
  operation: PreparedOperation,
  { variableValues }: ExecutionArgs,
  { identity }: SharingContext,
): string => `${operation.id} ${JSON.stringify([variableValues, identity.apiKey])}`;

/**
 * A query is not joined any more when it was asked this long ago, in milliseconds: what it has read may be that old, and who joins has
 * that much less time.
 */
const JOINED_WITHIN_MS = 1_000;

/**
 * Lets queries that one caller asks in the same words, while the first is under way, share its result. Only within one
 * credential, never a mutation, and nothing is kept: a query that begins after the answer, or after a mutation of the
 * caller's or an event that it was told of, is executed again. Errors are given to each in its own public form.
 *
 * A query joins only once its own caller is identified: what stands beside the result, such as the report of REST calls, is
 * decided for each caller. A query whose caller cannot be identified is executed on its own, and fails there.
 *
 * @param now milliseconds of a monotonic clock.
 * @param onForget called with the upstream identity of a caller from whom on reads must be made afresh.
 */
export function createQueryDeduplication(
  now: () => number,
  onForget: (upstreamIdentity: string) => void,
): QueryDeduplication {
  const queries = new QueriesUnderWay(now, onForget);
  return {
    plugin: sharing(queries),
    forget: (credential, upstreamIdentity) => queries.forget(credential, upstreamIdentity),
    stringify: (result) => queries.stringify(result),
  };
}

/** The queries under way, by credential and question. */
class QueriesUnderWay {
  readonly #flights: SingleFlight<ExecutionResult, QueryDetails>;
  readonly #written = new WeakMap<ExecutionResult, { bytes?: Buffer }>();
  readonly #onForget: (upstreamIdentity: string) => void;

  constructor(now: () => number, onForget: (upstreamIdentity: string) => void) {
    this.#flights = new SingleFlight({ now, joinedWithinMs: JOINED_WITHIN_MS });
    this.#onForget = onForget;
  }

  register(
    first: SharingContext,
    key: string,
    execution: Promise<ExecutionResult>,
  ): Promise<ExecutionResult> {
    const asked = { first, shared: false };
    const { details } = this.#flights.begin(first.identity.credential, key, execution, asked);
    return execution.then((result) => {
      if (details.shared) this.#written.set(result, {});
      return result;
    });
  }

  /** The same query of the same caller, where it may still be joined. */
  find(
    context: SharingContext,
    operation: PreparedOperation,
    args: ExecutionArgs,
  ): Flight<ExecutionResult, QueryDetails> | undefined {
    const { credential, isOverSocket } = context.identity;
    // Most queries come while their caller has nothing under way: those need no key.
    if (!this.#flights.isUnderWay(credential)) return undefined;
    const flight = this.#flights.underWay(credential, keyOf(operation, args, context));
    if (flight === undefined) return undefined;
    const { budget, identity } = flight.details.first;
    return budget.waiters?.isGone === true || identity.isOverSocket !== isOverSocket ? undefined : flight;
  }

  /**
   * Each caller that changes something reads afresh from now on. Others share its reads where the service takes them for one: theirs are
   * dropped only once it may make a change.
   */
  changes({ identity }: SharingContext): void {
    this.#flights.forget(identity.credential);
    identity.onceMayChange(() => this.#onForget(identity.upstreamIdentity));
  }

  forget(credential: string, upstreamIdentity: string): void {
    this.#flights.forget(credential);
    this.#onForget(upstreamIdentity);
  }

  stringify(result: ExecutionResult): string | Buffer {
    const shared = this.#written.get(result);
    if (shared === undefined) return JSON.stringify(result);
    shared.bytes ??= Buffer.from(JSON.stringify(result));
    return shared.bytes;
  }
}

const sharing = (queries: QueriesUnderWay): Plugin<SharingContext> => ({
  onExecute({ args, executeFn, setExecuteFn }) {
    const context = args.contextValue;
    const operation = preparedOperation(args);
    if (operation?.type === OperationTypeNode.MUTATION) {
      queries.changes(context);
      return { onExecuteDone: () => queries.changes(context) };
    }
    if (operation?.type !== OperationTypeNode.QUERY) return undefined;
    setExecuteFn((args) => {
      const flight = queries.find(context, operation, args);
      if (flight !== undefined) return join(context, flight, () => executeFn(args));
      const result = executeFn(args);
      return isPromise(result) ? queries.register(context, keyOf(operation, args, context), result) : result;
    });
    return undefined;
  },
});

function join(
  context: SharingContext,
  { result, details }: Flight<ExecutionResult, QueryDetails>,
  executeAlone: () => unknown,
): unknown {
  const { waiters } = details.first.budget;
  details.shared = true;
  // It waits from now on: the first caller may leave while this one is being identified.
  waiters?.add();
  const leave = (): void => waiters?.remove();
  const unwatch = context.budget.waiters?.whenGone(leave);
  const share = async (): Promise<ExecutionResult> => {
    const shared = await result;
    context.report.share([...details.first.report.calls, ...details.first.report.sharedCalls]);
    return shared;
  };
  const identified = context.identity.identify();
  if (!isPromise(identified)) return share();
  return identified.then(share, () => {
    unwatch?.();
    if (context.budget.waiters?.isGone !== true) leave();
    return executeAlone();
  });
}
