import { toAmount } from '../../common/amounts.ts';
import { Lru } from '../../common/lru.ts';
import { CursorInvalidError, EventsGapError } from '../../events/errors.ts';
import type { EventLog } from '../../events/log.ts';
import type { Ambient } from '../../money/ambient.ts';
import { MONEY_MUTATIONS } from '../../money/intent.ts';
import { inTurns, type Turn } from '../../money/reconciling/in-turns.ts';
import {
  type ComparedAccount,
  centavos,
  type KnownCredit,
  type KnownPayment,
  movementsOf,
} from '../../money/reconciling/movements.ts';
import type { Gathered, Readings } from '../../money/reconciling/readings.ts';
import {
  BaselineLostError,
  type ReconcilingBook,
  type ReconcilingCalls,
} from '../../money/reconciling/reconciler.ts';
import {
  type PaymentPosition,
  type PaymentRecord,
  type PaymentSearch,
  RETENTION_MS,
} from '../../money/record.ts';
import { ACCOUNT_LIST, type Account } from '../../upstream/accounts.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import { present } from '../../upstream/call/json.ts';
import type { Rest } from '../../upstream/call/rest.ts';
import { toRfc3339 } from '../../upstream/call/timestamps.ts';
import { readWholeList } from '../../upstream/lists/whole-list.ts';
import { isTransaction, readTransaction } from '../../upstream/transactions.ts';
import { decodeEvent } from '../events/event.ts';
import { answerOf, refundedBy } from './evidence-match.ts';
import { stateOf } from './payment-state.ts';

const HOUR_MS = 60 * 60_000;
/** Payments and events that are read at a time. */
const PAGE = 200;
/** What is read for one comparison at most. Where there is more, the time between two comparisons is too long for it. */
const MOST_EVENTS = 200_000;
const MOST_PAYMENTS = 100_000;
/** Credits whose refunds are looked up for one comparison at most; the refunds of others may be of any account. */
const MOST_CREDITS_READ = 100;

interface ReconcilingCallsOptions {
  readonly clientId: string;
  readonly log: Pick<EventLog, 'head' | 'readAfter'>;
  /** Offset of the service's timestamps that carry none. */
  readonly utcOffset: string;
  readonly marginMs: number;
  /** REST calls that end when the signal aborts. */
  readonly rest: (signal: AbortSignal) => Rest;
  readonly turn: Turn;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly sleep: Ambient['sleep'];
}

/** How the balances of a client are compared over REST, by the log of its events and by the record of its payments. */
export function createReconcilingCalls(options: ReconcilingCallsOptions): ReconcilingCalls {
  const { clientId, log, rest, now, sleep, marginMs, turn } = options;
  const credits = new RefundedCredits();
  return {
    turn,
    async open(book, signal) {
      const found = new Map<string, PaymentRecord>();
      await searchInto(found, options, { classes: ['open'], from: undefined }, book, signal);
      return [...found.keys()];
    },
    async look(signal) {
      const cursor = await log.head(clientId);
      // A balance may show a credit only after its event is in the log: those up to the cursor have to be in the balances.
      await sleep(marginMs, signal);
      signal.throwIfAborted();
      const from = now();
      const list = await readWholeList(rest(signal), ACCOUNT_LIST);
      const to = now();
      const accounts: ComparedAccount[] = [];
      const balances: [id: string, cents: number][] = [];
      await inTurns(list, turn, (account) => {
        if (!isComparable(account)) return;
        accounts.push(comparedAccount(account));
        balances.push([account.id, centavos(toAmount(account.availableBalance) ?? '')]);
      });
      return { cursor, reading: { from, to, balances: Object.fromEntries(balances) }, accounts };
    },
    async gather({ accounts }, kept, book, signal): Promise<Gathered> {
      if (now() - kept.baseline.from > RETENTION_MS)
        throw new BaselineLostError('The record no longer holds the payments since the baseline.');
      const records = await knownRecords(options, kept, book, signal);
      const calls = rest(signal);
      const payments: KnownPayment[] = [];
      const open: string[] = [];
      const amountUnknown: string[] = [];
      let reads = 0;
      // By the clock of another process, which may go behind, it may have been settled just before the baseline, and have moved after it.
      const since = kept.baseline.from - marginMs;
      for (const [index, record] of records.entries()) {
        if (index % PAGE === 0) await awaitTurn(options, signal);
        const mayMove = mayMoveSince(record, since);
        if (mayMove) open.push(record.hash);
        // Whatever a refund had moved before is in both readings.
        const original = mayMove ? refundedBy(record) : null;
        const isKnown = original !== null && credits.isKnown(original);
        if (original !== null && !isKnown) reads += 1;
        const mayRead = isKnown || reads <= MOST_CREDITS_READ;
        const credit = original !== null && mayRead ? await credits.read(original, calls) : null;
        const payment = knownPayment(record, credit);
        if (payment === 'amount-unknown') {
          if (mayMove) amountUnknown.push(record.hash);
        } else if (payment !== null) payments.push(payment);
      }
      // Read last: of a payment whose event is there, the payment is known then.
      const events = await knownCredits(options, kept.cursors[0], signal);
      const movements = await movementsOf(accounts, payments, events, marginMs, turn);
      return { movements, open, amountUnknown };
    },
  };
}

/** An account that cannot be read is in no reading, and is not compared. */
const isComparable = (account: Account): boolean =>
  typeof account.id === 'string' &&
  typeof account.clabeNumber === 'string' &&
  toAmount(account.availableBalance) !== undefined;

const comparedAccount = ({ id, clabeNumber, instrumentId }: Account): ComparedAccount => ({
  id,
  clabe: clabeNumber,
  instrumentId: present(instrumentId),
});

const isOpen = (record: PaymentRecord): boolean => {
  const state = stateOf(record);
  return state === 'UNKNOWN' || state === 'IN_FLIGHT';
};

const mayMoveSince = (record: PaymentRecord, time: number): boolean =>
  isOpen(record) || (record.settledAt ?? 0) >= time;

/** The payments that may have moved since the baseline: those that were sent since, are open, or were open then. */
async function knownRecords(
  options: ReconcilingCallsOptions,
  { baseline, open }: Readings,
  book: ReconcilingBook,
  signal: AbortSignal,
): Promise<readonly PaymentRecord[]> {
  const { clientId } = options;
  const found = new Map<string, PaymentRecord>();
  // What is open is read first: what is settled meanwhile is found among the others.
  await searchInto(found, options, { classes: ['open'], from: undefined }, book, signal);
  // A payment is sent soon after it was asked for.
  await searchInto(found, options, { classes: ['done'], from: baseline.from - HOUR_MS }, book, signal);
  for (const hash of open) {
    if (found.has(hash)) continue;
    await awaitTurn(options, signal);
    const record = await book.read({ clientId, hash });
    if (record !== undefined) found.set(hash, record);
  }
  return [...found.values()];
}

/** Adds those that are found, by their hashes. @throws {BaselineLostError} where they are too many */
async function searchInto(
  found: Map<string, PaymentRecord>,
  options: ReconcilingCallsOptions,
  search: Pick<PaymentSearch, 'classes' | 'from'>,
  book: ReconcilingBook,
  signal: AbortSignal,
): Promise<void> {
  const { clientId } = options;
  let beyond: PaymentPosition | undefined;
  do {
    await awaitTurn(options, signal);
    const page = await book.search({ ...EVERYTHING, clientId, ...search, beyond, limit: PAGE });
    for (const record of page.records) found.set(record.hash, record);
    if (found.size > MOST_PAYMENTS) throw new BaselineLostError('Too many payments since the baseline.');
    beyond = page.next;
  } while (beyond !== undefined);
}

const EVERYTHING = {
  customerId: undefined,
  operations: MONEY_MUTATIONS,
  to: undefined,
  isBack: false,
} as const;

/** Null for what has moved nothing. @param credit that it returns; null where that is not known */
function knownPayment(
  record: PaymentRecord,
  credit: RefundedCredit | null,
): KnownPayment | 'amount-unknown' | null {
  const { asked, sent, settledAt } = record;
  const state = stateOf(record);
  if (asked === null || sent === null || state === 'REFUSED') return null;
  const isRefund = asked.operation === 'refundTransaction';
  const amount = asked.amount ?? toAmount(answerOf(record)['amount']) ?? credit?.amount;
  if (amount === undefined) return 'amount-unknown';
  const isInternal = asked.operation === 'createInternalTransaction';
  return {
    source: isRefund ? (credit?.instrumentId ?? null) : asked.source,
    destination: isInternal ? asked.destination : null,
    isFromAny: isRefund && credit === null,
    cents: centavos(amount),
    sentAt: sent.sentAt,
    doneAt: state === 'DONE' ? (settledAt ?? sent.sentAt) : undefined,
  };
}

/** A credit that has been refunded, or may have been. */
interface RefundedCredit {
  /** Of the account that it had gone to; null where the service does not show it. */
  readonly instrumentId: string | null;
  readonly amount: string | undefined;
}

/** Credits as the service shows them. What of them is read here never changes, so that each that it shows is read once. */
class RefundedCredits {
  readonly #known = new Lru<{ readonly credit: RefundedCredit | null }>(5_000);

  isKnown(id: string): boolean {
    return this.#known.has(id);
  }

  /** Null where the service shows no such credit, or not to which account, and where it fails at it or refuses to show it now. */
  async read(id: string, rest: Rest): Promise<RefundedCredit | null> {
    const known = this.#known.get(id);
    if (known !== undefined) return known.credit;
    const read = await readTransaction(rest, id).catch(unreadable);
    // The service has shown it before it was refunded: whoever says that there is none may be a proxy.
    if (read == null) return null;
    const instrumentId = isTransaction(read) ? present(read.destinationInstrument?.id) : null;
    const credit = instrumentId === null ? null : { instrumentId, amount: toAmount(read.amount) };
    this.#known.set(id, { credit });
    return credit;
  }
}

/**
 * Undefined for an error that says something of this credit alone: the balances of all accounts are compared all the same.
 *
 * @throws the error where it says that the service cannot be asked now
 */
function unreadable(error: unknown): undefined {
  if (!(error instanceof UpstreamError)) throw error;
  const { code, status } = error;
  const isOwn = code === 'REFUSED' || code === 'FORBIDDEN' || code === 'UPSTREAM_INVALID';
  if (!isOwn && status === undefined) throw error;
}

/** The credits of the log after a cursor. */
async function knownCredits(
  options: ReconcilingCallsOptions,
  after: string,
  signal: AbortSignal,
): Promise<readonly KnownCredit[]> {
  const { clientId, log, utcOffset } = options;
  const found: KnownCredit[] = [];
  let cursor = after;
  for (let read = 0; ; ) {
    await awaitTurn(options, signal);
    const { events, hasMore } = await log.readAfter(clientId, cursor, PAGE).catch((cause: unknown) => {
      const isLost = cause instanceof EventsGapError || cause instanceof CursorInvalidError;
      throw isLost ? new BaselineLostError('The log no longer holds the events.', { cause }) : cause;
    });
    for (const stored of events) {
      const event = decodeEvent(stored);
      if (event?.type !== 'MONEY_IN') continue;
      const amount = toAmount(event.amount);
      if (amount === undefined) continue;
      const told = toRfc3339(event.registeredAt, utcOffset) ?? toRfc3339(event.transactionDate, utcOffset);
      found.push({
        clabe: event.beneficiary.account,
        cents: centavos(amount),
        at: told == null ? null : Date.parse(told),
        receivedAt: Date.parse(event.receivedAt),
        isRejected: event.decision === 'REJECTED',
        isFromOutside: event.subCategory === 'SPEI_CREDIT',
      });
    }
    read += events.length;
    cursor = events.at(-1)?.cursor ?? cursor;
    if (!hasMore) return found;
    if (read > MOST_EVENTS) throw new BaselineLostError('Too many events since the baseline.');
  }
}

/** Before each page: somebody more pressing may go first, and an end is an end. */
async function awaitTurn({ turn }: ReconcilingCallsOptions, signal: AbortSignal): Promise<void> {
  await turn();
  signal.throwIfAborted();
}
