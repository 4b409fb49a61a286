import { type ExecutionResult, GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { PushStream, type Sink, WrappedStream } from '../../common/push-stream.ts';
import type { Identity } from '../../operation/identity.ts';
import { toPublicError } from '../public-errors.ts';

/** What this plugin needs of an operation's context. */
export interface ExpiringContext {
  readonly identity: Pick<Identity, 'isOverSocket' | 'untilExpiry' | 'hasEnded' | 'doubtIfRefused'>;
}

/**
 * Has the credential of a query or a mutation asked about again if the service has refused it there (auth/expiry-watch.ts). Ends a stream
 * over SSE with an error when the credential that opened it does; over a socket the socket is closed instead, which is what its clients come
 * back from. Its stream has to be inside the one of `error-masking.ts`, so it stands before that plugin: it needs the errors as they were thrown.
 */
export function useCredentialEnd(): Plugin<ExpiringContext> {
  return {
    onExecute({ args }) {
      const { identity } = args.contextValue;
      return { onExecuteDone: () => identity.doubtIfRefused() };
    },
    onSubscribe({ args }) {
      const context = args.contextValue;
      if (context.identity.isOverSocket) return {};
      return {
        onSubscribeResult({ result, setResult }) {
          if (result instanceof PushStream) setResult(new EndingStream(result, context.identity));
          else context.identity.doubtIfRefused();
        },
      };
    },
  };
}

const refuses = (error: GraphQLError): boolean =>
  toPublicError(error)?.extensions['code'] === 'UNAUTHENTICATED';

/** Whether the service has refused the credential for part of a result. */
const isRefused = ({ errors }: ExecutionResult): boolean => errors?.some(refuses) === true;

/** What another stream gives until it ends, or the credential does; leaving ends both. */
class EndingStream extends WrappedStream<ExecutionResult> {
  readonly #left = new AbortController();
  readonly #identity: ExpiringContext['identity'];
  readonly #failure: Promise<Error | undefined>;

  constructor(source: PushStream<ExecutionResult>, identity: ExpiringContext['identity']) {
    super(source);
    this.#identity = identity;
    // Nobody is streamed to who could not be identified to begin with.
    this.#failure = identity.untilExpiry(this.#left.signal).catch(() => undefined);
  }

  override connect(sink: Sink<ExecutionResult>): void {
    this.source.connect({
      // What could not be read because the credential has ended comes again under the next one.
      take: (item) => (isRefused(item) ? this.#takeIfHolds(item, sink) : sink.take(item)),
      finish: (error) => void this.#finish(error, sink),
      rests: () => sink.rests?.(),
    });
    void this.#failure.then((error) => error && this.#end(error, sink));
  }

  async #takeIfHolds(item: ExecutionResult, sink: Sink<ExecutionResult>): Promise<void> {
    const hasEnded = await this.#identity.hasEnded();
    // Where it has ended, the watch ends this stream as well.
    if (!hasEnded && !this.#left.signal.aborted) await sink.take(item);
  }

  /** A status whose reading the service has refused ends with that error: others may have the credential. */
  async #finish(error: unknown, sink: Sink<ExecutionResult>): Promise<void> {
    if (error instanceof Error && refuses(new GraphQLError('', { originalError: error })))
      await this.#identity.hasEnded();
    if (this.#left.signal.aborted) return;
    this.#left.abort();
    sink.finish(error);
  }

  #end(error: Error, sink: Sink<ExecutionResult>): void {
    if (this.#left.signal.aborted) return;
    this.stop();
    sink.finish(error);
  }

  override stop(): void {
    this.#left.abort();
    super.stop();
  }
}
