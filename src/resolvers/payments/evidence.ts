import { clock } from '../../common/clock.ts';
import { Lru } from '../../common/lru.ts';
import type { PaymentPosition, PaymentRecord, PaymentSearch } from '../../money/record.ts';
import type { Found, PaymentBook, Seen } from '../../money/settling/open-payment.ts';
import type { OpenPayment } from '../../money/settling/open-records.ts';
import { present } from '../../upstream/call/json.ts';
import { isUuid } from '../../upstream/call/path.ts';
import type { Rest } from '../../upstream/call/rest.ts';
import { isTransaction, readTransaction, type Transaction } from '../../upstream/transactions.ts';
import {
  fits,
  isAlike,
  keptText,
  madeAt,
  movementOf,
  type Order,
  orderOf,
  parsed,
} from './evidence-match.ts';
import { NamedTransactions } from './named-transactions.ts';
import type { Sighting, Sightings } from './sightings.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The clocks of Redis, which dates the sending, and of the process that received an event differ by less. */
const CLOCKS_MS = 2 * MINUTE;
/** A movement that was named earlier than this before the sending may be another one, or the clocks differ: nothing is certain. */
const EARLY_MS = 2 * SECOND;
/** How late after a request the service still carries it out, or tells of it. Money out: 24 h, since it is repeated. */
const CARRIED_OUT_MS = 15 * MINUTE;
const REPEATED_MS = 24 * HOUR;
/** The service's own clock may be wrong by as much. */
const SERVICE_CLOCK_MS = 2 * MINUTE;
/** Events are looked through that were received within this of the payment, or within the last of it: receipts take three hours. */
const LOOKED_THROUGH_MS = 6 * HOUR;
/** Transactions that are read for one look. While more are to be read, nothing is certain: the next look reads on. */
const MOST_READS = 20;
/** Reads of one look that fail before one succeeds. Then it is the service that is away, and not these transactions. */
const MOST_FAILURES = 3;
/** Ids that the record is asked for at the same time. */
const AT_ONCE = 64;
/** After this nothing more is read for a look, in ms: it ends before its lease does. The next look reads on. */
const MOST_MS = 8 * SECOND;
/** Ids that are remembered as other payments'. A settled payment keeps its transaction. */
const MOST_TAKEN = 20_000;
const TAKEN_MS = 72 * HOUR;
/** Payments of the record that are compared in one look; where there are more, nothing is certain. */
const MOST_COMPARED = 2_000;
const PAGE = 200;

interface Look {
  readonly payment: OpenPayment;
  readonly order: Order;
  readonly rest: Rest;
  readonly book: PaymentBook;
  readonly now: number;
  /** Whether it has taken as long as it may. */
  readonly isOver: () => boolean;
}

/** A transaction that is what was ordered, and when the log first heard of it. */
interface Match {
  readonly transaction: Transaction;
  readonly at: number;
}

const open = (seen: Seen): Found => ({ kind: 'open', seen });

/** The service fails at whatever is read. */
class ServiceFailsError extends Error {
  override readonly name = 'ServiceFailsError';
  override readonly message = 'The service fails at each transaction that is read.';
}

/**
 * Finds the transactions of payments whose answers were lost, among those that events name (docs/payments.md, "What counts as
 * evidence"). A payment is done when one movement is what was ordered, in all that both show, at its time, and no other payment of the record
 * could be it. Everything less is no evidence.
 */
export class Evidence {
  readonly #sightings: Sightings;
  readonly #utcOffset: string;
  readonly #transactions = new NamedTransactions();
  /** Ids that the record is known to have as settled payments'. */
  readonly #taken = new Lru<true>(MOST_TAKEN, { ttl: TAKEN_MS });

  constructor(sightings: Sightings, utcOffset: string) {
    this.#sightings = sightings;
    this.#utcOffset = utcOffset;
  }

  /** @throws what the log, the record or the service throws */
  async look(payment: OpenPayment, rest: Rest, book: PaymentBook, now: number): Promise<Found> {
    const begunAt = clock.monotonic();
    const isOver = () => clock.monotonic() - begunAt > MOST_MS;
    const look: Look = { payment, order: orderOf(payment), rest, book, now, isOver };
    const matches = await this.#matches(look);
    if (typeof matches === 'string') return open(matches);
    const movements = Map.groupBy(matches, ({ transaction }) => movementOf(transaction));
    const free: { readonly legs: readonly Match[]; readonly isAlone: boolean }[] = [];
    for (const legs of movements.values()) {
      // In this order: what is settled meanwhile is found open or done.
      const isAlone = !(await couldBeAnothers(look, legs));
      if (!(await isTaken(look, legs))) free.push({ legs, isAlone });
    }
    const [{ legs, isAlone } = { legs: [], isAlone: true }] = free;
    // The leg that the answer would have shown, where it is known.
    const found = legs.find(({ transaction }) => transaction.subCategory.endsWith('_DEBIT')) ?? legs[0];
    if (found === undefined) return open('nothing');
    const isEarly = legs.some(({ at }) => at < payment.sentAt - EARLY_MS);
    if (free.length > 1 || !isAlone || isEarly) return open('alike');
    const { transaction } = found;
    return { kind: 'done', text: keptText(transaction), transactionId: transaction.id };
  }

  /** @returns why nothing is certain, where not all that may match has been read */
  async #matches(look: Look): Promise<readonly Match[] | 'nothing' | 'unreadable' | 'out-of-reach'> {
    const { payment, rest, now, isOver } = look;
    const { sentAt, closed } = payment;
    const named = await this.#sightings.since(sentAt - CLOCKS_MS, now);
    if (named === 'unread') return 'nothing';
    if (named === 'given-up') return 'out-of-reach';
    const sightings = named.filter(({ at }) => Math.min(at - sentAt, now - at) <= LOOKED_THROUGH_MS);
    const told = closed === null ? [] : namedBy(closed.text, sentAt);
    const candidates = [...told, ...sightings].filter((sighting) => this.#mayMatch(look, sighting));
    const matches: Match[] = [];
    let [reads, failures, isWhole] = [0, 0, true];
    for (let first = 0; first < candidates.length; first += AT_ONCE) {
      if (isOver()) return 'nothing';
      for (const { id, at } of await this.#untaken(look, candidates.slice(first, first + AT_ONCE))) {
        if (isOver()) return 'nothing';
        let known = this.#transactions.known(id);
        if (known === undefined && this.#transactions.isResting(id, now)) isWhole = false;
        else if (known === undefined) {
          reads += 1;
          if (reads > MOST_READS) return 'nothing';
          const read = await this.#transactions.read(id, now - at, rest, now);
          if (read === 'failed') failures += 1;
          if (failures === MOST_FAILURES && failures === reads) throw new ServiceFailsError();
          if (typeof read === 'string') isWhole = false;
          else known = read;
        }
        const { transaction = null } = known ?? {};
        if (transaction !== null && this.#isMatch(look, transaction, at)) matches.push({ transaction, at });
      }
    }
    return isWhole ? matches : 'unreadable';
  }

  /** Whether a sighting is to be looked at: what is known of it need not be asked for again. */
  #mayMatch(look: Look, { id, at }: Sighting): boolean {
    if (this.#taken.has(id)) return false;
    const known = this.#transactions.known(id);
    if (known === undefined) return true;
    return known.transaction !== null && this.#isMatch(look, known.transaction, at);
  }

  #isMatch({ payment, order }: Look, transaction: Transaction, at: number): boolean {
    return fits(order, transaction) && this.#isOfItsTime(payment, transaction, at);
  }

  /** Those that the record does not have as another payment's. */
  async #untaken({ payment, book }: Look, some: readonly Sighting[]): Promise<readonly Sighting[]> {
    const { clientId } = payment.name;
    const owners = await Promise.all(some.map(({ id }) => book.readByTransaction(clientId, id)));
    return some.filter(({ id }, index) => {
      if (owners[index] === undefined) return true;
      this.#taken.set(id, true);
      return false;
    });
  }

  /** By the log, which heard of it first at `at`, or by the service's own clock: either may be late or wrong. */
  #isOfItsTime({ asked, sentAt }: OpenPayment, transaction: Transaction, at: number): boolean {
    const within = asked.operation === 'createMoneyOut' ? REPEATED_MS : CARRIED_OUT_MS;
    const made = madeAt(transaction, this.#utcOffset);
    const isHeardInTime = at <= sentAt + within;
    return isHeardInTime || (made !== undefined && Math.abs(made - sentAt) <= within + SERVICE_CLOCK_MS);
  }
}

/** What an answer that was not believed names itself. */
function namedBy(text: string, at: number): readonly Sighting[] {
  const { id } = parsed(text);
  return typeof id === 'string' && isUuid(id) ? [{ id: id.toLowerCase(), at }] : [];
}

/** Whether a movement is that of a payment which is known to be done. A transaction's own id is looked up before. */
async function isTaken({ order, payment, book, now }: Look, legs: readonly Match[]): Promise<boolean> {
  for (const { transaction } of legs) {
    if ((await book.readByTransaction(payment.name.clientId, transaction.id)) !== undefined) return true;
  }
  if (order.operation !== 'createInternalTransaction') return false;
  const { transaction } = legs[0] ?? {};
  if (transaction === undefined) return false;
  const from = payment.sentAt - CARRIED_OUT_MS;
  const done = await recordsOf(book, payment, 'done', from, now);
  if (done === undefined) return true;
  return done.some((record) => {
    if (record.asked === null || !isAlike({ ...order, ...record.asked }, order)) return false;
    const known = parsed(record.answer?.text ?? '');
    const tracking = present(known['trackingId']);
    // Without it nothing tells whether the other leg is of the same movement.
    return (
      tracking === null ||
      present(transaction.trackingId) === null ||
      tracking === present(transaction.trackingId)
    );
  });
}

/** Whether another payment that is open could be the one that moved. */
async function couldBeAnothers(
  { order, payment, book, now }: Look,
  legs: readonly Match[],
): Promise<boolean> {
  const others = await recordsOf(book, payment, 'open', now - 3 * REPEATED_MS, now);
  if (others === undefined) return true;
  const at = Math.min(...legs.map((leg) => leg.at));
  const within = order.operation === 'createMoneyOut' ? REPEATED_MS : CARRIED_OUT_MS;
  return others.some(({ hash, asked, body, sent }) => {
    if (hash === payment.name.hash || asked === null || sent === null) return false;
    const isOfItsTime = sent.sentAt <= at + CLOCKS_MS && sent.sentAt >= at - within - CARRIED_OUT_MS;
    return isOfItsTime && isAlike(orderOf({ asked, body: body ?? '' }), order);
  });
}

/** Those of the same operation in a class, asked for from a time on; undefined where they are too many to compare. */
async function recordsOf(
  book: PaymentBook,
  { name, asked }: OpenPayment,
  kind: 'open' | 'done',
  from: number,
  to: number,
): Promise<readonly PaymentRecord[] | undefined> {
  const found: PaymentRecord[] = [];
  const search: Omit<PaymentSearch, 'beyond'> = {
    clientId: name.clientId,
    customerId: undefined,
    operations: [asked.operation],
    classes: [kind],
    from,
    to: to + MINUTE,
    isBack: false,
    limit: PAGE,
  };
  let beyond: PaymentPosition | undefined;
  do {
    const { records, next } = await book.search({ ...search, beyond });
    found.push(...records);
    beyond = next;
  } while (beyond !== undefined && found.length < MOST_COMPARED);
  return beyond === undefined ? found : undefined;
}

/** Whether a refund is, or could be, of a credit. */
function isOf({ original, answer }: PaymentRecord, id: string): boolean {
  const told = original ?? present(parsed(answer?.text ?? '')['originalTransactionId']);
  return told === null || told.toLowerCase() === id.toLowerCase();
}

/**
 * What became of a refund whose answer was lost, by the credit that it returns. The credit had not read REFUNDED when it was sent, and a
 * credit is returned once and in full: where it reads so now, it was this refund, unless the record has another one of it. Another that is
 * open may be of any age: how late a credit comes to read REFUNDED is the service's to say.
 */
export async function lookForRefund(
  payment: OpenPayment,
  rest: Rest,
  book: PaymentBook,
  now: number,
): Promise<Found> {
  const { original: id, sentAt, name } = payment;
  if (id === null) return open('unreadable');
  const original = await readTransaction(rest, id);
  if (!isTransaction(original)) return open('unreadable');
  if (original.transactionStatus !== 'REFUNDED') return open('not-refunded');
  for (const kind of ['open', 'done'] as const) {
    const others = await recordsOf(book, payment, kind, kind === 'open' ? 0 : sentAt - 3 * REPEATED_MS, now);
    if (others === undefined) return open('other-refund');
    const isOther = (record: PaymentRecord) => record.hash !== name.hash && isOf(record, id);
    if (others.some(isOther)) return open('other-refund');
  }
  return {
    kind: 'done',
    text: JSON.stringify({ originalTransactionId: id, amount: original.amount }),
    transactionId: undefined,
  };
}
