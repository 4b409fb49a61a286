import { type Connection, connect, type Observer } from './connect.ts';
import { EVENT_CURSOR } from './documents.ts';
import { Pause } from './pause.ts';
import { presence } from './presence.ts';
import { type Resumable, resumable } from './request.ts';
import {
  type Answer,
  ask,
  type Catching,
  type Details,
  isGapCode,
  placeOf,
  Refused,
  refusalOf,
  retryAfterOf,
  type Sink,
  type Source,
} from './source.ts';

/** The name in an operation's context that says that its caller reconnects by itself. */
export const FOLLOWED = 'pasarelaFollowed';

/** The value under that name: callbacks for what a GraphQL library does not pass on. */
export interface Followed {
  /** Called with the function that checks the connection. */
  checks(check: () => void): void;
  opened(catching?: Catching): void;
  bookmark(cursor: string): void;
  /**
   * Called before each result, with the answer that the gateway has sent.
   *
   * @returns the number of the answer, which the result carries in its extensions: a link that copies results keeps it
   */
  sent(answer: Answer<unknown>): number;
}

/** An answer for which no result has come yet. */
interface Held {
  readonly answer: Answer<unknown>;
  readonly serial: number;
}

/** The number of the last answer. No two subscriptions share one, because a link may give a result to both. */
let lastSerial = 0;

/** Takes the results of a GraphQL library. */
export interface Following<Data> {
  readonly followed: Followed;
  /**
   * @param own the result as the library gives it
   * @param extensions those of the result, unless the library shows none
   * @param data where the sink is to have the library's own data, and not the gateway's
   */
  next(own: Answer<Data>, extensions?: Readonly<Record<string, unknown>>, data?: Data | null): void;
  /**
   * The library has ended the subscription. If the gateway has completed it, what still waits comes first: nothing asks for it again.
   *
   * @param cause undefined if the gateway has completed it
   */
  ended(cause?: unknown): void;
}

/**
 * Follows by a GraphQL library. Its links, exchanges or scheduler may hold a result for a while. Answers and bookmarks wait here in the
 * gateway's order, so that no bookmark passes an event that is still held, and each result gets its own answer.
 */
export function following<Data>(sink: Sink<Data>, checks: Followed['checks']): Following<Data> {
  /** Begins with an answer, unless it is empty. */
  const waiting: (Held | string)[] = [];
  let isSent = false;
  /**
   * Hands on the first of what waits, and the bookmarks behind that.
   *
   * @param data what the sink is to have in the place of the last answer's data
   */
  const tell = (count: number, data?: Data | null): void => {
    for (const each of waiting.splice(0, count)) {
      count -= 1;
      if (typeof each === 'string') sink.bookmark(each);
      else {
        const { answer } = each;
        const isOwn = count === 0 && data !== undefined && answer.data != null;
        // The document determines the type of the data.
        sink.next(isOwn ? { data, errors: answer.errors } : (answer as Answer<Data>));
      }
    }
    while (typeof waiting[0] === 'string') sink.bookmark(String(waiting.shift()));
  };
  const followed: Followed = {
    checks(check) {
      // A link may subscribe anew, from the same place: what is still held comes again.
      waiting.length = 0;
      checks(check);
    },
    opened: (catching) => sink.opened(catching),
    bookmark(cursor) {
      waiting.push(cursor);
      tell(0);
    },
    sent(answer) {
      isSent = true;
      lastSerial += 1;
      waiting.push({ answer, serial: lastSerial });
      return lastSerial;
    },
  };
  return {
    followed,
    next(own, extensions, data) {
      // A link may have taken the extensions away.
      const serial = extensions?.[FOLLOWED] ?? (waiting[0] as Held | undefined)?.serial;
      if (serial === undefined) {
        // Another link sends nothing through this package. Where this one has, data without an answer is there a second time.
        if (!isSent || own.data == null) sink.next(own);
        return;
      }
      // An event that was dropped, or that a later one has overtaken, comes before that one. Its own result then finds no answer.
      tell(waiting.findIndex((each) => (each as Held).serial === serial) + 1, data);
    },
    ended(cause) {
      if (cause === undefined) tell(waiting.length);
      waiting.length = 0;
      sink.ended(cause);
    },
  };
}

type Variables = Readonly<Record<string, unknown>>;
/** A result for the library's observer. */
type Next = Pick<Sink<unknown>, 'next' | 'ended'>;

/**
 * Subscribes for a GraphQL library. If `follow` or `watch` asks through the library, it makes one attempt. For any other
 * caller it makes a subscription that resumes automatically: a subscription to the log begins at the present end of the log,
 * and resumes after the last cursor.
 */
export function subscribeFor(
  source: Source,
  text: string,
  variables: Variables,
  followed: unknown,
  sink: Next,
  details: Details,
): () => void {
  if (typeof followed === 'object' && followed !== null) {
    // Only this package writes under that name.
    const { checks, opened, bookmark, sent } = followed as Followed;
    checks(() => source.check?.());
    const next = (answer: Answer<unknown> & { readonly extensions?: object }): void => {
      const carrying = { ...answer, extensions: { ...answer.extensions, [FOLLOWED]: sent(answer) } };
      sink.next(carrying);
    };
    return source.subscribe(text, variables, { opened, bookmark, next, ended: sink.ended }, details);
  }
  const plain = new PlainSubscription(source, text, variables, sink, details);
  const stopPresence = presence(plain);
  return () => {
    stopPresence();
    plain.close();
  };
}

class PlainSubscription {
  readonly #source: Source;
  readonly #text: string;
  readonly #variables: Variables;
  readonly #sink: Next;
  readonly #details: Details;
  readonly #pause = new Pause();
  #connection: Connection | undefined;
  #closed = false;
  /** The cursor of the last event, once there is one. */
  #after: unknown;
  /** How many gaps have come since anything else has. */
  #gaps = 0;

  constructor(source: Source, text: string, variables: Variables, sink: Next, details: Details) {
    this.#source = source;
    this.#text = text;
    this.#variables = variables;
    this.#sink = sink;
    this.#details = details;
    // Started later, because a library must get its way to leave before its first result.
    void Promise.resolve().then(() => this.#start());
  }

  suspend(): void {
    this.#connection?.suspend();
  }

  resume(): void {
    this.#pause.wake();
    this.#connection?.resume();
  }

  close(): void {
    this.#closed = true;
    this.#connection?.close();
    this.#pause.wake(true);
  }

  async #start(): Promise<void> {
    try {
      const log = resumable(this.#text);
      if (log === undefined) {
        this.#connect(() => this.#variables, true, { ended: (refusal) => this.#end(refusal) });
        return;
      }
      this.#after = this.#variables[log.after] ?? log.start;
      await this.#follow(log);
    } catch (cause) {
      this.#end(cause instanceof Refused ? cause : new Refused({ message: String(cause) }));
    }
  }

  async #follow(log: Resumable): Promise<void> {
    // Otherwise events that come before the stream has begun would be missed.
    while (this.#after == null && !this.#closed) {
      try {
        this.#after = (await ask(this.#source, EVENT_CURSOR, {})).eventCursor;
      } catch (cause) {
        const refusal = refusalOf(cause);
        if (refusal !== undefined) throw refusal;
        await this.#pause.next(retryAfterOf(cause));
      }
    }
    this.#connect(() => ({ ...this.#variables, [log.after]: this.#after }), false, {
      bookmark: (cursor) => this.#pass(cursor),
      ended: (refusal) => {
        if (refusal === undefined || !isGapCode(refusal.code)) return this.#end(refusal);
        this.#gaps += 1;
        this.#after = placeOf(refusal.extensions, this.#gaps);
        this.#sink.next({ errors: [refusal] });
        void this.#follow(log).catch((cause) => this.#end(cause));
      },
    });
  }

  #pass(cursor: string): void {
    this.#after = cursor;
    this.#gaps = 0;
  }

  #connect(
    variables: () => Variables,
    completes: boolean,
    more: Pick<Observer<unknown>, 'ended' | 'bookmark'>,
  ): void {
    if (this.#closed) return;
    this.#connection = connect<unknown, Variables>(
      this.#source,
      this.#text,
      variables,
      completes,
      {
        opened() {},
        next: (data, errors) => {
          const [event] = Object.values(data as Readonly<Record<string, { cursor?: unknown } | null>>);
          if (typeof event?.cursor === 'string') this.#pass(event.cursor);
          this.#sink.next({ data, ...(errors && { errors }) });
        },
        lost() {},
        ...more,
      },
      this.#details,
    );
  }

  #end(refusal: Refused | undefined): void {
    if (this.#closed) return;
    if (refusal !== undefined) this.#sink.next({ errors: [refusal] });
    this.#sink.ended();
  }
}
