import { clock, type Timer } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { inTime } from '../../redis/in-time.ts';
import { lastingRefusal } from '../../redis/refusal.ts';
import { withoutCommand } from '../../redis/script.ts';
import { decodeEntry, type Entry } from '../entry.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { EventMetrics } from '../metrics.ts';
import type { Listener } from '../source.ts';
import { channelClient, redisKeys } from './keys.ts';
import type { SubscriberEvents, Subscribers } from './subscribers.ts';

/** Channels subscribed to at once. */
const BATCH = 200;
/** How long subscribing may take, including a connection that has to be made first, in milliseconds. */
const DEADLINE_MS = 2_000;
/** Pause before a subscription that failed is tried again, in milliseconds. */
const RETRY_MS = 500;

interface ChannelSubscription {
  readonly listener: Listener;
  /** The connection that carries the channel; undefined while none does. */
  on: RedisClient | undefined;
  /** True if a connection carried the channel before, and none does now. */
  lost: boolean;
}

const LOST = { on: undefined, lost: true } as const;

/** The channels of this process. Once a channel is subscribed again, its listener compares its tail with the log. */
export class RedisChannels {
  readonly #subscribers: Subscribers;
  readonly #logger: Logger;
  readonly #metrics: EventMetrics;
  readonly #subscriptions = new Map<string, ChannelSubscription>();
  #renewing = false;
  /** Which channels the next round subscribes: none, those that were lost, or all. */
  #next: 'nothing' | 'lost' | 'all' = 'nothing';
  #retry: Timer | undefined;
  #failing = false;
  /** In which words Redis has refused a channel since the last check, as for want of the right to it. */
  #refusal: string | undefined;

  constructor(open: (events: SubscriberEvents) => Subscribers, logger: Logger, metrics: EventMetrics) {
    this.#logger = logger;
    this.#metrics = metrics;
    this.#subscribers = open({
      message: (channel, text) => this.#receive(channel, text),
      ready: () => this.#renew('lost'),
      lost: (connection) => this.#lose(connection),
    });
  }

  get connections(): readonly RedisClient[] {
    return this.#subscribers.connections;
  }

  /** True if no subscription is lost, and another one could be made. */
  get isComplete(): boolean {
    const isWhole = !this.#subscriptions.values().some(({ lost }) => lost);
    return this.#subscribers.isReady && isWhole && this.#refusal === undefined;
  }

  /** Why another one could not be made: sentences for the operator, where Redis has said so. */
  get problems(): readonly string[] {
    return this.#refusal === undefined ? [] : [`Redis refuses the channels of events: ${this.#refusal}.`];
  }

  /** Throws `StoreUnavailableError`. */
  async attach(clientId: string, listener: Listener): Promise<void> {
    const subscription: ChannelSubscription = { listener, on: undefined, lost: false };
    this.#subscriptions.set(clientId, subscription);
    try {
      await this.#subscribe(clientId);
    } catch (cause) {
      if (this.#subscriptions.get(clientId) === subscription) this.#subscriptions.delete(clientId);
      throw new StoreUnavailableError('The event log cannot be followed now.', {
        cause: withoutCommand(cause),
      });
    }
  }

  detach(clientId: string): void {
    const on = this.#subscriptions.get(clientId)?.on;
    this.#subscriptions.delete(clientId);
    if (on !== undefined) this.#subscribers.unsubscribe(redisKeys(clientId).channel, on);
  }

  /**
   * Subscribes every channel again, so that every listener compares with the log. A connection that no longer answers ends by
   * its time-out, and is replaced.
   */
  check(): void {
    this.#refusal = undefined;
    this.#renew('all');
  }

  stop(): void {
    clock.clearTimeout(this.#retry);
    this.#subscriptions.clear();
    this.#subscribers.stop();
  }

  #receive(channel: string, message: string): void {
    const clientId = channelClient(channel);
    const listener = clientId === undefined ? undefined : this.#subscriptions.get(clientId)?.listener;
    if (clientId === undefined || listener === undefined) return;
    try {
      listener.receive(channelEntry(clientId, message));
    } catch {
      this.#metrics.channelDecodeError();
      this.#logger.error({ clientId }, 'a message on an event channel cannot be read');
      listener.resync();
    }
  }

  #lose(connection: RedisClient): void {
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.on === connection) Object.assign(subscription, LOST);
    }
    this.#renewLater();
  }

  #renewLater(): void {
    if (this.#subscriptions.size === 0) return;
    this.#retry ??= clock
      .setTimeout(() => {
        this.#retry = undefined;
        this.#renew('lost');
      }, RETRY_MS)
      .unref();
  }

  #renew(what: 'lost' | 'all'): void {
    if (this.#next !== 'all') this.#next = what;
    if (!this.#renewing) void this.#renewAll();
  }

  async #renewAll(): Promise<void> {
    this.#renewing = true;
    let failure: unknown;
    while (this.#next !== 'nothing') {
      const all = this.#next === 'all';
      this.#next = 'nothing';
      failure = undefined;
      const due = [...this.#subscriptions].filter(([, { lost }]) => all || lost);
      for (let start = 0; start < due.length; start += BATCH) {
        const batch = due.slice(start, start + BATCH).map(([clientId]) => this.#renewOne(clientId));
        failure = (await Promise.all(batch)).find((error) => error !== undefined) ?? failure;
      }
      if (all) this.#prune();
    }
    this.#renewing = false;
    if (failure !== undefined) {
      if (!this.#failing) {
        this.#logger.warn({ error: String(failure) }, 'event channels could not be subscribed again');
      }
      this.#renewLater();
    }
    this.#failing = failure !== undefined;
  }

  /** Resolves with the error if it failed, else with undefined. */
  async #renewOne(clientId: string): Promise<unknown> {
    try {
      await this.#subscribe(clientId);
    } catch (error) {
      const subscription = this.#subscriptions.get(clientId);
      if (subscription !== undefined) Object.assign(subscription, LOST);
      return error;
    }
    this.#subscriptions.get(clientId)?.listener.resync();
    return undefined;
  }

  async #subscribe(clientId: string): Promise<void> {
    const { channel } = redisKeys(clientId);
    const carrier = this.#subscribers.subscribe(channel);
    const on = await inTime(carrier, DEADLINE_MS).catch((error: Error) => {
      this.#refusal = lastingRefusal(error);
      // It may be subscribed after all, too late for its listener.
      void carrier.then(
        (late) => this.#subscriptions.has(clientId) || this.#subscribers.unsubscribe(channel, late),
        () => undefined,
      );
      throw error;
    });
    this.#refusal = undefined;
    const subscription = this.#subscriptions.get(clientId);
    // The listener may have gone meanwhile.
    if (subscription === undefined) this.#subscribers.unsubscribe(channel, on);
    else Object.assign(subscription, { on, lost: false });
  }

  #prune(): void {
    const used = new Set<RedisClient>();
    for (const { on } of this.#subscriptions.values()) if (on !== undefined) used.add(on);
    this.#subscribers.prune(used);
  }
}

/** Reads a message of a client's channel: `epoch|prev|id|event`. Throws for any other text. */
function channelEntry(clientId: string, message: string): Entry {
  const [, epoch = '', prev = '', position = '', event = ''] =
    /^([^|]+)\|([^|]+)\|(\d+-\d+)\|(.*)$/s.exec(message) ?? [];
  if (position === '') throw new TypeError('a channel message is epoch|prev|id|event');
  return decodeEntry(clientId, epoch, { position, prev }, event);
}
