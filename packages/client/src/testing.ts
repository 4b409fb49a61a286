import { EVENT_CURSOR, MISSED } from './documents.ts';
import { requestOf, resumable } from './request.ts';
import { type Answer, type Problem, type Sink, type Source, type TypedDocument, within } from './source.ts';

/** For unit tests of an app: without a network. The test gives every answer. The pauses of `pay` and `follow` pass on the platform's timers. */

export interface FakeCall {
  /** The request that would be sent. */
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  answer(answer: Answer<unknown>): void;
  /** Ends the call without an answer. */
  lose(cause?: unknown): void;
}

export interface FakeSubscription {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly sink: Sink<unknown>;
}

/** A source whose calls and subscriptions wait for the test to take them, the oldest first. */
export interface FakeSource extends Source {
  readonly calls: FakeCall[];
  readonly subscriptions: FakeSubscription[];
}

export function createFakeSource(): FakeSource {
  const calls: FakeCall[] = [];
  const subscriptions: FakeSubscription[] = [];
  return {
    calls,
    subscriptions,
    query: <Data, Variables>(
      document: TypedDocument<Data, Variables>,
      variables: Variables,
      signal?: AbortSignal,
    ) =>
      within(
        undefined,
        (left) =>
          new Promise<Answer<Data>>((resolve, reject) => {
            const call: FakeCall = {
              ...requestOf(document, variables),
              // The test answers what the document asks for.
              answer: (answer) => take(calls, call) && resolve(answer as Answer<Data>),
              lose: (cause = new Error('The network is gone.')) => take(calls, call) && reject(cause),
            };
            left.addEventListener('abort', () => call.lose());
            calls.push(call);
          }),
        signal,
      ),
    subscribe(document, variables, sink) {
      const { catching, ...request } = requestOf(document, variables);
      const ended: Sink<unknown>['ended'] = (cause) => take(subscriptions, subscription) && sink.ended(cause);
      // As above.
      const next = sink.next as Sink<unknown>['next'];
      const opened = () => sink.opened(catching);
      const subscription: FakeSubscription = { ...request, sink: { ...sink, next, opened, ended } };
      subscriptions.push(subscription);
      return () => void take(subscriptions, subscription);
    },
  };
}

function take<Item>(list: Item[], item: Item): boolean {
  const place = list.indexOf(item);
  if (place >= 0) list.splice(place, 1);
  return place >= 0;
}

/** A gateway with a log of events. The test gives the answers to everything else. */
export interface FakeGateway {
  /** Returns a source; one for each tab, or device, of a test. */
  connect(): Source;
  /** Adds an event to the log. @returns its cursor. */
  deliver(event: Readonly<Record<string, unknown>>): string;
  /** Breaks every connection: streams end, and calls under way get no answer. New ones are accepted. */
  cut(): void;
  /** Breaks every connection, and refuses new ones until it is `up` again. */
  down(): void;
  up(): void;
  /** Forgets the oldest events. */
  forget(count: number): void;
  /** Sets how the other queries and mutations are answered. */
  onCall: (
    query: string,
    variables: Readonly<Record<string, unknown>>,
  ) => Answer<unknown> | Promise<Answer<unknown>>;
}

type Event = Readonly<Record<string, unknown>>;

/** The events of a fake gateway, with cursors that count them. */
class FakeLog {
  readonly #events: Event[] = [];
  #forgotten = 0;

  head(): string {
    return cursor(this.#forgotten + this.#events.length);
  }

  append(event: Event): Event & { readonly cursor: string } {
    const whole = { ...event, cursor: cursor(this.#forgotten + this.#events.length + 1) };
    this.#events.push(whole);
    return whole;
  }

  forget(count: number): void {
    this.#forgotten += this.#events.splice(0, count).length;
  }

  /** Returns the events after a cursor; the refusal if those are gone. */
  after(place: unknown): readonly Event[] | Problem {
    const passed = Number(/^place-(\d+)$/.exec(String(place))?.[1]) - this.#forgotten;
    if (passed >= 0 && passed <= this.#events.length) return this.#events.slice(passed);
    const code = passed < 0 ? 'EVENTS_GAP' : 'CURSOR_INVALID';
    const extensions = { code, oldest: cursor(this.#forgotten), head: this.head() };
    return { message: 'Events after this cursor are gone.', extensions };
  }
}

const cursor = (place: number): string => `place-${place}`;

interface FakeStream {
  /** The field of the subscription in a result. */
  readonly field: string;
  readonly sink: Sink<unknown>;
}

/** What all connections to a fake gateway share. */
interface Shared {
  readonly log: FakeLog;
  readonly open: Set<FakeStream>;
  /** Breaks the connection of each call under way. */
  readonly calls: Set<(cause: Error) => void>;
  isUp: boolean;
}

export function createFakeGateway(): FakeGateway {
  const shared: Shared = { log: new FakeLog(), open: new Set(), calls: new Set(), isUp: true };
  const gateway: FakeGateway = {
    onCall: () => ({ errors: [{ message: 'Nobody answers that here.', extensions: { code: 'FORBIDDEN' } }] }),
    deliver(event) {
      const whole = shared.log.append(event);
      for (const { field, sink } of shared.open) sink.next({ data: { [field]: whole } });
      return whole.cursor;
    },
    cut() {
      const cause = new Error('The connection was cut.');
      for (const lose of shared.calls) lose(cause);
      for (const one of [...shared.open]) {
        shared.open.delete(one);
        one.sink.ended(cause);
      }
    },
    down() {
      shared.isUp = false;
      gateway.cut();
    },
    up() {
      shared.isUp = true;
    },
    forget: (count) => shared.log.forget(count),
    connect: () => ({
      query: querying(shared, (query, variables) => gateway.onCall(query, variables)),
      subscribe: subscribing(shared),
    }),
  };
  return gateway;
}

const querying =
  (shared: Shared, onCall: FakeGateway['onCall']): Source['query'] =>
  async <Data, Variables>(
    document: TypedDocument<Data, Variables>,
    variables: Variables,
    signal?: AbortSignal,
  ) => {
    if (!shared.isUp) throw new Error('The gateway is away.');
    const request = requestOf(document, variables);
    const answer = (): Answer<unknown> | Promise<Answer<unknown>> => {
      if (request.query === EVENT_CURSOR) return { data: { eventCursor: shared.log.head() } };
      if (request.query !== MISSED) return onCall(request.query, request.variables);
      const nodes = shared.log.after(request.variables['after']);
      if ('message' in nodes) return { errors: [nodes] };
      return { data: { events: { nodes, pageInfo: { hasNextPage: false } } } };
    };
    let lose = (_cause: Error): void => {};
    const lost = new Promise<never>((_, reject) => {
      lose = reject;
    });
    shared.calls.add(lose);
    try {
      // The test answers what the document asks for.
      return (await within(undefined, () => Promise.race([lost, answer()]), signal)) as Answer<Data>;
    } finally {
      shared.calls.delete(lose);
    }
  };

const subscribing =
  (shared: Shared): Source['subscribe'] =>
  (document, variables, sink) => {
    const { catching, ...request } = requestOf(document, variables);
    const log = resumable(request.query);
    const field = /\{\s*(?:(\w+)\s*:\s*)?(\w+)/.exec(request.query);
    // As above.
    const one = { field: field?.[1] ?? field?.[2] ?? '', sink: sink as Sink<unknown> };
    let isLeft = false;
    // Jest's fake timers hold `queueMicrotask` up, and promises not.
    void Promise.resolve().then(() => {
      if (isLeft) return;
      if (!shared.isUp) return sink.ended(new Error('The gateway is away.'));
      const place = log && request.variables[log.after];
      const missed = place == null ? [] : shared.log.after(place);
      sink.opened(catching);
      if ('message' in missed) {
        sink.next({ errors: [missed] });
        return sink.ended();
      }
      for (const event of missed) {
        // A subscriber may leave as it is told.
        if (isLeft) return;
        one.sink.next({ data: { [one.field]: event } });
      }
      if (isLeft) return;
      shared.open.add(one);
      sink.bookmark(shared.log.head());
    });
    return () => {
      isLeft = true;
      shared.open.delete(one);
    };
  };
