import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { Report } from '../../operation/report.ts';
import type { Way } from '../../operation/way.ts';

/** What this plugin needs of an operation's context. */
interface WayContext {
  readonly requestId: string;
  readonly report: Pick<Report, 'way'>;
}

/** Tells the way that each query and mutation took, once it has its result. */
export function useWays(tell: (way: Way, requestId: string) => void): Plugin<WayContext> {
  return {
    onExecute({ args }) {
      return {
        onExecuteDone({ result }) {
          if (!isAsyncIterable(result)) tell(args.contextValue.report.way, args.contextValue.requestId);
        },
      };
    },
  };
}
