import { OperationTypeNode } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { clock } from '../../common/clock.ts';
import type { Full } from '../../common/refusals.ts';
import type { Budget } from '../../operation/budget.ts';
import { toldOfGroup } from '../../operation/caller-keys.ts';
import type { Identity } from '../../operation/identity.ts';
import type { Report } from '../../operation/report.ts';
import type { Way } from '../../operation/way.ts';
import { preparedOperation } from '../documents/prepared-operation.ts';

/** `left`: a query whose result carried an error, and whose callers had all left before: they may be the reason. */
type OperationOutcome = 'ok' | 'error' | 'left';

/**
 * @param type `query`, `mutation` or `subscription`.
 * @param outcome whether the result carried an error.
 * @param milliseconds until the result was there, the wait for its seat included; of a subscription until it was open.
 */
export type OperationObserver = (type: string, outcome: OperationOutcome, milliseconds: number) => void;

/** The longest name of an operation that is told: whoever asks has chosen it. */
const NAME_LENGTH = 100;

/** A query or a mutation that has its result. */
export interface Done {
  readonly requestId: string;
  readonly type: OperationTypeNode | undefined;
  /** The beginning of its name; undefined where it has none. */
  readonly operationName: string | undefined;
  /** Whose it is: what the group is that it counts for, and its client where the group has one. */
  readonly of: string;
  readonly clientId?: string;
  /** From when the executor had it until its result, the wait for its seat included. */
  readonly milliseconds: number;
  /**
   * How long its fields waited for pages of the event log, added up; undefined where it read none. What several wait for at once counts for
   * each, so it may exceed `milliseconds`.
   */
  readonly eventLogMs: number | undefined;
  /**
   * How long before the operation the oldest answer of the REST service that it shows was asked for, of those that another operation had
   * asked for; undefined where it has none of these.
   */
  readonly oldestReadMs: number | undefined;
  /** How long it waited for its seat; undefined where it had one at once, or took none. */
  readonly seatMs: number | undefined;
  /** How long it waited for lists to be read to their ends, several at once counted once; undefined where for none. */
  readonly walkMs: number | undefined;
  /** How many REST calls it had made by then. */
  readonly calls: number;
  /** How long these waited for their seats, and their answers for their turns, added up: calls that wait at once each count. */
  readonly callWaitMs: number;
  /** By its document and page sizes; undefined where it was refused before that was counted. */
  readonly cost: number | undefined;
  /** The code of its first error; undefined where it has none. */
  readonly code: unknown;
  /** What was full where it was refused a seat. */
  readonly full: Full | undefined;
}

/** What this plugin needs of an operation's context. */
interface DoneContext {
  readonly requestId: string;
  readonly identity: Pick<Identity, 'requester'>;
  readonly report: Pick<
    Report,
    'way' | 'oldestSharedAt' | 'full' | 'cost' | 'seatMs' | 'walkMs' | 'ownCalls'
  >;
  readonly budget: Pick<Budget, 'eventLogMs' | 'waiters'>;
}

/**
 * Reports each operation once.
 *
 * @param tell called besides with the way that each query and mutation took to its result.
 */
export function useOperationMetrics(
  observe: OperationObserver,
  tell: (way: Way, done: Done) => void,
): Plugin<DoneContext> {
  const outcome = (result: { readonly errors?: readonly unknown[] | undefined }) =>
    result.errors === undefined ? 'ok' : 'error';
  return {
    onExecute({ args }) {
      const start = clock.monotonic();
      return {
        onExecuteDone({ result }) {
          if (isAsyncIterable(result)) return;
          const milliseconds = clock.monotonic() - start;
          const operation = preparedOperation(args);
          const type = operation?.type;
          const { report, requestId, budget, identity } = args.contextValue;
          // A change goes on without its caller, and fails for reasons of its own.
          const hasLeft = type === OperationTypeNode.QUERY && budget.waiters?.isGone === true;
          const reached = outcome(result);
          observe(type ?? 'query', reached === 'error' && hasLeft ? 'left' : reached, milliseconds);
          const operationName = operation?.name?.slice(0, NAME_LENGTH);
          const { eventLogMs } = budget;
          const { oldestSharedAt, way, full, cost, seatMs, walkMs, ownCalls } = report;
          const oldestReadMs = oldestSharedAt === undefined ? undefined : Math.max(0, start - oldestSharedAt);
          const whose = toldOfGroup(identity.requester.group);
          const code = result.errors?.[0]?.extensions['code'];
          const waits = { milliseconds, seatMs, walkMs, ...ownCalls, eventLogMs, oldestReadMs };
          tell(way, { requestId, type, operationName, ...whose, ...waits, cost, code, full });
        },
      };
    },
    onSubscribe() {
      const start = clock.monotonic();
      return {
        onSubscribeResult({ result }) {
          const reached = isAsyncIterable(result) ? 'ok' : outcome(result);
          observe('subscription', reached, clock.monotonic() - start);
        },
      };
    },
  };
}
