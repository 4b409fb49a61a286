import type { Plugin } from 'graphql-yoga';
import { PushStream, type Sink, WrappedStream } from '../../common/push-stream.ts';
import type { Identity } from '../../operation/identity.ts';

/** What this plugin needs of an operation's context. */
export interface ExpiringContext {
  readonly identity: Pick<Identity, 'endsWithSocket' | 'untilExpiry'>;
}

/**
 * Ends a stream with an error when the credential that opened it does. Over a socket the socket is closed instead, which
 * is what its clients come back from. Must stand before the plugin that gives errors their public form.
 */
export function useCredentialExpiry(): Plugin<ExpiringContext> {
  return {
    onSubscribe({ args }) {
      const context = args.contextValue;
      if (context.identity.endsWithSocket) return {};
      return {
        onSubscribeResult({ result, setResult }) {
          if (!(result instanceof PushStream)) return;
          setResult(new EndingStream(result, (signal) => context.identity.untilExpiry(signal)));
        },
      };
    },
  };
}

/** What another stream gives until it ends, or a failure comes first; leaving ends both. */
class EndingStream<T> extends WrappedStream<T> {
  readonly #left = new AbortController();
  readonly #failure: Promise<Error | undefined>;

  constructor(source: PushStream<T>, failure: (signal: AbortSignal) => Promise<Error | undefined>) {
    super(source);
    // Nobody is streamed to who could not be identified to begin with.
    this.#failure = failure(this.#left.signal).catch(() => undefined);
  }

  override connect(sink: Sink<T>): void {
    this.source.connect({
      take: (item) => sink.take(item),
      finish: (error) => {
        this.#left.abort();
        sink.finish(error);
      },
      rests: () => sink.rests?.(),
    });
    void this.#failure.then((error) => {
      if (error === undefined || this.#left.signal.aborted) return;
      this.stop();
      sink.finish(error);
    });
  }

  override stop(): void {
    this.#left.abort();
    super.stop();
  }
}
