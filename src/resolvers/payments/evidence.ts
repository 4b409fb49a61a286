import { clock } from '../../common/clock.ts';
import { Lru } from '../../common/lru.ts';
import type { PaymentRecord } from '../../money/record.ts';
import type { Found, PaymentBook, Seen } from '../../money/settling/open-payment.ts';
import type { OpenPayment } from '../../money/settling/open-records.ts';
import { isUuid } from '../../upstream/call/path.ts';
import type { Rest } from '../../upstream/call/rest.ts';
import { isTransaction, readTransaction, type Transaction } from '../../upstream/transactions.ts';
import {
  fieldsOf,
  fits,
  keptText,
  madeAt,
  movementOf,
  type Order,
  orderOf,
  refundedBy,
} from './evidence-match.ts';
import {
  CLOCKS_MS,
  couldBeAnothers,
  isEarly,
  isOfItsTime,
  isTaken,
  isUndated,
  type Match,
  recordsOf,
  withinOf,
} from './evidence-rivals.ts';
import { NamedTransactions } from './named-transactions.ts';
import { MOST_IDS, type Sighting, type Sightings } from './sightings.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
/** Transactions that are read for one look. While more are to be read, nothing is certain: the next look reads on. */
const MOST_READS = 50;
/** Reads of one look that fail before one succeeds. Then it is the service that is away, and not these transactions. */
const MOST_FAILURES = 3;
/** Ids that the record is asked for at the same time. */
const AT_ONCE = 64;
/** Ids that are gone through without a pause: some milliseconds of work. */
const PASSED_AT_ONCE = 2_000;
/** After this nothing more is read for a look, in ms: it ends before its lease does. The next look reads on. */
const MOST_MS = 8 * SECOND;
/** How long ids are remembered as other payments'. A settled payment keeps its transaction. */
const TAKEN_MS = 72 * HOUR;
interface Look {
  readonly payment: OpenPayment;
  readonly order: Order;
  readonly rest: Rest;
  readonly book: PaymentBook;
  readonly now: number;
  /** Whether it has taken as long as it may. */
  readonly isOver: () => boolean;
}

const open = (seen: Seen): Found => ({ kind: 'open', seen });

/** The service fails at whatever is read. */
class ServiceFailsError extends Error {
  override readonly name = 'ServiceFailsError';
  override readonly message = 'The service fails at each transaction that is read.';
}

/**
 * Finds the transactions of payments whose answers were lost, among those that events name (docs/payments.md, "What counts as
 * evidence"). A payment is done when one movement is what was ordered, in all that the order names, at its time, and no other payment of the
 * record could be it. Everything less is no evidence.
 */
export class Evidence {
  readonly #sightings: Sightings;
  readonly #utcOffset: string;
  readonly #transactions = new NamedTransactions();
  /** Ids that the record is known to have as settled payments'. */
  readonly #taken = new Lru<true>(MOST_IDS, { ttl: TAKEN_MS });

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
      const others = await couldBeAnothers(look, legs);
      const taken = await isTaken(look, legs);
      if (taken === true) continue;
      if (others === 'too-many' || taken === 'too-many') return open('too-many');
      free.push({ legs, isAlone: !others });
    }
    const [{ legs, isAlone } = { legs: [], isAlone: true }] = free;
    // The leg that the answer would have shown, where it is known.
    const found = legs.find(({ transaction }) => transaction.subCategory.endsWith('_DEBIT')) ?? legs[0];
    if (found === undefined) return open('nothing');
    if (free.length > 1 || !isAlone) return open('alike');
    if (legs.some((leg) => isEarly(payment.sentAt, leg))) return open('early');
    if (isUndated(legs)) return open('undated');
    const { transaction } = found;
    return { kind: 'done', text: keptText(transaction), transactionId: transaction.id };
  }

  /** @returns why nothing is certain, where not all that may match has been read */
  async #matches(look: Look): Promise<readonly Match[] | Seen> {
    const { payment, rest, now, isOver } = look;
    const { sentAt, closed } = payment;
    const named = await this.#sightings.since(sentAt - CLOCKS_MS, now);
    if (named === 'given-up') return 'out-of-reach';
    if (typeof named === 'string') return named;
    const told = closed === null ? [] : namedBy(closed.text, sentAt);
    const candidates = await this.#candidates(look, [...told, ...named]);
    const matches: Match[] = [];
    let [reads, failures, isWhole] = [0, 0, true];
    for (let first = 0; first < candidates.length; first += AT_ONCE) {
      if (isOver()) return 'unread';
      for (const { id, at } of await this.#untaken(look, candidates.slice(first, first + AT_ONCE))) {
        if (isOver()) return 'unread';
        let known = this.#transactions.known(id);
        if (known === undefined && this.#mayNotRead(id, now, reads)) isWhole = false;
        else if (known === undefined) {
          reads += 1;
          if (reads > MOST_READS) return 'unread';
          const read = await this.#transactions.read(id, now - at, rest, now);
          if (read === 'failed') failures += 1;
          if (failures === MOST_FAILURES && failures === reads) throw new ServiceFailsError();
          if (typeof read === 'string') isWhole = false;
          else known = read;
        }
        const match = known && this.#match(look, known.transaction, at);
        if (match !== undefined) matches.push(match);
      }
    }
    return isWhole ? matches : 'unreadable';
  }

  /** Those that are to be looked at. The ones that could not be read come last: they would take the reads of all others, look after look. */
  async #candidates(look: Look, sightings: readonly Sighting[]): Promise<readonly Sighting[]> {
    const [fresh, failed]: [Sighting[], Sighting[]] = [[], []];
    for (const [index, sighting] of sightings.entries()) {
      // There may be tens of thousands, and nothing else is waited for where all of them are known.
      if (index % PASSED_AT_ONCE === PASSED_AT_ONCE - 1) await clock.immediate();
      if (!this.#mayMatch(look, sighting)) continue;
      (this.#transactions.hasFailed(sighting.id) ? failed : fresh).push(sighting);
    }
    return [...fresh, ...failed];
  }

  /** Whether an id that could not be read before is left alone in this look. */
  #mayNotRead(id: string, now: number, reads: number): boolean {
    return this.#transactions.isResting(id, now) || (reads >= MOST_READS && this.#transactions.hasFailed(id));
  }

  /** Whether a sighting is to be looked at: what is known of it need not be asked for again. */
  #mayMatch(look: Look, { id, at }: Sighting): boolean {
    if (this.#taken.has(id)) return false;
    const known = this.#transactions.known(id);
    if (known === undefined) return true;
    return this.#match(look, known.transaction, at) !== undefined;
  }

  /** @returns undefined where it is no transaction, or not the one that was ordered */
  #match({ payment, order }: Look, transaction: Transaction | null, at: number): Match | undefined {
    if (transaction === null || !fits(order, transaction)) return undefined;
    const match = { transaction, at, made: madeAt(transaction, this.#utcOffset) };
    return isOfItsTime(payment.sentAt, match, withinOf(order)) ? match : undefined;
  }

  /** Those that the record does not have as another payment's. */
  async #untaken({ payment, book }: Look, some: readonly Sighting[]): Promise<readonly Sighting[]> {
    const { clientId } = payment.name;
    const owners = await book.readByTransactions(
      clientId,
      some.map(({ id }) => id),
    );
    return some.filter(({ id }, index) => {
      if (owners[index] === undefined) return true;
      this.#taken.set(id, true);
      return false;
    });
  }
}

/** What an answer that was not believed names itself. */
function namedBy(text: string, at: number): readonly Sighting[] {
  const { id } = fieldsOf(text);
  return typeof id === 'string' && isUuid(id) ? [{ id: id.toLowerCase(), at }] : [];
}

/** Whether a refund is, or could be, of a credit. */
function isOf(refund: PaymentRecord, id: string): boolean {
  const told = refundedBy(refund);
  return told === null || told.toLowerCase() === id.toLowerCase();
}

/**
 * What became of a refund whose answer was lost, by the credit that it returns. The credit did not read REFUNDED when the refund was sent,
 * and is returned once and in full. Where it reads so now, this refund is told done, unless the record has another one of it. What has
 * returned the credit without the record, such as a 422 to its webhook or a person at the provider, is taken for this refund
 * (docs/payments.md).
 *
 * Another refund that is open counts at any age, because the service may show REFUNDED at any time after a refund. There is no latest time
 * either: the store dates payments, and the clock of this process may be behind the store's.
 */
export async function lookForRefund(payment: OpenPayment, rest: Rest, book: PaymentBook): Promise<Found> {
  const { original: id, sentAt, name } = payment;
  if (id === null) return open('unreadable');
  const original = await readTransaction(rest, id);
  if (!isTransaction(original)) return open('unreadable');
  if (original.transactionStatus !== 'REFUNDED') return open('not-refunded');
  for (const kind of ['open', 'done'] as const) {
    const others = await recordsOf(book, payment, kind, kind === 'open' ? 0 : sentAt - TAKEN_MS, undefined);
    if (others === 'too-many') return open(others);
    const isOther = (record: PaymentRecord) => record.hash !== name.hash && isOf(record, id);
    if (others.some(isOther)) return open('other-refund');
  }
  return {
    kind: 'done',
    text: JSON.stringify({ originalTransactionId: id, amount: original.amount }),
    transactionId: undefined,
  };
}
