import { Counter, Gauge, type Registry } from 'prom-client';
import { clock } from '../common/clock.ts';
import { isRepeatable, MONEY_MUTATIONS } from '../money/intent.ts';
import { PAYMENT_OUTCOMES } from '../money/payment-outcome.ts';

/** What is asked of payments when the metrics are read. */
interface WatchedMoney {
  /** The reasons for which payments are held; none while they are not. Rejects if that cannot be read. */
  held(): Promise<readonly unknown[]>;
  inFlight(): number;
  unwritten(): number;
  /** In ms since the epoch; 0 before the first pass, undefined where nothing is settled under the gateway's own token. */
  lastPass(): number | undefined;
  readonly payments: UnknownPayments;
}

/** Each rejects if the record cannot be read. */
interface UnknownPayments {
  /** In ms since the epoch; undefined where there is none. */
  oldestUnknown(): Promise<number | undefined>;
  oldUnknown(): Promise<number>;
}

export interface PaymentMetrics {
  mismatch(mutation: string): void;
  /** A call of a payment mutation has ended. */
  payment(operation: string, outcome: string): void;
  /** A payment was settled without its caller. */
  settled(operation: string, outcome: string, by: string): void;
  /** The balances of a client were compared. */
  comparison(outcome: string): void;
  /** A balance has changed by what the gateway does not know: it shows more, or less. */
  difference(direction: string): void;
  /** Whom to ask when the metrics are read. */
  watch(money: WatchedMoney): void;
}

export function createPaymentMetrics(registers: Registry[]): PaymentMetrics {
  const mismatches = new Counter({
    name: 'pasarela_payment_answer_mismatches_total',
    help: 'Answers to payments that were not the answers to their orders, by mutation.',
    labelNames: ['mutation'],
    registers,
  });
  const payments = new Counter({
    name: 'pasarela_payments_total',
    help: 'Calls of payment mutations, by how they ended.',
    labelNames: ['operation', 'outcome'],
    registers,
  });
  const settled = new Counter({
    name: 'pasarela_payments_settled_total',
    help: 'Payments of unknown outcome that were settled without their callers, by how: sent again, or by evidence.',
    labelNames: ['operation', 'outcome', 'by'],
    registers,
  });
  let watched: WatchedMoney | undefined;
  new Gauge({
    name: 'pasarela_payments_held',
    help: '1 while payments are held, as their record was put back to an earlier state or an operator has stopped them; absent while that cannot be read.',
    registers,
    async collect() {
      await show(this, watched, async ({ held }) => ((await held()).length > 0 ? 1 : 0));
    },
  });
  new Gauge({
    name: 'pasarela_settler_last_pass_timestamp_seconds',
    help: 'When this process has last gone through the payments that it settles under its own token, of the client whose were gone through the longest ago; 0 before that, absent in passthrough.',
    registers,
    async collect() {
      await show(this, watched, async ({ lastPass }) => {
        const at = lastPass();
        return at === undefined ? undefined : at / 1000;
      });
    },
  });
  watchProcess(registers, () => watched);
  watchUnknown(registers, () => watched);
  // A series that begins at 1 has no increase: an alert would miss what happens for the first time.
  for (const mutation of MONEY_MUTATIONS) {
    mismatches.inc({ mutation }, 0);
    for (const outcome of PAYMENT_OUTCOMES) payments.inc({ operation: mutation, outcome }, 0);
    settled.inc({ operation: mutation, outcome: 'done', by: 'evidence' }, 0);
    if (!isRepeatable(mutation)) continue;
    for (const outcome of ['done', 'refused']) settled.inc({ operation: mutation, outcome, by: 'repeat' }, 0);
  }
  return {
    mismatch: (mutation) => mismatches.inc({ mutation }),
    payment: (operation, outcome) => payments.inc({ operation, outcome }),
    settled: (operation, outcome, by) => settled.inc({ operation, outcome, by }),
    ...balanceMetrics(registers),
    watch: (money) => {
      watched = money;
    },
  };
}

/** Shows what is read of payments; nothing where it cannot be read, as zero would say that there is none. */
async function show(
  gauge: Gauge,
  money: WatchedMoney | undefined,
  read: (money: WatchedMoney) => Promise<number | undefined>,
): Promise<void> {
  const value = money === undefined ? undefined : await read(money).catch(() => undefined);
  if (value === undefined) gauge.remove();
  else gauge.set(value);
}

/** What this process has under way, and what it still has to write. */
function watchProcess(registers: Registry[], watched: () => WatchedMoney | undefined): void {
  new Gauge({
    name: 'pasarela_payments_in_flight',
    help: 'Calls of payment mutations that have not ended.',
    registers,
    collect() {
      this.set(watched()?.inFlight() ?? 0);
    },
  });
  new Gauge({
    name: 'pasarela_payments_unwritten',
    help: 'Answers to payments, and keys to be given back, that the record did not take: this process has them in its memory alone, and tries on.',
    registers,
    collect() {
      this.set(watched()?.unwritten() ?? 0);
    },
  });
}

/** Payments of unknown outcome: those of two days by the age of the oldest, and how many are older. */
function watchUnknown(registers: Registry[], watched: () => WatchedMoney | undefined): void {
  new Gauge({
    name: 'pasarela_payments_oldest_unknown_seconds',
    help: 'How long ago the oldest payment of the last two days was asked for whose outcome is unknown; 0 where there is none, absent while the record cannot be read.',
    registers,
    async collect() {
      await show(this, watched(), async ({ payments }) => {
        const since = await payments.oldestUnknown();
        return since === undefined ? 0 : Math.max(0, clock.now() - since) / 1000;
      });
    },
  });
  new Gauge({
    name: 'pasarela_payments_unknown_for_long',
    help: 'Payments whose outcome has been unknown for more than two days: a person has to find out. 200 of a client at most; absent while the record cannot be read.',
    registers,
    async collect() {
      await show(this, watched(), ({ payments }) => payments.oldUnknown());
    },
  });
}

function balanceMetrics(registers: Registry[]): Pick<PaymentMetrics, 'comparison' | 'difference'> {
  const comparisons = new Counter({
    name: 'pasarela_balance_comparisons_total',
    help: 'Comparisons of the balances of a client with what the gateway knows to have moved, by how they ended.',
    labelNames: ['outcome'],
    registers,
  });
  const differences = new Counter({
    name: 'pasarela_balance_differences_total',
    help: 'Changes of balances that the gateway does not know the reason of, by whether an account holds more or less than is known.',
    labelNames: ['direction'],
    registers,
  });
  for (const outcome of ['compared', 'first', 'failed', 'overdue']) comparisons.inc({ outcome }, 0);
  for (const direction of ['more', 'less']) differences.inc({ direction }, 0);
  return {
    comparison: (outcome) => comparisons.inc({ outcome }),
    difference: (direction) => differences.inc({ direction }),
  };
}
