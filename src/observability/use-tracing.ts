import {
  type Context,
  context,
  createContextKey,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
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

/** One pull of a subscription's stream: the log may open a span when it hands over an event meanwhile; the span ends with the pull. */
interface Pull {
  span: Span | undefined;
}

const PULL = createContextKey('pasarela: the pull of a stream');

/** Hands the span of an event's delivery to the pull that asked for the event; false where nobody did. */
export function takesDelivery(span: Span): boolean {
  const pull = pullOf(context.active());
  if (pull === undefined || pull.span !== undefined) return false;
  pull.span = span;
  return true;
}

/** The context that something done now belongs to: the delivery of an event, else the operation. */
export function currentWork(): Context {
  const active = context.active();
  const span = pullOf(active)?.span;
  return span === undefined ? active : trace.setSpan(active, span);
}

// Nothing else is stored under this key.
const pullOf = (active: Context): Pull | undefined => active.getValue(PULL) as Pull | undefined;

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
      setExecuteFn((given) => context.with(trace.setSpan(context.active(), span), () => executeFn(given)));
      return {
        onExecuteDone({ result }) {
          end(span, isAsyncIterable(result) ? {} : result);
        },
      };
    },
    onSubscribe({ args, subscribeFn, setSubscribeFn }) {
      const span = begin(args);
      setSubscribeFn((given) =>
        context.with(trace.setSpan(context.active(), span), () => subscribeFn(given)),
      );
      return {
        onSubscribeResult({ result, setResult }) {
          end(span, isAsyncIterable(result) ? {} : result);
          if (isAsyncIterable(result)) setResult(withPulls(result));
        },
        onSubscribeError() {
          span.setStatus({ code: SpanStatusCode.ERROR }).end();
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

/** The same stream, each pull of which is told apart by its context. */
function withPulls<T>(source: AsyncIterable<T>): AsyncGenerator<T, void> {
  // What graphql-js and the plugins make are generators.
  const inner = source[Symbol.asyncIterator]() as AsyncGenerator<T, void>;
  return {
    async next() {
      const pull: Pull = { span: undefined };
      try {
        return await context.with(context.active().setValue(PULL, pull), () => inner.next());
      } finally {
        pull.span?.end();
      }
    },
    return: (value) => inner.return(value),
    throw: (error) => inner.throw(error),
    [Symbol.asyncIterator]() {
      return this;
    },
    [Symbol.asyncDispose]: async () => void (await inner.return()),
  };
}
