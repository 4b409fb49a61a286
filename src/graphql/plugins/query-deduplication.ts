import { type ExecutionResult, OperationTypeNode } from 'graphql';
import { isPromise, type Plugin } from 'graphql-yoga';
import type { Waiters } from '../../common/waiters.ts';
import { preparedOperation } from './prepared-operation.ts';

/** What this plugin needs of an operation's context. */
interface SharingContext {
  /** All that tells who is calling. Operations with the same are one caller's. */
  readonly credential: string;
  /** Who waits for the operation; undefined where it is not told when somebody leaves. */
  readonly waiters: Waiters | undefined;
  /** The REST calls made so far. */
  readonly calls: readonly object[];
  /** Told of the calls of the operation whose result is shared. */
  shareCalls(calls: readonly object[]): void;
}

export interface QueryDeduplication {
  readonly plugin: Plugin<SharingContext>;
  /** What a caller asks from now on is read afresh: it has changed something, or has been told of a change. */
  forget(credential: string): void;
  /** The JSON of a result, written once for all who share it. */
  stringify(result: ExecutionResult): string | Buffer;
}

interface Flight {
  readonly startedAt: number;
  readonly waiters: Waiters | undefined;
  readonly calls: readonly object[];
  readonly result: Promise<ExecutionResult>;
  shared: boolean;
}

/** A query is not joined any more when it began this long ago, in milliseconds: its deadline is that much nearer. */
const JOINED_WITHIN_MS = 1_000;

/**
 * Lets queries that one caller asks in the same words, while the first is under way, share its result. Only within one
 * credential, never a mutation, and nothing is kept: a query that begins after the answer, or after a mutation of the
 * caller's or an event that it was told of, is executed again. Errors are given to each in its own public form.
 *
 * Must stand behind the plugin that makes the context.
 *
 * @param now milliseconds of a monotonic clock.
 * @param onForget called with the credential of a caller from whom on reads must be made afresh.
 */
export function createQueryDeduplication(
  now: () => number,
  onForget: (credential: string) => void,
): QueryDeduplication {
  const flights = new Map<string, Map<string, Flight>>();
  const written = new WeakMap<ExecutionResult, { bytes?: Buffer }>();

  const isJoinable = ({ startedAt, waiters }: Flight): boolean =>
    now() - startedAt <= JOINED_WITHIN_MS && waiters?.isGone !== true;

  function register(
    { credential, waiters, calls }: SharingContext,
    key: string,
    execution: Promise<ExecutionResult>,
  ): Promise<ExecutionResult> {
    let own = flights.get(credential);
    if (own === undefined) {
      own = new Map();
      flights.set(credential, own);
    }
    const others = own;
    const flight: Flight = { startedAt: now(), waiters, calls, result: execution, shared: false };
    others.set(key, flight);
    const settle = (): void => {
      if (others.get(key) === flight) others.delete(key);
      if (others.size === 0 && flights.get(credential) === others) flights.delete(credential);
    };
    return flight.result.then(
      (result) => {
        settle();
        if (flight.shared) written.set(result, {});
        return result;
      },
      (error: unknown) => {
        settle();
        throw error;
      },
    );
  }

  return {
    plugin: {
      onExecute({ args, executeFn, setExecuteFn }) {
        const context = args.contextValue;
        const operation = preparedOperation(args);
        if (operation === undefined) return undefined;
        if (operation.type === OperationTypeNode.MUTATION) {
          forget(context.credential);
          return { onExecuteDone: () => forget(context.credential) };
        }
        const key = () => `${operation.id} ${JSON.stringify(args.variableValues)}`;
        setExecuteFn((given) => {
          // Even in an empty map a look-up reads the whole credential.
          const flight = flights.size === 0 ? undefined : flights.get(context.credential)?.get(key());
          if (flight === undefined || !isJoinable(flight)) {
            const result = executeFn(given);
            return isPromise(result) ? register(context, key(), result) : result;
          }
          const { waiters } = flight;
          flight.shared = true;
          context.shareCalls(flight.calls);
          waiters?.add();
          context.waiters?.signal.addEventListener('abort', () => waiters?.remove(), { once: true });
          return flight.result;
        });
        return undefined;
      },
    },
    forget,
    stringify(result) {
      const shared = written.get(result);
      if (shared === undefined) return JSON.stringify(result);
      shared.bytes ??= Buffer.from(JSON.stringify(result));
      return shared.bytes;
    },
  };

  function forget(credential: string): void {
    flights.delete(credential);
    onForget(credential);
  }
}
