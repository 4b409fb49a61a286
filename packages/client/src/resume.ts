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
  /** Called before each result, with the answer that the gateway has sent. A result of a subscription carries it too, in its extensions. */
  sent(answer: Answer<unknown>): void;
}

/** Takes the results of a GraphQL library. */
export interface Following<Data> {
  readonly followed: Followed;
  /**
   * @param own the result as the library gives it
   * @param extensions those of the result, unless the library shows none
   * @param data where the sink is to have the library's own data, and not the gateway's
   */
  next(own: Answer<Data>, extensions?: Readonly<Record<string, unknown>>, data?: Data | null): void;
}

/**
 * Follows by a GraphQL library. Its links, exchanges or scheduler may hold a result for a while. Answers and bookmarks wait here in the
 * gateway's order, so that no bookmark passes an event that is still held, and each result gets its own answer.
 */
export function following<Data>(sink: Sink<Data>, checks: Followed['checks']): Following<Data> {
  /** Begins with an answer, unless it is empty. */
  const waiting: (Answer<unknown> | string)[] = [];
  let isSent = false;
  const tellBookmarks = (): void => {
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
      tellBookmarks();
    },
    sent(answer) {
      isSent = true;
      waiting.push(answer);
    },
  };
  return {
    followed,
    next(own, extensions, data) {
      // A link may have taken the extensions away.
      const sent =
        (extensions?.[FOLLOWED] as Answer<Data> | undefined) ?? (waiting[0] as Answer<Data> | undefined);
      if (sent === undefined) {
        // Another link sends nothing through this package. Where this one has, data without an answer is there a second time.
        if (!isSent || own.data == null) sink.next(own);
        return;
      }
      // An event that was dropped, or that a later one has overtaken, comes before that one. Its own result then finds no answer.
      for (const each of waiting.splice(0, waiting.indexOf(sent) + 1)) {
        if (typeof each === 'string') sink.bookmark(each);
        else {
          const isOwn = each === sent && data !== undefined && each.data != null;
          // The document determines the type of the data.
          sink.next(isOwn ? { data, errors: each.errors } : (each as Answer<Data>));
        }
      }
      tellBookmarks();
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
      sent(answer);
      const carrying = { ...answer, extensions: { ...answer.extensions, [FOLLOWED]: answer } };
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
