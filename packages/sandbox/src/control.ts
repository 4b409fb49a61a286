import type { z } from 'zod';
import { ambient } from './ambient.ts';
import { parseCents } from './amounts.ts';
import { activeCredential, issueToken } from './auth.ts';
import type { completionOrder, creditOrder, receiptOrder, refundOrder } from './control-orders.ts';
import {
  type AccountView,
  type ClientView,
  type DeliveryView,
  type LedgerView,
  viewAccounts,
  viewClient,
  viewDelivery,
  viewLedger,
} from './control-views.ts';
import { dataError, notFound } from './errors.ts';
import { Faults } from './faults.ts';
import { checkReceipt, decideReceipt } from './operations/cep.ts';
import { receiveSpeiCredit, refundCredit } from './operations/credits.ts';
import { someExternalPayer } from './operations/instruments.ts';
import {
  type OverviewView,
  type TransactionDetailView,
  viewOverview,
  viewTransactionDetail,
} from './overview.ts';
import type { Tell } from './pending.ts';
import { RequestCounts } from './request-counts.ts';
import type { RestCustomer, RestNewTransaction, RestTransaction } from './rest.ts';
import type { Seeded } from './seed.ts';
import type { Client, Token, WebhookType } from './state.ts';
import { formatTimestamp } from './timestamps.ts';
import { viewCustomer, viewNewTransaction, viewTransaction } from './views.ts';
import type { World } from './world.ts';

/** Simulated time. */
export interface ClockView {
  /** ISO 8601. */
  now: string;
  speed: number;
}

/** How often each endpoint was called: `{ "GET /v1/banks": 3 }`. */
export interface RequestsView {
  total: number;
  counts: Record<string, number>;
}

/** What was completed. */
export type Completed = { transaction: RestTransaction } | { customer: RestCustomer };

/** All that people and tests do to a sandbox besides calling the service: docs/sandbox.md, "Control". */
export class Control {
  readonly faults = new Faults();
  readonly counts = new RequestCounts();
  readonly #world: World;
  readonly #seeded: readonly Seeded[];

  constructor(world: World, seeded: readonly Seeded[]) {
    this.#world = world;
    this.#seeded = seeded;
  }

  /** The demo client first. */
  async clients(): Promise<ClientView[]> {
    const views = [];
    for (const one of this.#seeded) {
      views.push(viewClient(this.#world, one, await currentToken(this.#world, one.client)));
    }
    return views;
  }

  /** Those of the demo client, with their balances of this moment. */
  accounts(): AccountView[] {
    return this.#seeded.slice(0, 1).flatMap(({ client }) => viewAccounts(this.#world, client.id));
  }

  /** An SPEI credit arrives; resolves once each active webhook has been tried once. @throws ApiError */
  async credit(
    order: z.infer<typeof creditOrder>,
  ): Promise<{ transaction: RestTransaction; deliveries: DeliveryView[] }> {
    const world = this.#world;
    const amount = parseCents(order.amount);
    if (amount === undefined || amount <= 0n) {
      throw dataError('body.amount: a string above zero with two decimals, such as "1250.00"');
    }
    const account = world.state.accountByClabe(order.clabe);
    if (account === undefined) throw notFound('clabe_not_found');
    const arrived = receiveSpeiCredit(world, {
      account,
      payer: someExternalPayer(world, account.clientId, order.payerName),
      amount,
      concept: order.concept,
      reference: world.ids.digits('reference', 7),
    });
    const sent = await arrived.deliveries;
    return { transaction: viewTransaction(world, arrived.transaction), deliveries: sent.map(viewDelivery) };
  }

  /** The demo client's latest credit that can be refunded; undefined where there is none. */
  latestRefundable() {
    const demo = this.#seeded[0]?.client.id;
    return [...this.#world.state.transactions.values()].findLast(
      ({ clientId, subCategory, status }) =>
        clientId === demo && subCategory === 'SPEI_CREDIT' && status === 'LIQUIDATED',
    );
  }

  /**
   * Sends a received SPEI credit back, as the provider's dashboard can: the one named, or the demo client's latest that can
   * be refunded.
   *
   * @throws ApiError 404 where there is none; 400 as endpoint 14.
   */
  refund({ transactionId, reason }: z.infer<typeof refundOrder>): { refund: RestNewTransaction } {
    const credit =
      transactionId === undefined
        ? this.latestRefundable()
        : this.#world.state.transactions.get(transactionId.toLowerCase());
    if (credit === undefined) throw notFound('transaction_not_found');
    return { refund: viewNewTransaction(this.#world, refundCredit(this.#world, credit, reason)) };
  }

  /**
   * Ends at once what time or a webhook's answer would end; resolves once its webhooks have been tried.
   *
   * @throws ApiError 404 where nothing of this id is pending; 400 where it cannot end so.
   */
  async complete({ id, outcome }: z.infer<typeof completionOrder>): Promise<Completed> {
    const world = this.#world;
    const key = id.toLowerCase();
    const transaction = world.state.transactions.get(key);
    if (outcome === 'done' && transaction !== undefined) checkReceipt(transaction);
    const isFound = await this.#telling((tell) => world.pending.complete(key, outcome, tell));
    if (!isFound) throw notFound('nothing_pending');
    if (transaction !== undefined) return { transaction: viewTransaction(world, transaction) };
    const customer = world.state.customers.get(key);
    if (customer === undefined) throw notFound('nothing_pending');
    return { customer: viewCustomer(world, customer) };
  }

  /**
   * Says what becomes of a receipt that is still on the way: `now` and `other-holder` complete it at once, the latter in another
   * name; `late` has it issued at attempt 6; `never` has it end FAILED, at attempt 17. `{ status }` is shown at once in place of
   * PENDING and DELAYED, and changes nothing of how it ends.
   *
   * @throws ApiError 404 where no receipt of this transaction is on the way; 400 where one is to come of a transfer that came back.
   */
  async receipt({
    transactionId,
    receipt,
  }: z.infer<typeof receiptOrder>): Promise<{ transaction: RestTransaction }> {
    const world = this.#world;
    const transaction = await this.#telling((tell) =>
      decideReceipt(world, transactionId.toLowerCase(), receipt, tell),
    );
    return { transaction: viewTransaction(world, transaction) };
  }

  /**
   * Does something, and tries the webhooks of what it tells. It awaits no other message that is under way: who receives that may
   * be who asks for this, and may answer only then.
   */
  async #telling<T>(act: (tell: Tell) => Promise<T>): Promise<T> {
    const { clock, deliveries } = this.#world;
    // A message that is due, such as that of a receipt's first attempt, leaves before those of the act.
    clock.beginDue();
    let sent: Promise<unknown> = Promise.resolve();
    const result = await act((message) => {
      sent = sent.then(() => deliveries.send(message));
    });
    await sent;
    return result;
  }

  /** What the page at `/` shows, of the demo client. */
  overview(): OverviewView {
    const demo = this.#seeded[0];
    if (demo === undefined) throw notFound('client_not_found');
    return viewOverview(this.#world, demo, this.faults.all());
  }

  /** @throws ApiError 404 */
  transaction(id: string): TransactionDetailView {
    const transaction = this.#world.state.transactions.get(id);
    if (transaction === undefined) throw notFound('transaction_not_found');
    return viewTransactionDetail(this.#world, transaction);
  }

  /** Has the next `times` messages of a type, or all of them, sent to nobody. */
  loseMessages(type: WebhookType, times?: number): void {
    this.#world.deliveries.lose(type, times);
  }

  /** No message is lost any more. */
  loseNothing(): void {
    this.#world.deliveries.loseNothing();
  }

  /** Has every webhook's receiver unreachable, or reachable again. */
  setWebhooksDown(isDown: boolean): void {
    this.#world.deliveries.setDown(isDown);
  }

  /** Lets time run at another speed from now on. */
  setSpeed(speed: number): void {
    this.#world.clock.setSpeed(speed);
  }

  time(): ClockView {
    const { clock } = this.#world;
    return { now: formatTimestamp(clock.now(), 'iso'), speed: clock.speed };
  }

  /** Moves simulated time on; resolves when everything that fell due has been done and delivered. */
  async advance(seconds: number): Promise<ClockView> {
    await this.#world.clock.advance(seconds * 1000);
    return this.time();
  }

  ledger(): LedgerView {
    return viewLedger(this.#world);
  }

  /** Oldest first. */
  deliveries(): DeliveryView[] {
    return this.#world.deliveries.all().map(viewDelivery);
  }

  /** Sends the same message again, once. @throws ApiError 404 */
  async resend(id: string): Promise<DeliveryView> {
    const { deliveries } = this.#world;
    const delivery = deliveries.get(id);
    if (delivery === undefined) throw notFound('delivery_not_found');
    await deliveries.resend(delivery);
    return viewDelivery(delivery);
  }

  /**
   * Sends a webhook's message to a handler of one's own, once.
   *
   * @throws ApiError 404; 400 where no answer came, or webhooks may not go there.
   */
  async sendTo(url: string, id: string): Promise<{ status: number; body: string }> {
    const { deliveries } = this.#world;
    const delivery = deliveries.get(id);
    if (delivery === undefined) throw notFound('delivery_not_found');
    return deliveries.sendTo(url, delivery).catch((error: unknown) => {
      throw dataError(error instanceof Error ? error.message || error.name : String(error));
    });
  }

  requests(): RequestsView {
    return { total: this.counts.total(), counts: this.counts.byRoute() };
  }

  /** No fault applies, no message is lost and no receiver of webhooks is unreachable any more, whoever wanted it so. */
  heal(): void {
    this.faults.clear();
    this.loseNothing();
    this.setWebhooksDown(false);
  }
}

/** The client's newest token that is still good for a while, or a fresh one. */
export async function currentToken(world: World, client: Client): Promise<Token> {
  const soon = ambient.now() + (world.choices.tokenTtlSeconds * 1000) / 5;
  const newest = world.state.tokens
    .values()
    .filter(({ clientId, expiresAt }) => clientId === client.id && expiresAt > soon)
    .toArray()
    .at(-1);
  return newest ?? issueToken(world, client, activeCredential(client));
}
