import type { ExecutionResult } from 'graphql';
import { PushStream, type Sink } from '../../common/push-stream.ts';
import type { Waiters } from '../../common/waiters.ts';

/** What the answer to a query is made of. */
export interface Asked {
  /** Those for whom it is executed. */
  readonly waiters: Waiters;
  execute(): Promise<ExecutionResult>;
  /** Told where there is no result, not even one of errors. */
  failed(): void;
}

/**
 * The result of a query over a socket, as a stream of one: graphql-ws ends a stream when its client wants nothing more of it, and
 * when the socket closes. The query is given up then, unless others have joined it.
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
