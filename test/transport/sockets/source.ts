import type { ExecutionResult } from 'graphql';
import { PushStream, type Sink } from '../../../src/common/push-stream.ts';
import { ORIGIN } from '../../../src/graphql/executor/graphql-js.ts';

/** A stream of results whose end and items a test decides on. */
export class Source extends PushStream<ExecutionResult> {
  readonly #items: ExecutionResult[] = [];
  #sink: Sink<ExecutionResult> | undefined;
  #busy = false;
  /** The number of the last event that it has seen. */
  #at: number;
  ended = false;
  /** Whether it is making a result of an event. */
  working = false;

  constructor(at = 0) {
    super();
    this.#at = at;
  }

  override caughtUpTo(): string | undefined {
    return this.#busy || this.working || this.ended || this.#sink === undefined ? undefined : `p${this.#at}`;
  }

  override bookmark(): string | undefined {
    return this.caughtUpTo() && `c${this.#at}`;
  }

  push(...numbers: readonly number[]): void {
    for (const number of numbers) {
      const origin = { type: 'MONEY_IN', receivedAt: new Date().toISOString(), cursor: `c${number}` };
      this.pushResult({ data: { number }, [ORIGIN]: origin } as ExecutionResult);
    }
  }

  pushResult(result: ExecutionResult): void {
    this.#items.push(result);
    void this.#pump();
  }

  end(): void {
    this.ended = true;
    void this.#pump();
  }

  override connect(sink: Sink<ExecutionResult>): void {
    this.#sink = sink;
    void this.#pump();
  }

  override stop(): void {
    this.#items.length = 0;
    this.#sink = undefined;
    this.ended = true;
  }

  async #pump(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let item = this.#items.shift(); item !== undefined; item = this.#items.shift()) {
      await this.#sink?.take(item);
      this.#at = Number(item.data?.['number'] ?? this.#at);
    }
    this.#busy = false;
    if (this.ended) this.#sink?.finish();
    else this.#sink?.rests?.();
  }
}
