import { connect } from './connect.ts';
import { type FieldOf, fieldOf } from './documents.ts';
import { tellAll } from './listeners.ts';
import { Pause } from './pause.ts';
import { type Presence, presence } from './presence.ts';
import { Refused, type Source, type TypedDocument } from './source.ts';

/** The states of one thing, from the present one to the final one, after which the iteration ends. */
export interface Watch<Update> extends AsyncIterable<Update> {
  readonly status: 'live' | 'offline';
  /**
   * Why it is offline; or, while it is live, the first error of the fields that the gateway could not give of the last
   * update.
   */
  readonly problem: unknown;
  onChange(listener: () => void): () => void;
  suspend(): void;
  resume(): void;
  close(): void;
}

/**
 * Watches `cepStatus`, `transactionStatus`, or any subscription that begins with the present state and completes on a final
 * one. After a lost connection it begins again with the state of that moment, so there is no cursor to keep.
 *
 * The iteration throws `Refused` if the gateway will never serve the request.
 */
export function watch<Data, Variables>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  variables: Variables,
  present: Presence = presence,
): Watch<FieldOf<Data>> {
  const listeners = new Set<() => void>();
  /** What waits to be read, and whether and why nothing comes after it. */
  const updates: FieldOf<Data>[] = [];
  const arrival = new Pause();
  let isOver = false;
  let refusal: Refused | undefined;
  const end = (why?: Refused) => {
    isOver = true;
    refusal ??= why;
    arrival.wake();
  };
  const watched = {
    status: 'offline' as 'live' | 'offline',
    problem: undefined as unknown,
    onChange(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [Symbol.asyncIterator]: read,
  };
  const change = (status: typeof watched.status, problem?: unknown) => {
    Object.assign(watched, { status, problem });
    tellAll(listeners);
  };
  const connection = connect(source, document, () => variables, true, {
    opened: () => change('live'),
    next(data, errors) {
      updates.push(fieldOf(data));
      arrival.wake();
      change('live', errors?.[0] && new Refused(errors[0]));
    },
    lost: (cause) => change('offline', cause),
    ended: end,
  });
  const stopPresence = present(connection);
  const close = () => {
    stopPresence();
    connection.close();
    end();
  };
  async function* read(): AsyncGenerator<FieldOf<Data>, void> {
    try {
      for (;;) {
        const update = updates.shift();
        if (update !== undefined) yield update;
        else if (!isOver) await arrival.wait();
        else if (refusal) throw refusal;
        else return;
      }
    } finally {
      close();
      change('offline', watched.problem);
    }
  }
  return Object.assign(watched, connection, { close });
}
