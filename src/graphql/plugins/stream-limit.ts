import { type ExecutionArgs, GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Caller } from '../../auth/caller.ts';
import { sizeOf } from '../../common/size.ts';
import type { Budget } from '../../operation/budget.ts';
import type { Identity } from '../../operation/identity.ts';
import {
  type KeptBytes,
  noteRefusedStream,
  STREAM_REFUSALS,
  type StreamRefusal,
} from '../../operation/streams.ts';
import { preparedDocument } from '../documents/prepared-operation.ts';

/** What this plugin needs of an operation's context. */
export interface CountedContext {
  readonly identity: Pick<Identity, 'identify'>;
  readonly budget: Pick<Budget, 'countsStreams' | 'openStream'>;
}

/**
 * Refuses a stream over SSE where too many are open already; `transport/sockets` counts sockets. The seat is asked for once the
 * caller is known, and before the field subscribes: a stream that is refused reads nothing of the event log or of the REST service.
 * Must stand before the plugin that gives errors their public form.
 */
export function useStreamLimit(): Plugin<CountedContext> {
  return {
    onSubscribe({ args, subscribeFn, setSubscribeFn }) {
      const { identity, budget } = args.contextValue;
      if (!budget.countsStreams) return;
      setSubscribeFn(async (given) => {
        const caller = await callerOf(identity);
        const refusal = caller && budget.openStream(caller, keptOf(args));
        return refusal === undefined ? subscribeFn(given) : { errors: [refusedStream(refusal)] };
      });
    },
  };
}

/** Who is calling; undefined where that cannot be found out, which the field says, as its rights ask the same. */
async function callerOf(identity: CountedContext['identity']): Promise<Caller | undefined> {
  try {
    return await identity.identify();
  } catch {
    return undefined;
  }
}

/** What an operation keeps as long as it lasts. */
export function keptOf({
  schema,
  document,
  variableValues,
}: Pick<ExecutionArgs, 'schema' | 'document' | 'variableValues'>): KeptBytes {
  const prepared = preparedDocument(schema, document);
  return {
    bytes: variableValues == null ? 0 : sizeOf(variableValues),
    document: prepared,
    documentBytes: prepared.bytes,
  };
}

/** Returns the error of a stream that is refused, and counts it. */
export function refusedStream(refusal: StreamRefusal): GraphQLError {
  noteRefusedStream(refusal);
  return new GraphQLError(STREAM_REFUSALS[refusal], {
    extensions: { code: 'TOO_COMPLEX', retryable: true },
  });
}
