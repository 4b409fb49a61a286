import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { clock } from '../../common/clock.ts';
import type { Identity } from '../../operation/identity.ts';
import type { Report } from '../../operation/report.ts';
import type { CallRecord } from '../../upstream/call/rest.ts';

/** What this plugin needs of an operation's context. */
export interface ReportContext {
  /** Whether the caller may know of them: a status alone tells an id of somebody else from one that nobody has. */
  readonly identity: Pick<Identity, 'seesCalls'>;
  readonly report: Pick<Report, 'calls' | 'sharedCalls' | 'lookUps' | 'way'>;
}

/**
 * Adds `extensions.upstream` to every result of a caller that sees all of its client: each REST call it took, with its method,
 * path and status; `began`, how many milliseconds into the operation it left (below zero where another operation had begun it
 * earlier); `milliseconds`, how long it took from then on; `waited`, how many milliseconds more it waited for a seat and for its turn in
 * this process; `batched`, how many look-ups of the operation its list answered, 1 where it read no list for it; `coalesced`, whether
 * another operation had made it; and `cached`, whether an answer read earlier served instead; `identifies`, whether it only found out who is calling. The calls of a
 * walk (upstream/lists/walk.ts) are not among them: it belongs to no operation. `extensions.way` says which way the operation took
 * through the layers (docs/layers.md).
 */
export function useUpstreamReport(): Plugin<ReportContext> {
  return {
    onExecute({ args }) {
      const start = clock.monotonic();
      return {
        onExecuteDone({ result, setResult }) {
          if (isAsyncIterable(result) || !args.contextValue.identity.seesCalls) return;
          const { calls, sharedCalls, way } = args.contextValue.report;
          const lookUps = args.contextValue.report.lookUps();
          const reported = (coalesced: boolean) => (call: CallRecord) => ({
            method: call.method,
            route: call.route,
            path: call.path,
            status: call.status,
            began: toTenths(call.startedAt - start),
            milliseconds: toTenths(call.milliseconds),
            waited: toTenths(call.queuedMs + call.unreadMs),
            batched: (!call.identifies && lookUps.get(call.route)) || 1,
            coalesced,
            cached: call.cached,
            identifies: call.identifies,
          });
          const upstream = [...calls.map(reported(false)), ...sharedCalls.map(reported(true))];
          setResult({ ...result, extensions: { ...result.extensions, upstream, way } });
        },
      };
    },
  };
}

const toTenths = (milliseconds: number): number => Math.round(milliseconds * 10) / 10;
