import type { OperationTypeNode } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { clock } from '../../common/clock.ts';
import type { Report } from '../../operation/report.ts';
import type { Way } from '../../operation/way.ts';
import { preparedOperation } from '../documents/prepared-operation.ts';

/** The longest name of an operation that is told: whoever asks has chosen it. */
const NAME_LENGTH = 100;

/** An operation that has its result. */
export interface Done {
  readonly requestId: string;
  readonly type: OperationTypeNode | undefined;
  /** The beginning of its name; undefined where it has none. */
  readonly operationName: string | undefined;
  /** From when the executor had it until its result, the wait for its turn included. */
  readonly milliseconds: number;
}

/** What this plugin needs of an operation's context. */
interface WayContext {
  readonly requestId: string;
  readonly report: Pick<Report, 'way'>;
}

/** Tells the way that each query and mutation took, once it has its result. */
export function useWays(tell: (way: Way, done: Done) => void): Plugin<WayContext> {
  return {
    onExecute({ args }) {
      const start = clock.monotonic();
      return {
        onExecuteDone({ result }) {
          if (isAsyncIterable(result)) return;
          const { report, requestId } = args.contextValue;
          const operation = preparedOperation(args);
          const operationName = operation?.name?.slice(0, NAME_LENGTH);
          const milliseconds = clock.monotonic() - start;
          tell(report.way, { requestId, type: operation?.type, operationName, milliseconds });
        },
      };
    },
  };
}
