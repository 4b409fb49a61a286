import { clock } from '../../common/clock.ts';
import type { PaymentPosition, PaymentRecord, PaymentSearch } from '../../money/record.ts';
import type { PaymentBook } from '../../money/settling/open-payment.ts';
import type { OpenPayment } from '../../money/settling/open-records.ts';
import { present } from '../../upstream/call/json.ts';
import type { Transaction } from '../../upstream/transactions.ts';
import { answerOf, isAlike, type Order, orderOf } from './evidence-match.ts';
import { saysCameBack } from './status-words.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The clocks of Redis, which dates the sending, and of the process that received an event differ by less. */
export const CLOCKS_MS = 2 * MINUTE;
/** How late after a request the service still carries it out, or tells of it. Money out: 24 h, since it is repeated. */
const CARRIED_OUT_MS = 15 * MINUTE;
const REPEATED_MS = 24 * HOUR;
/** How long before the sending the log may hear of a movement, as clocks differ. */
const EARLY_MS = 2_000;
/** The service's own clock may be wrong by as much. */
const SERVICE_CLOCK_MS = 2 * MINUTE;
/** Payments of the record that are compared in one look; where there are more, nothing is certain. */
const MOST_COMPARED = 2_000;
const PAGE = 200;

/** A transaction that is what was ordered. Times are in ms since the epoch. */
export interface Match {
  readonly transaction: Transaction;
  /** When the log first heard of it. */
  readonly at: number;
  /** When the service says that it made it; undefined where it does not say. */
  readonly made: number | undefined;
}

/** A payment that is looked for. */
interface Sought {
  readonly payment: OpenPayment;
  readonly order: Order;
  readonly book: PaymentBook;
}

export const withinOf = ({ operation }: Order): number =>
  operation === 'createMoneyOut' ? REPEATED_MS : CARRIED_OUT_MS;

/** By the log, which heard of it first at `at`, or by the service's own clock: one of the two is enough. */
export const isOfItsTime = (sentAt: number, { at, made }: Match, within: number): boolean =>
  at <= sentAt + within || (made !== undefined && Math.abs(made - sentAt) <= within + SERVICE_CLOCK_MS);

/**
 * Whether a movement was named, or made by the service's own clock, before the payment was sent. It is another one, or clocks are wrong: do
 * not settle by it.
 */
export const isEarly = (sentAt: number, { at, made }: Match): boolean =>
  at < sentAt - EARLY_MS || (made !== undefined && made < sentAt - SERVICE_CLOCK_MS);

/**
 * Whether a movement that has come back may be an older one: the service does not say when it made it, and the log may hear of it by what
 * tells that it came back, at any time after.
 */
export const isUndated = (legs: readonly Match[]): boolean =>
  legs.every(({ made }) => made === undefined) &&
  legs.some(({ transaction }) => saysCameBack(transaction.transactionStatus));

/** A quarter of an hour more than the payment itself is granted. */
const withinOfOthers = (order: Order): number => withinOf(order) + CARRIED_OUT_MS;

/**
 * Whether a payment that was sent then could have become a movement. An event may come late by any time: where the service does not say when
 * it made the movement, a payment of any age could be it.
 */
const couldBe = (sentAt: number, order: Order, legs: readonly Match[]): boolean =>
  sentAt <= firstNamed(legs) + CLOCKS_MS &&
  legs.some((leg) => leg.made === undefined || isOfItsTime(sentAt, leg, withinOfOthers(order)));

/** From when on such a payment may have been asked for. It is sent soon after, or refused. */
const askedFrom = (order: Order, legs: readonly Match[]): number =>
  Math.min(...legs.map(({ at, made }) => (made === undefined ? 0 : Math.min(at, made)))) -
  withinOfOthers(order) -
  CARRIED_OUT_MS;

const firstNamed = (legs: readonly Match[]): number => Math.min(...legs.map(({ at }) => at));

/** Whether a movement is that of a payment which is known to be done. A transaction's own id is looked up before. */
export async function isTaken(sought: Sought, legs: readonly Match[]): Promise<boolean | 'too-many'> {
  const { order, payment, book } = sought;
  const ids = legs.map(({ transaction }) => transaction.id);
  const owners = await book.readByTransactions(payment.name.clientId, ids);
  if (owners.some((owner) => owner !== undefined)) return true;
  if (order.operation !== 'createInternalTransaction') return false;
  const { transaction } = legs[0] ?? {};
  if (transaction === undefined) return false;
  const done = await rivals(sought, legs, 'done');
  if (done === 'too-many') return done;
  return done.some((record) => {
    const { asked, sent, createdAt } = record;
    if (asked === null || !isAlike({ ...order, ...asked }, order)) return false;
    if (!couldBe(sent?.sentAt ?? createdAt, order, legs)) return false;
    const tracking = present(answerOf(record)['trackingId']);
    // Without it nothing tells whether the other leg is of the same movement.
    return (
      tracking === null ||
      present(transaction.trackingId) === null ||
      tracking === present(transaction.trackingId)
    );
  });
}

/** Whether another payment that is open could be the one that moved. */
export async function couldBeAnothers(sought: Sought, legs: readonly Match[]): Promise<boolean | 'too-many'> {
  const { order, payment } = sought;
  const others = await rivals(sought, legs, 'open');
  if (others === 'too-many') return others;
  return others.some(({ hash, asked, body, sent }) => {
    if (hash === payment.name.hash || asked === null || sent === null) return false;
    return couldBe(sent.sentAt, order, legs) && isAlike(orderOf({ asked, body: body ?? '' }), order);
  });
}

/** The payments that were asked for at a time at which they could have become a movement. */
const rivals = ({ order, payment, book }: Sought, legs: readonly Match[], kind: 'open' | 'done') =>
  recordsOf(book, payment, kind, askedFrom(order, legs), firstNamed(legs) + CLOCKS_MS + MINUTE);

/**
 * Those of the same operation in a class, asked for from a time on and before another; `too-many` where they are too many to compare. Times
 * are in ms since the epoch, by the clock of the store.
 */
export async function recordsOf(
  book: PaymentBook,
  { name, asked }: OpenPayment,
  kind: 'open' | 'done',
  from: number,
  to: number | undefined,
): Promise<readonly PaymentRecord[] | 'too-many'> {
  const found: PaymentRecord[] = [];
  const search: Omit<PaymentSearch, 'beyond'> = {
    clientId: name.clientId,
    customerId: undefined,
    operations: [asked.operation],
    classes: [kind],
    from: Math.max(0, from),
    to,
    isBack: false,
    limit: PAGE,
  };
  let beyond: PaymentPosition | undefined;
  do {
    // A record in a file is read without a wait, which would keep everybody else waiting until the last page.
    if (beyond !== undefined) await clock.immediate();
    const { records, next } = await book.search({ ...search, beyond });
    found.push(...records);
    beyond = next;
  } while (beyond !== undefined && found.length < MOST_COMPARED);
  return beyond === undefined ? found : 'too-many';
}
