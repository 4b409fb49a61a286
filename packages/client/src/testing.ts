import { EVENT_CURSOR, MISSED } from './documents.ts';
import { requestOf, resumable } from './request.ts';
import type { Answer, Problem, Sink, Source, TypedDocument } from './source.ts';

/** For unit tests of an app: no network, no clock, and every answer is the test's own. */

export interface FakeCall {
  /** What would be sent. */
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  answer(answer: Answer<unknown>): void;
  /** No answer comes. */
  lose(cause?: unknown): void;
}

export interface FakeSubscription {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly sink: Sink<unknown>;
}

/** A source whose calls and subscriptions wait for the test, the oldest first. */
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
      new Promise<Answer<Data>>((resolve, reject) => {
        const call: FakeCall = {
          ...requestOf(document, variables),
          // The test answers what the document asks for.
          answer: (answer) => take(calls, call) && resolve(answer as Answer<Data>),
          lose: (cause = new Error('The network is gone.')) => take(calls, call) && reject(cause),
        };
        signal?.addEventListener('abort', () => call.lose(signal.reason));
        calls.push(call);
      }),
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

/** A gateway with a log of events, and answers of the test's own for everything else. */
export interface FakeGateway {
  /** A way to it: one for each tab, or device, of a test. */
  connect(): Source;
  /** An event arrives. @returns its cursor. */
  deliver(event: Readonly<Record<string, unknown>>): string;
  /** Breaks every connection; new ones are taken. */
  cut(): void;
  /** Refuses every connection until it is `up` again. */
  down(): void;
  up(): void;
  /** Forgets the oldest events. */
  forget(count: number): void;
  /** How the other queries and mutations are answered. */
  onCall: (
    query: string,
    variables: Readonly<Record<string, unknown>>,
  ) => Answer<unknown> | Promise<Answer<unknown>>;
}

export function createFakeGateway(): FakeGateway {
  const events: Readonly<Record<string, unknown>>[] = [];
  const open = new Set<{ readonly field: string; readonly sink: Sink<unknown> }>();
  let isUp = true;
  let forgotten = 0;
  const cursor = (place: number) => `place-${place}`;
  const head = () => cursor(forgotten + events.length);
  /** What stands behind a cursor; the refusal where that is gone. */
  const after = (place: unknown): readonly Readonly<Record<string, unknown>>[] | Problem => {
    const passed = Number(/^place-(\d+)$/.exec(String(place))?.[1]) - forgotten;
    if (passed >= 0 && passed <= events.length) return events.slice(passed);
    const code = passed < 0 ? 'EVENTS_GAP' : 'CURSOR_INVALID';
    const extensions = { code, oldest: cursor(forgotten), head: head() };
    return { message: 'Events after this cursor are gone.', extensions };
  };
  const gateway: FakeGateway = {
    onCall: () => ({ errors: [{ message: 'Nobody answers that here.', extensions: { code: 'NOT_FOUND' } }] }),
    deliver(event) {
      const whole = { ...event, cursor: cursor(forgotten + events.length + 1) };
      events.push(whole);
      for (const { field, sink } of open) sink.next({ data: { [field]: whole } });
      return whole.cursor;
    },
    cut() {
      for (const one of [...open]) {
        open.delete(one);
        one.sink.ended(new Error('The connection was cut.'));
      }
    },
    down() {
      isUp = false;
      gateway.cut();
    },
    up() {
      isUp = true;
    },
    forget(count) {
      forgotten += events.splice(0, count).length;
    },
    connect: () => ({
      async query<Data, Variables>(document: TypedDocument<Data, Variables>, variables: Variables) {
        if (!isUp) throw new Error('The gateway is away.');
        const request = requestOf(document, variables);
        const answer = (): Answer<unknown> | Promise<Answer<unknown>> => {
          if (request.query === EVENT_CURSOR) return { data: { eventCursor: head() } };
          if (request.query !== MISSED) return gateway.onCall(request.query, request.variables);
          const nodes = after(request.variables['after']);
          if ('message' in nodes) return { errors: [nodes] };
          return { data: { events: { nodes, pageInfo: { hasNextPage: false } } } };
        };
        // The test answers what the document asks for.
        return (await answer()) as Answer<Data>;
      },
      subscribe(document, variables, sink) {
        const { catching, ...request } = requestOf(document, variables);
        const log = resumable(request.query);
        const field = /\{\s*(?:(\w+)\s*:\s*)?(\w+)/.exec(request.query);
        // As above.
        const one = { field: field?.[1] ?? field?.[2] ?? '', sink: sink as Sink<unknown> };
        queueMicrotask(() => {
          if (!isUp) return sink.ended(new Error('The gateway is away.'));
          const missed = log === undefined ? [] : after(request.variables[log.after]);
          sink.opened(catching);
          if ('message' in missed) {
            sink.next({ errors: [missed] });
            return sink.ended();
          }
          for (const event of missed) one.sink.next({ data: { [one.field]: event } });
          open.add(one);
          sink.bookmark(head());
        });
        return () => void open.delete(one);
      },
    }),
  };
  return gateway;
}
