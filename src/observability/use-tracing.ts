import { context, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import type { ExecutionArgs, ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';

/** What this plugin needs of an operation's context. */
export interface TraceContext {
  readonly requestId: string;
}

/** What a span says of an operation. */
interface NamedOperation {
  readonly type: string;
  readonly name: string | undefined;
}

/** Finds the operation that is about to be executed; undefined where the document holds none of that name. */
export type FindOperation = (args: ExecutionArgs) => NamedOperation | undefined;

/**
 * A span for each operation, beneath which its REST calls stand. Of a subscription it covers the opening; each event then
 * has a span of its own (tracing.ts). A span names type and name of the operation, and never the document: that may hold
 * what is secret. Must stand behind the plugins that choose how to execute and that mask errors.
 */
export function useTracing(tracer: Tracer, findOperation: FindOperation): Plugin<TraceContext> {
  const begin = (args: ExecutionArgs & { readonly contextValue: TraceContext }): Span => {
    const operation = findOperation(args);
    const type = operation?.type ?? 'query';
    const name = operation?.name;
    return tracer.startSpan(type, {
      kind: SpanKind.SERVER,
      attributes: {
        'graphql.operation.type': type,
        ...(name === undefined ? {} : { 'graphql.operation.name': name }),
        'pasarela.request_id': args.contextValue.requestId,
      },
    });
  };
  return {
    onExecute({ args, executeFn, setExecuteFn }) {
      const span = begin(args);
      setExecuteFn((args) => context.with(trace.setSpan(context.active(), span), () => executeFn(args)));
      return {
        onExecuteDone({ result }) {
          end(span, isAsyncIterable(result) ? {} : result);
        },
      };
    },
    onSubscribe({ args, subscribeFn, setSubscribeFn }) {
      const span = begin(args);
      setSubscribeFn((args) => context.with(trace.setSpan(context.active(), span), () => subscribeFn(args)));
      return {
        onSubscribeResult({ result }) {
          end(span, isAsyncIterable(result) ? {} : result);
        },
      };
    },
  };
}

function end(span: Span, { errors = [] }: ExecutionResult): void {
  if (errors.length > 0) {
    const codes = new Set(errors.map(({ extensions }) => String(extensions['code'] ?? 'INTERNAL')));
    span.setAttribute('graphql.error.codes', [...codes]).setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}
