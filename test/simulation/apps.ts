import { createFetch } from '../../packages/client/src/fetch.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import {
  follow,
  type Gap,
  intentStore,
  isGap,
  type KeyValues,
  pay,
  type Source,
  type Store,
  typed,
  unsettled,
} from '../../packages/client/src/index.ts';
import type { Chance } from './chance.ts';
import { Process, type Simulation } from './core.ts';
import type { Network } from './network.ts';

/** What all apps share. */
export interface AppWorld {
  readonly sim: Simulation;
  readonly network: Network;
  readonly token: string;
  /** An address of the graph for the next connection. */
  url(): string;
}

/** What is kept by an app's device, in the order of its keeping. */
export type Kept =
  | { readonly id: string; readonly cursor: string }
  | { readonly gap: string; readonly cursor: string };

interface SeenEvent {
  readonly id: string;
  readonly cursor: string;
}

const EVENTS = typed<{ events: SeenEvent }, { after?: string | null }>(
  'subscription ($after: Cursor) { events(after: $after) { cursor id type receivedAt } }',
);
const MONEY_IN = typed<{ moneyIn: SeenEvent }, { after?: string | null }>(
  'subscription ($after: Cursor) { moneyIn(after: $after) { cursor id receivedAt } }',
);

/** An app as a process that comes and goes, on a device that stays. */
abstract class App {
  readonly name: string;
  protected readonly world: AppWorld;
  readonly #transport: 'socket' | 'fetch';
  process: Process | undefined;

  constructor(world: AppWorld, name: string, transport: 'socket' | 'fetch') {
    this.world = world;
    this.name = name;
    this.#transport = transport;
  }

  start(): void {
    if (this.process?.isAlive === true) return;
    const process = new Process(this.world.sim, this.name);
    this.process = process;
    process.run(() => this.live(process));
  }

  kill(): void {
    this.process?.kill();
  }

  protected source(): Source {
    const { network, token } = this.world;
    const place = { url: () => `${this.world.url()}/graphql`, token: () => token };
    return this.#transport === 'socket'
      ? createSocket({ ...place, webSocketImpl: network.socketClass() })
      : createFetch({ ...place, fetch: network.fetch as typeof fetch });
  }

  /** The time that a device takes to keep something, which it may not outlive. */
  protected disk(work: () => void): Promise<void> {
    const { sim } = this.world;
    return new Promise((resolve) => {
      sim.after(0.2, this.process, () => {
        work();
        resolve();
      });
    });
  }

  protected abstract live(process: Process): void;
}

/** Follows the log by the real client, and keeps what comes. */
export class Reader extends App {
  readonly kept: Kept[] = [];
  readonly kind: 'events' | 'moneyIn';
  /** How long it takes over each event, in milliseconds. */
  slowness = 0;
  #cursor: string | undefined;
  /** Told of each item once it is kept. */
  onKept: (reader: Reader, item: Kept) => void = () => {};

  constructor(world: AppWorld, name: string, transport: 'socket' | 'fetch', kind: 'events' | 'moneyIn') {
    super(world, name, transport);
    this.kind = kind;
  }

  protected live(process: Process): void {
    const store: Store<SeenEvent> = {
      load: () => (this.#cursor === undefined ? undefined : { cursor: this.#cursor }),
      save: (item, cursor) => this.disk(() => this.#keep(item, cursor)),
    };
    const options = { store, presence: () => () => {} };
    const feed =
      this.kind === 'events'
        ? follow(this.source(), EVENTS, options)
        : follow(this.source(), MONEY_IN, options);
    const read = async (): Promise<void> => {
      for await (const _ of feed) {
        if (this.slowness > 0)
          await new Promise<void>((resolve) => this.world.sim.after(this.slowness, process, resolve));
      }
      throw new Error('the feed has ended');
    };
    read().catch((error: unknown) => {
      if (process.isAlive) this.world.sim.fail(new Error(`${this.name}: ${String(error)}`, { cause: error }));
    });
  }

  #keep(item: SeenEvent | Gap<SeenEvent> | undefined, cursor: string): void {
    this.#cursor = cursor;
    if (item === undefined) return;
    const kept: Kept = isGap(item) ? { gap: item.reason, cursor } : { id: item.id, cursor };
    this.kept.push(kept);
    this.onKept(this, kept);
  }
}

/** A payment that a person wants. */
export interface Order {
  readonly tag: string;
  readonly mutation: 'createMoneyOut' | 'createInternalTransaction';
  readonly input: Readonly<Record<string, unknown>>;
  /** What the person was told, in order. */
  readonly told: {
    readonly status: 'done' | 'refused' | 'unknown';
    readonly safeToRetry: boolean;
    readonly at: number;
  }[];
  /** Whether the app asks no more. */
  isOver: boolean;
}

interface PaymentAnswer {
  readonly result: { readonly __typename: string } & Record<string, unknown>;
}

const documentOf = (mutation: Order['mutation']) => {
  const type = `${mutation[0]?.toUpperCase()}${mutation.slice(1)}`;
  return typed<
    PaymentAnswer,
    { readonly input: Record<string, unknown> & { readonly idempotencyKey: string } }
  >(
    `mutation ($input: ${type}Input!) { result: ${mutation}(input: $input) { __typename
      ... on UserError { code field message } ... on OutcomeUnknown { reason safeToRetry retryUntil message }
      ... on ${type}Success { replayed transaction { id status } } } }`,
  );
};
const DOCUMENTS = {
  createMoneyOut: documentOf('createMoneyOut'),
  createInternalTransaction: documentOf('createInternalTransaction'),
};

/** Pays by the real client, on a device that keeps its intents. */
export class Payer extends App {
  readonly orders: Order[] = [];
  readonly #values = new Map<string, string>();
  readonly #chance: Chance;
  onTold: (payer: Payer, order: Order) => void = () => {};

  constructor(world: AppWorld, name: string, transport: 'socket' | 'fetch') {
    super(world, name, transport);
    this.#chance = world.sim.chance(name);
  }

  order(order: Order): void {
    this.orders.push(order);
    this.process?.run(() => this.#press(order));
  }

  protected live(): void {
    for (const order of this.orders) if (!order.isOver) this.#press(order);
  }

  /** The person presses the button, and does so again as long as it is safe and unclear. */
  #press(order: Order): void {
    const { process } = this;
    const work = async (): Promise<void> => {
      const source = this.source();
      const values: KeyValues = {
        getItem: async (key) => {
          await this.disk(() => {});
          return this.#values.get(key) ?? null;
        },
        setItem: (key, value) => this.disk(() => void this.#values.set(key, value)),
      };
      const store = intentStore(values, order.tag);
      const newKey = () => `${order.tag}-${Math.floor(this.#chance.number() * 2 ** 40)}`;
      for (;;) {
        const outcome = await pay(source, DOCUMENTS[order.mutation], order.input, { store, newKey });
        const safeToRetry = outcome.status === 'unknown' && outcome.safeToRetry;
        order.told.push({ status: outcome.status, safeToRetry, at: this.world.sim.elapsed });
        this.onTold(this, order);
        if (!safeToRetry) {
          order.isOver = true;
          await outcome.acknowledge();
          await unsettled(store);
          return;
        }
        await new Promise<void>((resolve) =>
          this.world.sim.after(this.#chance.between(500, 5_000), process, resolve),
        );
      }
    };
    work().catch((error: unknown) => {
      if (process?.isAlive === true)
        this.world.sim.fail(new Error(`${this.name}, ${order.tag}: ${String(error)}`, { cause: error }));
    });
  }
}
