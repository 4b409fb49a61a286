import {
  forget,
  intentStore,
  type KeyValues,
  pay,
  typed,
  unsettled,
} from '../../packages/client/src/index.ts';
import { App, type AppWorld } from './apps.ts';
import type { Caller } from './callers.ts';
import type { Chance } from './chance.ts';
import type { Alarm } from './core.ts';
import { fieldOf, type Order, typeOf } from './orders.ts';

type PaymentAnswer = { readonly result: { readonly __typename: string } & Record<string, unknown> };
type PaymentInput = Record<string, unknown> & { readonly idempotencyKey: string };

const documentOf = (mutation: Order['mutation']) =>
  typed<PaymentAnswer, { readonly input: PaymentInput }>(
    `mutation ($input: ${typeOf(mutation)}Input!) { ${fieldOf(mutation, 'result', 'input')} }`,
  );

/** Pays by the real client, on a device that keeps its intents. */
export class Payer extends App {
  readonly orders: Order[] = [];
  readonly #transport: 'socket' | 'fetch';
  readonly #values = new Map<string, string>();
  readonly #chance: Chance;
  onTold: (payer: Payer, order: Order) => void = () => {};
  /** How often money has moved for an order. */
  movedBy: (order: Order) => number = () => 0;

  constructor(world: AppWorld, name: string, caller: Caller, transport: 'socket' | 'fetch') {
    super(world, name, caller);
    this.#transport = transport;
    this.#chance = world.sim.chance(name);
  }

  /** How long after the next press its process ends, in milliseconds: mostly while a payment is under way. */
  endsAfterPress: number | undefined;
  #end: Alarm | undefined;

  order(order: Order): void {
    this.orders.push(order);
    this.process?.run(() => this.#press(order));
    const { endsAfterPress: ms } = this;
    if (ms !== undefined) this.#end = this.world.sim.after(ms, this.process, () => this.kill());
    this.endsAfterPress = undefined;
  }

  override spare(): void {
    super.spare();
    this.endsAfterPress = undefined;
    this.#end?.cancel();
  }

  protected live(): void {
    for (const order of this.orders) if (!order.isOver) this.#press(order);
  }

  /** The person presses the button, and does so again as long as it is safe and unclear. */
  #press(order: Order): void {
    const { process } = this;
    const work = async (): Promise<void> => {
      const source = this.source(this.#transport);
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
        order.touchedAt = this.world.sim.elapsed;
        const outcome = await pay(source, documentOf(order.mutation), order.input, { store, newKey });
        const safeToRetry = outcome.status === 'unknown' && outcome.safeToRetry;
        order.touchedAt = this.world.sim.elapsed;
        order.told.push({ status: outcome.status, safeToRetry, at: order.touchedAt });
        this.onTold(this, order);
        // Refused behind a lost call. The person looks at the account, and lets go of what has not moved, as docs/clients.md says.
        const isRefused = outcome.status === 'unknown' && outcome.code !== undefined;
        if (isRefused && this.movedBy(order) === 0) {
          order.isOver = true;
          await forget(store, outcome.intent.idempotencyKey);
          return;
        }
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
