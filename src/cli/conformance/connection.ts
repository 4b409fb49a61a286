import { z } from 'zod';
import { clock } from '../../common/clock.ts';

/** What a client hears, in its order. `stream` names the operation. */
export type Heard =
  | { readonly kind: 'next'; readonly stream: string; readonly result: Result }
  /** Over a socket the message `error`; over HTTP an answer that is no stream. */
  | { readonly kind: 'error'; readonly stream: string; readonly code: string }
  | { readonly kind: 'complete'; readonly stream: string }
  | { readonly kind: 'bookmark'; readonly stream: string; readonly cursor: string }
  | { readonly kind: 'pong'; readonly payload: unknown }
  /** Only a sign of life: a comment, or a ping frame. */
  | { readonly kind: 'beat' }
  /** The code of a close frame; over HTTP 0. */
  | { readonly kind: 'closed'; readonly code: number };

export const ERRORS = z.array(z.object({ extensions: z.record(z.string(), z.unknown()).optional() }));
/** A GraphQL result. */
export const RESULT = z.object({ data: z.unknown().optional(), errors: ERRORS.optional() });
export type Result = z.infer<typeof RESULT>;

export interface Operation {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** A client's connection to the gateway. Everything that comes back is heard. */
export interface Connection extends AsyncDisposable {
  readonly heard: Hearing;
  query(stream: string, operation: Operation): Promise<void>;
  subscribe(stream: string, operation: Operation, lastEventId: string | undefined): Promise<void>;
  /** Sends a text unchanged. Only a socket takes one. */
  send(text: string): Promise<void>;
}

/** The code of a result's first error. */
export const codeOf = ({ errors }: Pick<Result, 'errors'>): string | undefined =>
  errors === undefined ? undefined : String(errors[0]?.extensions?.['code']);

/** What has been heard and was not taken yet. */
export class Hearing {
  readonly #waiting: Heard[] = [];
  #wake: (() => void) | undefined;

  push(heard: Heard): void {
    this.#waiting.push(heard);
    this.#wake?.();
  }

  /**
   * Takes the first item that concerns the caller. The others stay for later calls.
   *
   * @returns undefined if none comes in time
   */
  async next(concerns: (heard: Heard) => boolean, withinMs: number): Promise<Heard | undefined> {
    const deadline = clock.monotonic() + withinMs;
    for (;;) {
      const index = this.#waiting.findIndex(concerns);
      if (index >= 0) return this.#waiting.splice(index, 1)[0];
      const leftMs = deadline - clock.monotonic();
      if (leftMs <= 0) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = clock.setTimeout(resolve, leftMs);
      await promise.finally(() => clock.clearTimeout(timer));
    }
  }
}
