import type { ExecutionResult } from 'graphql';
import { PushStream, type Sink } from '../../common/push-stream.ts';
import type { Waiters } from '../../common/waiters.ts';

/** The parts of an answer to a query. */
export interface Asked {
  /** The operations that wait for its result. */
  readonly waiters: Waiters;
  execute(): Promise<ExecutionResult>;
  /** Called with the reason if there is no result, not even one of errors. */
  failed(error: unknown): void;
}

/**
 * The result of a query over a socket, as a stream of one result: graphql-ws ends a stream when its client completes it, and
 * when the socket closes. The query is then given up, unless others have joined it.
 */
export class Answer extends PushStream<ExecutionResult> {
  readonly #asked: Asked;
  #isWaiting = true;

  constructor(asked: Asked) {
    super();
    this.#asked = asked;
  }

  override connect(sink: Sink<ExecutionResult>): void {
    const { execute, failed } = this.#asked;
    execute().then((result) => {
      void sink.take(result);
      sink.finish();
    }, failed);
  }

  override stop(): void {
    if (this.#isWaiting) this.#asked.waiters.remove();
    this.#isWaiting = false;
  }
}
