import { ambient } from './ambient.ts';
import { Pause } from './pause.ts';
import {
  type Catching,
  type Details,
  isGapCode,
  type Problem,
  Refused,
  refusalOf,
  retryAfterOf,
  type Sink,
  type Source,
  type TypedDocument,
} from './source.ts';

/** If a connection was up for this long, in milliseconds, the next try follows at once. */
const STEADY_MS = 5_000;
/** The reason of an attempt that was ended here. */
const LEFT = {};

export interface Observer<Data> {
  /** The gateway has accepted the connection. */
  opened(catching: Catching | undefined): void;
  /** @param errors the fields that the gateway could not give */
  next(data: Data, errors: readonly Problem[] | undefined): void;
  bookmark?(cursor: string): void;
  /** The connection is gone, and another will be made. */
  lost(cause: unknown): void;
  /** Nothing more will come. @param refusal undefined if the gateway has completed the stream. */
  ended(refusal: Refused | undefined): void;
}

export interface Connection {
  /** Ends the connection, and makes none until `resume`. */
  suspend(): void;
  /** Connects again at once. An open connection is checked, also one that others have kept meanwhile. */
  resume(): void;
  close(): void;
}

/** Ends the present attempt. */
interface Current {
  leave(): void;
}

/** Subscribes once. @returns why the stream ended: undefined if the gateway has completed it, `LEFT` if it was ended here. */
const attempt = <Data>(
  subscribe: (sink: Sink<Data>) => () => void,
  observer: Observer<Data>,
  pause: Pause,
  current: Current,
): Promise<unknown> =>
  new Promise((resolve) => {
    let over = false;
    let openedAt: number | undefined;
    let off: (() => void) | undefined;
    const end = (cause?: unknown): void => {
      if (over) return;
      over = true;
      off?.();
      if (openedAt !== undefined && ambient.now() - openedAt > STEADY_MS) pause.reset();
      resolve(cause);
    };
    current.leave = () => end(LEFT);
    const sink: Sink<Data> = {
      opened(catching) {
        if (over || openedAt !== undefined) return;
        openedAt = ambient.now();
        observer.opened(catching);
      },
      next({ data, errors }) {
        if (over) return;
        try {
          if (data != null) {
            pause.reset();
            observer.next(data, errors);
          } else if (errors?.[0]) throw new Refused(errors[0]);
        } catch (cause) {
          end(cause);
        }
      },
      bookmark(cursor) {
        if (!over) observer.bookmark?.(cursor);
      },
      ended: end,
    };
    try {
      off = subscribe(sink);
    } catch (cause) {
      // The document cannot be sent.
      end(cause);
    }
    if (over) off?.();
  });

/**
 * Keeps a subscription up, by one attempt after another, until the gateway gives a final answer.
 *
 * @param variables called before each attempt, so that a resumed stream begins where the last one ended
 * @param completes true of a stream that begins with the present state, and has ended when the gateway completes it; any other
 * is asked for again then
 */
export function connect<Data, Variables>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  variables: () => Variables,
  completes: boolean,
  observer: Observer<Data>,
  details?: Details,
): Connection {
  const pause = new Pause();
  const current: Current = { leave() {} };
  let closed = false;
  let suspended = false;

  void (async () => {
    while (!closed) {
      if (suspended) {
        await pause.wait();
        continue;
      }
      const cause = await attempt<Data>(
        (sink) => source.subscribe(document, variables(), sink, details),
        observer,
        pause,
        current,
      );
      if (closed) return;
      const refusal = refusalOf(cause);
      if (cause === LEFT) {
        observer.lost(undefined);
        // Gateways up to version 0.2 end a state by a gap of the log. The next stream begins with the state of that moment.
      } else if (completes ? cause === undefined || (refusal && !isGapCode(refusal.code)) : refusal) {
        return observer.ended(refusal);
      } else {
        observer.lost(cause);
        await pause.next(retryAfterOf(cause));
      }
    }
  })();

  return {
    suspend() {
      suspended = true;
      current.leave();
    },
    resume() {
      // An attempt under way may wait for a network that is gone. Where this one was suspended, others may have kept its connection.
      source.check?.();
      suspended = false;
      pause.wake();
    },
    close() {
      closed = true;
      current.leave();
      pause.wake(true);
    },
  };
}
