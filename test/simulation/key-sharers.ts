import { App, type AppWorld } from './apps.ts';
import type { Caller } from './callers.ts';
import type { Chance } from './chance.ts';
import { Broken, type Process } from './core.ts';
import { alikeTo, fieldOf, type Order, type Orders, orderOf, typeOf } from './orders.ts';
import { ask, codesOf, type Told, WAYS } from './raw.ts';
import { type Result, STATE, statusOf } from './raw-payers.ts';

/** One who sends under a key that others use as well. */
interface Sender {
  readonly caller: Caller;
  readonly order: Order;
}

/** Several people of one client use one idempotency key: a customer and people who act for the whole client, or such people alone. */
export class KeySharers extends App {
  readonly orders: Order[] = [];
  readonly #chance: Chance;
  readonly #whichPeople: Chance;
  readonly #isCalm: () => boolean;
  readonly #made: Orders;
  readonly #all: readonly Caller[];
  /** Who owns the key of an order, and asks for it. */
  readonly owners = new Map<Order, Caller>();
  /** What was told to be done, or unknown. */
  readonly #sent = new Set<Order>();
  #groups = 0;
  movedBy: (order: Order) => number = () => 0;
  onTold: (order: Order) => void = () => {};

  constructor(world: AppWorld, callers: readonly Caller[], made: Orders, isCalm: () => boolean) {
    const [first] = callers;
    if (first === undefined) throw new Error('nobody shares a key');
    super(world, 'sharers', first);
    this.#chance = world.sim.chance(this.name);
    this.#whichPeople = world.sim.chance(`${this.name}, who`);
    this.#isCalm = isCalm;
    this.#made = made;
    this.#all = callers.filter(({ client }) => client === first.client);
  }

  protected live(process: Process): void {
    const next = (): void => {
      this.world.sim.after(this.#chance.between(3_000, 25_000) * this.world.payingPace, process, () => {
        next();
        if (!this.#isCalm()) void this.#share(process);
      });
    };
    next();
  }

  /** Two or three of them pay under one key, the first one first or all at once, the same or each something else. */
  async #share(process: Process): Promise<void> {
    const whole = this.#all.filter(({ customerId }) => customerId === undefined);
    const areColleagues = whole.length > 1 && this.#whichPeople.happens(0.4);
    const customers = areColleagues ? [] : this.#all.filter(({ customerId }) => customerId !== undefined);
    const customer = customers.length > 0 ? this.#chance.pick(customers) : undefined;
    const tag = `shared ${this.#groups}`;
    this.#groups += 1;
    const idempotencyKey = `${tag} ${this.#chance.below(2 ** 30)}`;
    const isSame = this.#chance.happens(0.6);
    const made =
      customer === undefined
        ? this.#made.make(this.#chance, tag)
        : this.#made.ofCustomer(this.#chance, tag, customer.customerId ?? '');
    // A credit is returned once, whoever returns it.
    if (made === undefined || (areColleagues && made.mutation === 'refundTransaction')) return;
    const isOneOwner = customer === undefined && !areColleagues;
    const callers = isOneOwner
      ? [whole[0], whole[0]]
      : [customer, ...whole].filter((one) => one !== undefined);
    const senders: Sender[] = [];
    for (const [index, caller] of callers.entries()) {
      if (caller === undefined || (index > 1 && this.#chance.happens(0.5))) continue;
      senders.push({ caller, order: this.#orderOf(made, idempotencyKey, index, isSame, senders) });
    }
    this.orders.push(...new Set(senders.map(({ order }) => order)));
    // Where one owner has sent several inputs under the key, nobody can know here which of them it stands for.
    if (!isOneOwner || isSame) for (const { caller, order } of senders) this.owners.set(order, caller);
    if (this.#chance.happens(0.5)) await this.#afterEachOther(process, senders, isSame);
    else await Promise.all(senders.map((sender) => this.#sendSome(process, sender, senders, isSame)));
    await this.#pause(process, this.#chance.pick([50, 2_000, 30_000]));
    await this.#lookAt(senders, idempotencyKey);
    const moved = senders.filter(({ order }) => !order.isForgotten && this.movedBy(order) > 0);
    if (isOneOwner && !isSame && moved.length > 1)
      this.#broken(this.caller, `has moved money for two inputs under the key of ${tag}`);
  }

  #orderOf(
    made: Order,
    idempotencyKey: string,
    index: number,
    isSame: boolean,
    others: readonly Sender[],
  ): Order {
    const { tag, mutation, input } = made;
    if (!isSame && index > 0) {
      const own = `${tag} ${'abc'[index]}`;
      const { as } = input;
      return orderOf(own, mutation, {
        ...input,
        ...(as === undefined ? { description: own } : { as: { reason: own } }),
        idempotencyKey,
      });
    }
    const [first] = others;
    return first === undefined
      ? orderOf(tag, mutation, { ...input, idempotencyKey })
      : first.caller === this.#all[0] && this.#all.length === 1
        ? first.order
        : alikeTo(first.order, idempotencyKey);
  }

  /**
   * The client's people come once the customer's call has its answer: what the customer has paid, or may have, they do not pay. A call that is
   * told to be unknown may have been lost before anything was recorded. Then each of the people may pay once, under a key of their own.
   */
  async #afterEachOther(process: Process, senders: readonly Sender[], isSame: boolean): Promise<void> {
    const [first, ...people] = senders;
    if (first === undefined) return;
    await this.#sendSome(process, first, senders, isSame);
    const isTheirs = isSame && this.#sent.has(first.order) && first.caller.customerId !== undefined;
    const hasMoved = this.movedBy(first.order) > 0;
    for (const [index, sender] of people.entries()) {
      await this.#sendSome(process, sender, senders, isSame);
      const most = hasMoved ? 1 : index + 1;
      if (isTheirs && !senders.some(({ order }) => order.isForgotten) && this.movedBy(sender.order) > most)
        this.#broken(sender.caller, `has paid ${sender.order.tag}, which a customer has, or may have`);
    }
  }

  async #sendSome(
    process: Process,
    sender: Sender,
    senders: readonly Sender[],
    isSame: boolean,
  ): Promise<void> {
    await this.#pause(process, this.#chance.between(0, 200));
    for (let times = 1 + this.#chance.below(3); times > 0; times -= 1) {
      await this.#send(sender, senders, isSame);
      await this.#pause(process, this.#chance.pick([10, 500, 6_000]));
    }
  }

  async #send({ caller, order }: Sender, senders: readonly Sender[], isSame: boolean): Promise<void> {
    const query = `mutation ($first: ${typeOf(order.mutation)}Input!) { ${fieldOf(order.mutation, 'first', 'first')} }`;
    order.touchedAt = this.world.sim.elapsed;
    const told = await this.#ask(caller, query, { first: order.input });
    const result = told?.data?.['first'] as (Result & { readonly replayed?: boolean }) | undefined;
    // What a customer has paid is told to people of the client as that: it is no payment under their own key.
    const isCustomers =
      isSame &&
      caller.customerId === undefined &&
      senders[0]?.caller.customerId !== undefined &&
      (result?.replayed === true || result?.__typename === 'UserError');
    const isOther = result?.code?.startsWith('IDEMPOTENCY') === true;
    let status: Order['told'][number]['status'] = told?.data == null ? 'nothing' : statusOf(result ?? null);
    if (told === undefined) status = 'unknown';
    else if (isCustomers || isOther || (isSame && status === 'refused')) status = 'nothing';
    if (status === 'done' || result?.__typename === 'OutcomeUnknown') this.#sent.add(order);
    order.touchedAt = this.world.sim.elapsed;
    order.told.push({ status, safeToRetry: result?.safeToRetry === true, at: this.world.sim.elapsed });
    this.onTold(order);
  }

  /** Each owner of the key, and everybody else, asks for its payment: nobody is shown another's. */
  async #lookAt(senders: readonly Sender[], key: string): Promise<void> {
    const shown = new Map<string, Caller>();
    for (const caller of this.#all) {
      const told = await this.#ask(caller, STATE, { key });
      const payment = told?.data?.['payment'] as { readonly id: string } | null | undefined;
      if (payment == null) continue;
      if (!senders.some((sender) => sender.caller === caller))
        this.#broken(caller, `is shown a payment under a key that it has not used`);
      const other = shown.get(payment.id);
      if (other !== undefined) this.#broken(caller, `is shown the payment of ${other.name}`);
      shown.set(payment.id, caller);
    }
  }

  #pause(process: Process, ms: number): Promise<void> {
    return new Promise((resolve) => void this.world.sim.after(ms, process, resolve));
  }

  async #ask(
    caller: Caller,
    query: string,
    variables: Readonly<Record<string, unknown>>,
  ): Promise<Told | undefined> {
    const late = new AbortController();
    this.world.sim.after(40_000, this.process, () => late.abort());
    const how = { way: this.#chance.pick(WAYS), signal: late.signal };
    const told = await ask(this.world, this.world.url(), caller.token(), { query, variables }, how).catch(
      () => undefined,
    );
    if (told !== undefined && codesOf(told).includes('INTERNAL'))
      this.#broken(caller, `is told INTERNAL: ${told.errors?.[0]?.message}`);
    return told;
  }

  #broken(caller: Caller, what: string): void {
    this.world.sim.fail(new Broken(`${this.name} (${caller.name}) ${what}`));
  }
}
