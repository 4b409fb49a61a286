import { App, type AppWorld } from './apps.ts';
import type { Caller } from './callers.ts';
import type { Chance } from './chance.ts';
import { Broken, type Process } from './core.ts';
import { alikeTo, fieldOf, type Order, type Orders, orderOf, typeOf } from './orders.ts';
import { ask, codesOf, type Told, WAYS } from './raw.ts';

/** What the record has under a key. */
export const STATE =
  'query ($key: String!) { payment(idempotencyKey: $key) { id state code transactionId } }';

/** The document of two payments, one or both of which may be of any kind. */
const documentOf = ({ first, second }: Pair): string =>
  `mutation ($first: ${typeOf(first.mutation)}Input!, $second: ${typeOf(second.mutation)}Input!) {
    ${fieldOf(first.mutation, 'first', 'first')} ${fieldOf(second.mutation, 'second', 'second')} }`;

export type Result = { readonly __typename: string; readonly code?: string; readonly safeToRetry?: boolean };

/** The payments of one document. */
type Pair = Readonly<Record<'first' | 'second', Order>>;

/** Sends two payments in one document by plain requests, repeats them under their keys, and asks what became of them. */
export class RawPayer extends App {
  readonly orders: Order[] = [];
  readonly #chance: Chance;
  readonly #isCalm: () => boolean;
  readonly #made: Orders;
  /** What the record has said of an order, where that was final. */
  readonly #settled = new Map<Order, { readonly state: string; readonly at: number }>();
  onTold: (order: Order) => void = () => {};
  /** How often money has moved for an order. */
  movedBy: (order: Order) => number = () => 0;
  /** When what a primary alone had was last forgotten, in ms since the beginning. */
  forgottenAt: () => number = () => Number.NEGATIVE_INFINITY;

  constructor(world: AppWorld, name: string, caller: Caller, made: Orders, isCalm: () => boolean) {
    super(world, name, caller);
    this.#chance = world.sim.chance(name);
    this.#isCalm = isCalm;
    this.#made = made;
  }

  protected live(process: Process): void {
    const next = (): void => {
      this.world.sim.after(this.#chance.between(4_000, 40_000) * this.world.payingPace, process, () => {
        next();
        if (!this.#isCalm()) void this.#pay(process);
      });
    };
    next();
  }

  async #pay(process: Process): Promise<void> {
    const tag = `${this.name} pays ${this.orders.length}`;
    const order = (name: string): Order => {
      const made = this.#made.make(this.#chance, `${tag} ${name}`);
      const idempotencyKey = `${made.tag} ${this.#chance.below(2 ** 30)}`;
      return orderOf(made.tag, made.mutation, { ...made.input, idempotencyKey });
    };
    const first = order('first');
    // A person may want the same twice: what has moved then fits both payments.
    const isTwice = first.mutation !== 'refundTransaction' && this.#chance.happens(0.2);
    const second = isTwice ? alikeTo(first, `${tag} second ${this.#chance.below(2 ** 30)}`) : order('second');
    const orders = { first, second };
    this.orders.push(first, second);
    if (this.#chance.happens(0.25)) {
      // The app is gone, and nobody comes back for it.
      await this.#send(orders, () => true, this.#chance.between(1, 8_000));
      return;
    }
    for (let times = 1 + this.#chance.below(4); times > 0; times -= 1) {
      // An impatient person presses twice: the two may meet at the record, or at different gateways.
      let isRepeated = false;
      const again = this.#chance.happens(0.4)
        ? this.#pause(process, this.#chance.between(0, 400))
        : undefined;
      const repeated = again?.then(() => {
        isRepeated = true;
        return this.#send(orders, () => false);
      });
      await Promise.all([this.#send(orders, () => !isRepeated), repeated]);
      await this.#lookAt(orders);
      await this.#pause(process, this.#chance.pick([50, 2_000, 30_000]));
      await this.#lookAt(orders);
      for (const order of Object.values(orders)) this.#checkNothing(order);
    }
  }

  /** What every call was told to have moved nothing moves nothing afterwards either. */
  #checkNothing(order: Order): void {
    const isNothing = order.told.length > 0 && order.told.every(({ status }) => status === 'nothing');
    if (isNothing && order.alike.length === 1 && !order.isForgotten && this.movedBy(order) > 0)
      this.#broken(`was told each time that ${order.tag} has moved nothing, and it has`);
  }

  #pause(process: Process, ms: number): Promise<void> {
    return new Promise((resolve) => void this.world.sim.after(ms, process, resolve));
  }

  #ask(
    query: string,
    variables: Readonly<Record<string, unknown>>,
    patienceMs = 40_000,
  ): Promise<Told | undefined> {
    const late = new AbortController();
    this.world.sim.after(patienceMs, this.process, () => late.abort());
    const how = { way: this.#chance.pick(WAYS), signal: late.signal };
    return ask(this.world, this.world.url(), this.caller.token(), { query, variables }, how).catch(
      () => undefined,
    );
  }

  /** @param isAlone whether no other request with these keys, sent since, may have moved the money: this one may have come last */
  async #send(orders: Pair, isAlone: () => boolean, patienceMs?: number): Promise<void> {
    const variables = { first: orders.first.input, second: orders.second.input };
    for (const order of Object.values(orders)) order.touchedAt = this.world.sim.elapsed;
    const told = await this.#ask(documentOf(orders), variables, patienceMs);
    if (told === undefined) {
      for (const order of Object.values(orders)) this.#note(order, 'unknown', false);
      return;
    }
    if (codesOf(told).includes('INTERNAL')) this.#broken(`is told INTERNAL: ${told.errors?.[0]?.message}`);
    if (told.data == null) {
      // What an earlier request has moved, this one may know nothing of.
      const moved = Object.values(orders).find(
        (order) => order.told.length === 0 && !order.isForgotten && this.movedBy(order) > 0,
      );
      if (moved !== undefined && isAlone())
        this.#broken(`is given no data, though ${moved.tag} has moved money`);
      for (const order of Object.values(orders)) this.#note(order, 'nothing', false);
      return;
    }
    for (const name of ['first', 'second'] as const) {
      const result = told.data[name] as Result | null;
      this.#note(orders[name], statusOf(result), result?.safeToRetry === true);
    }
  }

  #note(order: Order, status: Order['told'][number]['status'], safeToRetry: boolean): void {
    order.touchedAt = this.world.sim.elapsed;
    order.told.push({ status, safeToRetry, at: order.touchedAt });
    this.onTold(order);
  }

  /** What the record says of a payment, against what was told before and what the ledger has. */
  async #lookAt(orders: Pair): Promise<void> {
    for (const order of Object.values(orders)) {
      const before = order.told.map(({ status }) => status);
      const told = await this.#ask(STATE, { key: order.input['idempotencyKey'] });
      if (told?.data == null || (told.errors ?? []).length > 0 || order.isForgotten) continue;
      order.touchedAt = this.world.sim.elapsed;
      const payment = told.data['payment'] as { readonly state: string } | null;
      const state = payment?.state;
      // An answer is told also while its record cannot be reached; the record gets it as soon as it can.
      const isLate = (state === 'IN_FLIGHT' || state === 'UNKNOWN') && !this.#isCalm();
      if (before.includes('done') && state !== 'DONE' && !isLate)
        this.#broken(`was told that ${order.tag} is done, and then ${state}`);
      // What the record itself has said once, it goes on to say. What a primary alone had is known again once the gateway has written it
      // to the one that took its place.
      const settled = this.#settled.get(order);
      const isForgotten = isLate && settled !== undefined && this.forgottenAt() > settled.at;
      if (settled !== undefined && payment !== null && state !== settled.state && !isForgotten)
        this.#broken(`read in the record that ${order.tag} is ${settled.state}, and then ${state}`);
      if (state === 'DONE' || state === 'REFUSED')
        this.#settled.set(order, { state, at: this.world.sim.elapsed });
      if (before.includes('refused') && state === 'DONE')
        this.#broken(`was told that ${order.tag} is refused, and then ${state}`);
      if (state === 'REFUSED' && this.movedBy(order) >= order.alike.length)
        this.#broken(`is told that ${order.tag}, a ${order.mutation}, is refused, and it has moved money`);
      if (state === 'DONE' && this.movedBy(order) === 0)
        this.#broken(`is told that ${order.tag} is done, and the ledger has nothing of it`);
    }
  }

  #broken(what: string): void {
    this.world.sim.fail(new Broken(`${this.name} ${what}`));
  }
}

/** What a result tells of its payment. */
export function statusOf(result: Result | null): Order['told'][number]['status'] {
  if (result === null) return 'nothing';
  const { __typename: name, code } = result;
  if (name.endsWith('Success')) return 'done';
  if (name === 'OutcomeUnknown') return 'unknown';
  // An earlier call with the key is at it.
  return code === 'IDEMPOTENCY_IN_PROGRESS' ? 'unknown' : 'refused';
}
