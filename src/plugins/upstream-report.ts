import { isAsyncIterable, type Plugin } from 'graphql-yoga';

/** One REST call beneath a result. */
interface ReportedCall {
  readonly method: string;
  readonly route: string;
  readonly status: number | null;
  readonly milliseconds: number;
}

/** What this plugin needs of an operation's context. */
export interface ReportContext {
  readonly calls: readonly ReportedCall[];
}

/** Adds `extensions.upstream` to every result: each REST call it took, with its route, status and duration. */
export function useUpstreamReport(): Plugin<ReportContext> {
  return {
    onExecute({ args }) {
      return {
        onExecuteDone({ result, setResult }) {
          if (isAsyncIterable(result)) return;
          const upstream = args.contextValue.calls.map((call) => ({
            ...call,
            milliseconds: Math.round(call.milliseconds * 10) / 10,
          }));
          setResult({ ...result, extensions: { ...result.extensions, upstream } });
        },
      };
    },
  };
}
