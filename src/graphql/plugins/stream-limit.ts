import { type ExecutionArgs, GraphQLError } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
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
  readonly identity: Pick<Identity, 'caller'>;
  readonly budget: Pick<Budget, 'openStream'>;
}

/** Refuses a stream where too many are open already. Must stand before the plugin that gives errors their public form. */
export function useStreamLimit(): Plugin<CountedContext> {
  return {
    onSubscribe({ args }) {
      return {
        onSubscribeResult({ result, setResult }) {
          if (!isAsyncIterable(result)) return;
          const { identity, budget } = args.contextValue;
          const refusal = budget.openStream(identity.caller, keptOf(args));
          if (refusal === undefined) return;
          void result[Symbol.asyncIterator]().return?.();
          setResult({ errors: [refusedStream(refusal)] });
        },
      };
    },
  };
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
