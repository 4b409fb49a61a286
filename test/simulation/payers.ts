import { forget, intentStore, pay, typed, unsettled } from '../../packages/client/src/index.ts';
import { App, type AppWorld } from './apps.ts';
import type { Caller } from './callers.ts';
import type { Chance } from './chance.ts';
import type { Alarm } from './core.ts';
import { fieldOf, type Order, typeOf } from './orders.ts';

/** The transaction that a success names; undefined where it does not know it. */
const movedIn = (result: object): string | undefined => {
  const { transaction, refund } = result as Readonly<Record<'transaction' | 'refund', { id: string } | null>>;
  return (transaction ?? refund)?.id;
};

type PaymentAnswer = { readonly result: { readonly __typename: string } & Record<string, unknown> };
type PaymentInput = Record<string, unknown> & { readonly idempotencyKey: string };

const documentOf = (mutation: Order['mutation']) =>
  typed<PaymentAnswer, { readonly input: PaymentInput }>(
    `mutation ($input: ${typeOf(mutation)}Input!) { ${fieldOf(mutation, 'result', 'input')} }`,
  );

/** Pays by the real client, on a device that keeps its intents. */
export class Payer extends App {
  readonly orders: Order[] = [];
  /** Orders of another tab that were given in this one too. */
  readonly #joined: Order[] = [];
  readonly #transport: 'socket' | 'fetch';
  readonly #values: Map<string, string>;
  readonly #device: string;
  readonly #chance: Chance;
  onTold: (payer: Payer, order: Order) => void = () => {};
  /** Told of the transaction of each payment that is done. */
  onDone: (transactionId: string) => void = () => {};
  /** How often money has moved for an order. */
  movedBy: (order: Order) => number = () => 0;

  /** @param first another tab of the same browser, which shares what it stores */
  constructor(world: AppWorld, name: string, caller: Caller, transport: 'socket' | 'fetch', first?: Payer) {
    super(world, name, caller);
    this.#transport = transport;
    this.#values = first === undefined ? new Map() : first.#values;
    this.#device = first?.name ?? name;
    this.#chance = world.sim.chance(name);
  }

  /** How long after the next press its process ends, in milliseconds: mostly while a payment is under way. */
  endsAfterPress: number | undefined;
  #end: Alarm | undefined;

  order(order: Order): void {
    this.orders.push(order);
    // Who has signed out presses once they are back.
    if (this.left !== this.process) this.process?.run(() => this.#press(order));
    const { endsAfterPress: ms } = this;
    if (ms !== undefined) this.#end = this.world.sim.after(ms, this.process, () => this.kill());
    this.endsAfterPress = undefined;
  }

  /** The person gives an order here that another tab has been given. */
  join(order: Order): void {
    if (order.isOver) return;
    this.#joined.push(order);
    if (this.left !== this.process) this.process?.run(() => this.#press(order));
  }

  protected override get device(): string {
    return this.#device;
  }

  override spare(): void {
    super.spare();
    this.endsAfterPress = undefined;
    this.#end?.cancel();
  }

  protected live(): void {
    for (const order of [...this.orders, ...this.#joined]) if (!order.isOver) this.#press(order);
  }

  /** The person presses the button, and does so again as long as it is safe and unclear. */
  #press(order: Order): void {
    const { process } = this;
    const leaving = new AbortController();
    const { signal } = leaving;
    const work = async (): Promise<void> => {
      const source = this.source(this.#transport);
      this.closings.push(
        () => leaving.abort(),
        () => source.close?.(),
      );
      const store = intentStore(this.storage(this.#values), order.tag);
      const newKey = () => `${order.tag}-${Math.floor(this.#chance.number() * 2 ** 40)}`;
      for (;;) {
        order.touchedAt = this.world.sim.elapsed;
        const outcome = await pay(source, documentOf(order.mutation), order.input, {
          store,
          newKey,
          signal,
        });
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
          const id = outcome.status === 'done' ? movedIn(outcome.result) : undefined;
          if (id !== undefined && !order.isOver) this.onDone(id);
          order.isOver = true;
          await outcome.acknowledge();
          await unsettled(store);
          return;
        }
        await new Promise<void>((resolve) =>
          this.world.sim.after(this.#chance.between(500, 5_000), process, resolve),
        );
        if (signal.aborted) return;
        // The person has seen the end in another tab meanwhile, and wants no second payment.
        if (order.isOver) return;
      }
    };
    work().catch((error: unknown) => {
      if (process?.isAlive === true && !signal.aborted)
        this.world.sim.fail(new Error(`${this.name}, ${order.tag}: ${String(error)}`, { cause: error }));
    });
  }
}
