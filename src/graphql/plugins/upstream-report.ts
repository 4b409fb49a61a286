import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { clock } from '../../common/clock.ts';

/** One REST call beneath a result. */
interface ReportedCall {
  readonly method: string;
  readonly route: string;
  readonly path: string;
  readonly status: number | null;
  readonly milliseconds: number;
  /** In milliseconds of `performance.now()`. */
  readonly startedAt: number;
  readonly cached: boolean;
}

/** What this plugin needs of an operation's context. */
export interface ReportContext {
  readonly calls: readonly ReportedCall[];
  /** Whether the caller may know of them: a status alone tells an id of somebody else from one that nobody has. */
  readonly showsCalls: boolean;
  /** Calls of another operation whose result this one shares. */
  readonly sharedCalls: readonly ReportedCall[];
  /** How many look-ups each list's route has answered. */
  lookUps(): ReadonlyMap<string, number>;
}

/**
 * Adds `extensions.upstream` to every result of a caller that sees all of its client: each REST call it took, with its method,
 * path, status and duration; `began`, how many milliseconds into the operation (below zero where another operation had begun it earlier); `batched`, how many
 * look-ups of the operation it answered; `coalesced`, whether another operation had made it; and `cached`, whether an answer
 * read earlier served instead.
 */
export function useUpstreamReport(): Plugin<ReportContext> {
  return {
    onExecute({ args }) {
      const start = clock.monotonic();
      return {
        onExecuteDone({ result, setResult }) {
          if (isAsyncIterable(result) || !args.contextValue.showsCalls) return;
          const { calls, sharedCalls } = args.contextValue;
          const lookUps = args.contextValue.lookUps();
          const reported = (coalesced: boolean) => (call: ReportedCall) => ({
            method: call.method,
            route: call.route,
            path: call.path,
            status: call.status,
            began: toTenths(call.startedAt - start),
            milliseconds: toTenths(call.milliseconds),
            batched: lookUps.get(call.route) || 1,
            coalesced,
            cached: call.cached,
          });
          const upstream = [...calls.map(reported(false)), ...sharedCalls.map(reported(true))];
          setResult({ ...result, extensions: { ...result.extensions, upstream } });
        },
      };
    },
  };
}

const toTenths = (milliseconds: number): number => Math.round(milliseconds * 10) / 10;
