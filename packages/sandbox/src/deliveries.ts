import type { Dispatcher } from 'undici';
import { ambient } from './ambient.ts';
import type { Choices } from './choices.ts';
import type { Clock } from './clock.ts';
import type { Ids } from './ids.ts';
import { isWebhookHost, refusedHost, webhookLookup } from './own-hosts.ts';
import type { State, Webhook, WebhookType } from './state.ts';

/** A message for every active webhook of one type of one client. */
export interface Message {
  clientId: string;
  type: WebhookType;
  idMsg: string | undefined;
  body: unknown;
  /** The transaction that it tells of; undefined where it tells of something else. */
  transactionId: string | undefined;
  /** Whether an HTTP status is an answer; any other is tried again. */
  answered(status: number): boolean;
  /** Called with each answer, whichever webhook or attempt it came from: the first end counts (pending.ts). */
  onAnswer?(status: number, body: string): void;
  /** Called when no webhook is left that could answer. */
  onNoAnswer?(): void;
}

interface Attempt {
  at: number;
  status?: number;
  body?: string;
  error?: string;
}

export interface Delivery {
  id: string;
  webhook: Webhook;
  message: Message;
  payload: string;
  createdAt: number;
  state: 'PENDING' | 'ANSWERED' | 'GIVEN_UP';
  attempts: Attempt[];
}

/** What webhooks are sent by. */
export type Agent = Pick<Dispatcher, 'request'> & { destroy(): Promise<void> };

const RETRY_AFTER_MS = 10_000;
/** However fast the clock runs, a receiver that is down is not tried more often than this. */
const REAL_RETRY_FLOOR_MS = 200;
const REPLY_LIMIT_BYTES = 64 * 1024;
/** How much of a reply is kept, to be shown with its attempt. */
const SHOWN_CHARACTERS = 1_000;
const KEPT = 10_000;

/**
 * Sends webhooks, records each attempt and its reply, and tries again with back-off: 10 simulated seconds after the first
 * attempt, then twice as long each time, for as long as the webhook is active. The webhooks of one message are tried one after another in the order of their
 * registration, so that which of them answers first does not depend on the network.
 */
export class Deliveries {
  readonly #choices: Choices;
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #state: State;
  readonly #webhookHosts: readonly string[];
  /** Opened at the first delivery: undici takes half the time of a start, and many sandboxes deliver nothing. */
  #agent: Promise<Agent> | undefined;
  readonly #stopping = new AbortController();
  readonly #deliveries = new Map<string, Delivery>();
  /** How many more messages of a type never leave. */
  readonly #losses = new Map<WebhookType, number>();
  #isDown = false;

  constructor(
    choices: Choices,
    clock: Clock,
    ids: Ids,
    state: State,
    webhookHosts: readonly string[],
    agent?: Agent,
  ) {
    this.#agent = agent && Promise.resolve(agent);
    this.#choices = choices;
    this.#clock = clock;
    this.#ids = ids;
    this.#state = state;
    this.#webhookHosts = webhookHosts;
  }

  /** Oldest first. */
  all(): Delivery[] {
    return [...this.#deliveries.values()];
  }

  get(id: string): Delivery | undefined {
    return this.#deliveries.get(id);
  }

  /** Sends the message as soon as the current request has been served. */
  enqueue(message: Message): void {
    this.#clock.schedule(this.#clock.now(), async () => {
      await this.send(message);
    });
  }

  /** Sends the message to each active webhook, and answers when each has been tried once. */
  async send(message: Message): Promise<Delivery[]> {
    const receivers = this.#isLost(message) ? [] : this.#state.activeWebhooks(message.clientId, message.type);
    const deliveries = receivers.map((webhook) => this.#record(webhook, message));
    for (const delivery of deliveries) await this.#attemptOrRetry(delivery, deliveries);
    if (deliveries.length === 0) message.onNoAnswer?.();
    return deliveries;
  }

  /** Loses the next messages of a type, for whichever client: they are sent to nobody, and never again. */
  lose(type: WebhookType, times = Number.POSITIVE_INFINITY): void {
    this.#losses.set(type, times);
  }

  /** Loses nothing more. */
  loseNothing(): void {
    this.#losses.clear();
  }

  /** Whether every receiver is unreachable: each attempt fails without leaving, and is made again as after any failure. */
  get isDown(): boolean {
    return this.#isDown;
  }

  setDown(isDown: boolean): void {
    this.#isDown = isDown;
  }

  #isLost({ type }: Message): boolean {
    const left = this.#losses.get(type) ?? 0;
    if (left > 0) this.#losses.set(type, left - 1);
    return left > 0;
  }

  /** Sends the same bytes again, once, to where the webhook points now. */
  async resend(delivery: Delivery): Promise<void> {
    await this.#attempt(delivery);
  }

  /**
   * Sends the same bytes to another address, once. It is no attempt of the delivery: its answer decides nothing.
   *
   * @throws where no answer came, or webhooks may not go there.
   */
  async sendTo(url: string, delivery: Delivery): Promise<{ status: number; body: string }> {
    const reply = await this.#post(delivery, url);
    return { status: reply.status, body: reply.body.slice(0, SHOWN_CHARACTERS) };
  }

  /** Ends what is under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const agent = await this.#agent;
    await agent?.destroy();
  }

  async #openAgent(): Promise<Agent> {
    // In this place `fetch` of Node 22 finds what it sends by, such as a test's MockAgent. undici puts its own there as it loads.
    const place = Symbol.for('undici.globalDispatcher.1');
    const dispatcher: unknown = Reflect.get(globalThis, place);
    const { Agent } = await import('undici');
    if (dispatcher !== undefined) Reflect.set(globalThis, place, dispatcher);
    return new Agent({
      connectTimeout: this.#choices.deliveryTimeoutMs,
      keepAliveTimeout: 1_000,
      connect: { lookup: webhookLookup(this.#webhookHosts) },
    });
  }

  #record(webhook: Webhook, message: Message): Delivery {
    const delivery: Delivery = {
      id: this.#ids.uuid('delivery'),
      webhook,
      message,
      payload: JSON.stringify(message.body),
      createdAt: this.#clock.now(),
      state: 'PENDING',
      attempts: [],
    };
    this.#deliveries.set(delivery.id, delivery);
    const oldest = this.#deliveries.keys().next();
    if (this.#deliveries.size > KEPT && oldest.done !== true) this.#deliveries.delete(oldest.value);
    return delivery;
  }

  /** @param tries how often the sandbox has sent it by itself, with this time. What somebody has sent again puts off no retry. */
  async #attemptOrRetry(delivery: Delivery, siblings: readonly Delivery[], tries = 1): Promise<void> {
    // A resend may have been answered while this retry was waiting.
    if (delivery.state !== 'PENDING') return;
    const wanted = delivery.webhook.status === 'ACTIVE';
    if (wanted) await this.#attempt(delivery);
    if (delivery.state !== 'PENDING' || this.#stopping.signal.aborted) return;
    if (!wanted || tries > this.#choices.deliveryRetries) {
      delivery.state = 'GIVEN_UP';
      if (siblings.every((sibling) => sibling.state === 'GIVEN_UP')) delivery.message.onNoAnswer?.();
      return;
    }
    const wait = Math.max(RETRY_AFTER_MS * 2 ** (tries - 1), REAL_RETRY_FLOOR_MS * this.#clock.speed);
    this.#clock.schedule(this.#clock.now() + wait, () => this.#attemptOrRetry(delivery, siblings, tries + 1));
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const attempt: Attempt = { at: this.#clock.now() };
    delivery.attempts.push(attempt);
    const { message } = delivery;
    let answered = '';
    try {
      const reply = await this.#post(delivery);
      attempt.status = reply.status;
      answered = reply.body;
      attempt.body = reply.body.slice(0, SHOWN_CHARACTERS);
    } catch (error) {
      // Where a name has several addresses and none takes a connection, Node's error has no message.
      attempt.error =
        error instanceof Error
          ? error.message || String(Reflect.get(error, 'code') ?? error.name)
          : String(error);
    }
    if (attempt.status === undefined || !message.answered(attempt.status)) return;
    delivery.state = 'ANSWERED';
    message.onAnswer?.(attempt.status, answered);
  }

  async #post({ webhook, payload }: Delivery, url = webhook.url): Promise<{ status: number; body: string }> {
    if (this.#isDown) throw new Error('connect ECONNREFUSED');
    // An address is never looked up, and it may have been registered under other rules.
    const { hostname } = new URL(url);
    if (!isWebhookHost(hostname, this.#webhookHosts)) throw refusedHost(hostname);
    const { header, prefix } = this.#choices.deliveryToken;
    this.#agent ??= this.#openAgent();
    const agent = await this.#agent;
    const { origin, pathname, search } = new URL(url);
    const reply = await agent.request({
      origin,
      path: pathname + search,
      method: 'POST',
      headers: { 'content-type': 'application/json', [header]: prefix + webhook.token },
      body: payload,
      signal: AbortSignal.any([
        this.#stopping.signal,
        ambient.timeoutSignal(this.#choices.deliveryTimeoutMs),
      ]),
    });
    return { status: reply.statusCode, body: await readText(reply.body) };
  }
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > REPLY_LIMIT_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
