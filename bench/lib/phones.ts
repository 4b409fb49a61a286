import { request } from 'undici';
import { settledRss } from './memory.ts';
import type { RunningServer } from './process.ts';
import { type SocketOptions, type Subscriber, subscribeAll } from './sockets.ts';
import { until } from './until.ts';

/** How long everybody may take to have an answer, in milliseconds. */
const TIMEOUT_MS = 60_000;
/** Sockets that come and go before anything is measured, so that what is compiled once is compiled. */
const WARM_UP = 200;

/** What a phone asks for, under a token of its own. */
export type Phone = Pick<SocketOptions, 'authorization' | 'query' | 'variables'>;

/** Many phones on one server. */
export interface Phones {
  readonly subscribers: readonly Subscriber[];
  /** Resident memory that each has added, in bytes. */
  readonly bytesEach: number;
  /** When a phone was given its last message, by `performance.now()`. */
  readonly heardAt: Float64Array;
  /** The last message that came to any of them. */
  readonly last: () => string;
  close(): void;
}

/**
 * Opens phones, some first to warm up.
 *
 * @param ready resolves once all subscriptions have begun.
 */
export async function openPhones(
  server: RunningServer,
  count: number,
  phone: (index: number) => Phone,
  ready: (subscribers: readonly Subscriber[]) => Promise<void>,
): Promise<Phones> {
  const heardAt = new Float64Array(count);
  let last = '';
  const open = (many: number, offset: number) =>
    subscribeAll(many, (index) => ({
      url: server.url,
      ...phone(offset + index),
      onNext: (payload) => {
        last = payload;
        heardAt[index] = performance.now();
      },
    }));
  const early = await open(WARM_UP, count);
  await ready(early);
  for (const subscriber of early) subscriber.close();
  const before = await settledRss(server);
  const subscribers = await open(count, 0);
  await ready(subscribers);
  const bytesEach = ((await settledRss(server)) - before) / count;
  return {
    subscribers,
    bytesEach,
    heardAt,
    last: () => last,
    close: () => {
      for (const subscriber of subscribers) subscriber.close();
    },
  };
}

/** All have been given as many messages. */
export const haveAll = (subscribers: readonly Subscriber[], count: number): Promise<void> =>
  until(() => subscribers.every(({ received }) => received >= count), TIMEOUT_MS, 'a message for each phone');

/** Posts an event to a server. */
export async function post(server: RunningServer, path: string, body: string): Promise<void> {
  const answer = await request(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  await answer.body.dump();
  if (answer.statusCode !== 201)
    throw new Error(`${server.name} answered an event with ${answer.statusCode}`);
}

/** CPU that a server has taken for each of some events, in milliseconds, and how long each took to arrive. */
export interface EventCost {
  readonly cpuMs: number;
  readonly arrivalMs: readonly number[];
}

/**
 * Posts events one by one.
 *
 * @param to the phone that an event is for; undefined for an event that concerns none.
 */
export async function costOf(
  server: RunningServer,
  phones: Phones,
  events: number,
  emit: (event: number) => { readonly path: string; readonly body: string; readonly to: number | undefined },
): Promise<EventCost> {
  const arrivalMs: number[] = [];
  const before = server.cpuMs();
  for (let event = 0; event < events; event += 1) {
    const { path, body, to } = emit(event);
    const receiver = to === undefined ? undefined : phones.subscribers[to];
    const had = receiver?.received ?? 0;
    const posted = performance.now();
    const answered = post(server, path, body);
    if (receiver !== undefined && to !== undefined) {
      await until(() => receiver.received > had, TIMEOUT_MS, `an event for phone ${to}`);
      arrivalMs.push((phones.heardAt[to] ?? Number.NaN) - posted);
    }
    await answered;
  }
  return { cpuMs: (server.cpuMs() - before) / events, arrivalMs };
}
