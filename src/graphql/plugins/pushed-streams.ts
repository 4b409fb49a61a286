import type { ExecutionResult } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { PushStream } from '../../common/push-stream.ts';

/** A result that stands for a stream, as long as Yoga has it in its hands. */
class Pushed {
  readonly stream: PushStream<ExecutionResult>;

  constructor(stream: PushStream<ExecutionResult>) {
    this.stream = stream;
  }
}

/**
 * Hands streams to transports as streams that push. Yoga wraps everything that can be iterated in iterators of its own, which
 * pull: a stream in a wrapping of ours is left alone. Over HTTP it is taken out as soon as Yoga has done so. Must be the last
 * plugin that changes results.
 */
export function usePushedStreams(): Plugin {
  return {
    onExecutionResult({ result, setResult }) {
      // A stream is one of results, whatever Yoga calls what it has not looked into.
      if (result instanceof Pushed) setResult(result.stream as AsyncIterable<ExecutionResult>);
    },
    onSubscribe() {
      return {
        onSubscribeResult({ result, setResult }) {
          // Nothing but Yoga sees it before it is unwrapped, and Yoga looks for errors alone.
          if (result instanceof PushStream) setResult(new Pushed(result) as ExecutionResult);
        },
      };
    },
  };
}

/** What subscribing has come to: the stream, or the result that there is instead. */
export function unwrapped(result: unknown): ExecutionResult | PushStream<ExecutionResult> {
  // The plugins make results of all that is no stream.
  return result instanceof Pushed ? result.stream : (result as ExecutionResult);
}
