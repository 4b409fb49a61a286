import { connect } from './connect.ts';
import { type FieldOf, fieldOf } from './documents.ts';
import { type Presence, presence } from './presence.ts';
import { Refused, type Source, type TypedDocument } from './source.ts';

/** The states of one thing, from the one of the moment to the final one, after which the iteration ends. */
export interface Watch<Update> extends AsyncIterable<Update> {
  readonly status: 'live' | 'offline';
  /** Why it is offline; or, while it is live, the first of what the gateway could not give of the last update. */
  readonly problem: unknown;
  onChange(listener: () => void): () => void;
  suspend(): void;
  resume(): void;
  close(): void;
}

/** Updates that wait to be read, and the end after them. */
class Updates<Update> {
  readonly #waiting: Update[] = [];
  #isEnded = false;
  #refusal: Error | undefined;
  #wake = (): void => {};

  push(update: Update): void {
    this.#waiting.push(update);
    this.#wake();
  }

  end(refusal?: Error): void {
    this.#isEnded = true;
    this.#refusal ??= refusal;
    this.#wake();
  }

  /** Every update in its order. Throws the refusal behind the last one, where there is one. */
  async *all(): AsyncGenerator<Update, void> {
    for (;;) {
      const update = this.#waiting.shift();
      if (update !== undefined) {
        yield update;
      } else if (this.#isEnded) {
        if (this.#refusal !== undefined) throw this.#refusal;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

/**
 * Watches `cepStatus`, `transactionStatus`, or any subscription that begins with the state of the moment and completes on a
 * final one. After a lost connection it begins again with the state of that moment: there is no cursor to keep.
 *
 * The iteration throws `Refused` where the gateway will never serve the request.
 */
export function watch<Data, Variables>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  variables: Variables,
  present: Presence = presence,
): Watch<FieldOf<Data>> {
  const listeners = new Set<() => void>();
  const updates = new Updates<FieldOf<Data>>();
  let status: 'live' | 'offline' = 'offline';
  let problem: unknown;
  const change = (next: typeof status, why?: unknown) => {
    status = next;
    problem = why;
    for (const listener of listeners) listener();
  };
  const connection = connect(source, document, () => variables, true, {
    opened: () => change('live'),
    next(data, errors) {
      updates.push(fieldOf(data));
      change('live', errors?.[0] && new Refused(errors[0]));
    },
    lost: (cause) => change('offline', cause),
    ended: (refusal) => updates.end(refusal),
  });
  const stopPresence = present(connection);
  const close = () => {
    stopPresence();
    connection.close();
    updates.end();
  };
  return {
    get status() {
      return status;
    },
    get problem() {
      return problem;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    suspend: () => connection.suspend(),
    resume: () => connection.resume(),
    close,
    async *[Symbol.asyncIterator]() {
      try {
        yield* updates.all();
      } finally {
        close();
      }
    },
  };
}
