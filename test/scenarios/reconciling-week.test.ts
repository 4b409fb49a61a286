import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { openEventLog } from '../../src/events/open.ts';
import { createMoney } from '../../src/money/execute.ts';
import { inputHash, type MoneyMutation, recordName } from '../../src/money/intent.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { createReconcilingCalls } from '../../src/resolvers/payments/reconciling-calls.ts';
import { moneyIn } from '../helpers/events.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { CLIENT_ID, json, startUpstream } from '../helpers/http-stub.ts';
import { MEMORY_FOLDER } from '../helpers/memory-folder.ts';
import { randomFrom } from '../helpers/random.ts';
import { MUTATIONS, NOBODYS } from '../money/orders.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const WEEK = 7 * 24 * HOUR;
const START = Date.parse('2026-11-02T00:00:00Z');
/** The latest that a webhook comes, or an answer that was lost is found. */
const LATEST = 50 * MINUTE;

const account = (index: number) => ({
  id: `aaaaaaaa-0000-4000-8000-00000000000${index}`,
  instrumentId: `bbbbbbbb-0000-4000-8000-00000000000${index}`,
  clabeNumber: `64618000000000000${index}`,
});
const ACCOUNTS = [0, 1, 2].map(account);

interface Step {
  readonly at: number;
  readonly run: () => unknown;
}

/** What happens, in the order of time, whatever it was planned in. */
class Plan {
  readonly #steps: Step[] = [];
  now = START;

  at(time: number, run: Step['run']): void {
    const place = this.#steps.findIndex(({ at }) => at > time);
    this.#steps.splice(place === -1 ? this.#steps.length : place, 0, { at: time, run });
  }

  /** Lets everything happen until then. */
  async reach(time: number): Promise<void> {
    for (let next = this.#steps[0]; next !== undefined && next.at <= time; next = this.#steps[0]) {
      this.#steps.shift();
      this.now = Math.max(this.now, next.at);
      await next.run();
    }
    this.now = time;
  }
}

it.each([
  [10, 1, true],
  [20, 2, false],
])(
  'tells nothing in a week of %d movements an hour whose webhooks come late (seed %d), and once each of a lost credit, a payment made elsewhere and a fee, where there are any: %s',
  async (perHour, seed, hasGaps) => {
    await using cleanup = new AsyncDisposableStack();
    // A week of writes that are synced would take minutes on a disk.
    const dataDir = await mkdtemp(join(MEMORY_FOLDER, 'pasarela-week-'));
    cleanup.defer(() => rm(dataDir, { recursive: true }));
    const random = randomFrom(seed);
    const plan = new Plan();
    const now = () => Math.trunc(plan.now);
    const records = openSqliteRecords(join(dataDir, 'money.sqlite'), now, now, {
      id: 'one start',
      now,
    });
    const log = await openEventLog({ dataDir, retention: 100_000, logger, now });
    cleanup.defer(() => log.stop());
    const balances = new Map(ACCOUNTS.map(({ id }) => [id, 100_000_000]));
    const move = (index: number, cents: number) => {
      const { id } = account(index);
      balances.set(id, (balances.get(id) ?? 0) + cents);
    };
    /** By id of the credit, the account that it went to. */
    const credits = new Map<string, { index: number; cents: number }>();
    const pesos = (cents: number) => (cents / 100).toFixed(2);
    await using upstream = await startUpstream((request, response) => {
      const [, transaction = ''] = /\/transactions\/([\w-]+)/.exec(request.url ?? '') ?? [];
      const credit = credits.get(transaction);
      if (credit !== undefined) {
        const { index, cents } = credit;
        const kind = { currency: 'MXN', category: 'x', subCategory: 'SPEI_CREDIT', transactionStatus: 'x' };
        const destinationInstrument = { id: account(index).instrumentId };
        return json(response, { id: transaction, amount: pesos(cents), ...kind, destinationInstrument });
      }
      const data = ACCOUNTS.map((one) => ({
        ...one,
        availableBalance: pesos(balances.get(one.id) ?? 0),
      }));
      json(response, { data, totalItem: data.length, currentPage: 1, perPage: 50 });
    });

    const appended: Promise<unknown>[] = [];
    const some = (of: number) => Math.floor(random() * of);
    const soonOrLate = () => (random() < 0.2 ? random() * LATEST : random() * SECOND);
    // Round amounts, as people pay: equal ones hide behind each other most.
    const round = () => 10_000 * (1 + some(5));
    /** A credit moves at once; its event comes some time after, with a clock of the service that is a little wrong. */
    const receive = (at: number, index: number, cents: number) => {
      const id = tell(at, index, cents, 'SPEI_CREDIT');
      plan.at(at, () => move(index, cents));
      return id;
    };
    const tell = (at: number, index: number, cents: number, subCategory: string) => {
      const body = {
        id: `cccccccc-0000-4000-8000-${String(credits.size).padStart(12, '0')}`,
        amount: pesos(cents),
        beneficiary_account: account(index).clabeNumber,
        registered_at: new Date(at + (random() - 0.5) * 2 * SECOND).toISOString(),
        sub_category: subCategory,
      };
      credits.set(body.id, { index, cents });
      const received = at + soonOrLate();
      plan.at(received, () => {
        const receivedAt = new Date(received).toISOString();
        const payload = JSON.stringify({ id_msg: body.id, msg_name: 'MONEY_IN', body });
        appended.push(log.append(CLIENT_ID, moneyIn({ receivedAt, payload })));
      });
      return body.id;
    };
    let keys = 0;
    /** A payment moves between its sending and its answer, which may be lost, and is found later then. One in twenty is refused. */
    const pay = (at: number, operation: MoneyMutation) => {
      keys += 1;
      const key = `key ${keys}`;
      const [index, other] = [some(3), some(3)];
      const isRefund = operation === 'refundTransaction';
      const cents = operation === 'createPennyValidation' ? 1 : round();
      const original = isRefund ? receive(at - 2 * HOUR, index, cents) : null;
      const name = recordName({ clientId: CLIENT_ID, customerId: undefined, key });
      const hash = inputHash(operation, key);
      const asked = {
        operation,
        customerId: null,
        amount: isRefund ? null : pesos(cents),
        source: isRefund ? null : account(index).instrumentId,
        destination: isRefund ? null : account(other).instrumentId,
        requestedBy: 'somebody',
      };
      const answeredAt = at + SECOND + soonOrLate();
      const isRefused = random() < 0.05;
      plan.at(at, async () => {
        await records.claim(name, { ...NOBODYS, asked, owner: key, inputHash: hash, leaseMs: 0, twin: key });
        await records.markSent(name, key, '{}', { upstreamKey: null, original });
      });
      if (!isRefused) {
        const isInternal = operation === 'createInternalTransaction';
        const movedAt = at + random() * SECOND;
        plan.at(movedAt, () => {
          move(index, -cents);
          if (isInternal) move(other, cents);
        });
        if (isInternal) tell(movedAt, other, cents, 'INT_CREDIT');
      }
      plan.at(answeredAt, () => {
        const text = isRefused
          ? '{"error":"no","statusCode":400,"message":"no"}'
          : JSON.stringify({ originalTransactionId: original, amount: pesos(cents) });
        const kind = isRefused ? 'refused' : 'done';
        return records.answer(name, hash, { kind, status: isRefused ? 400 : 200, text });
      });
    };
    for (let at = START + 3 * HOUR; at < START + WEEK; at += -Math.log(1 - random()) * (HOUR / perHour)) {
      if (random() < 0.5) receive(at, some(3), round());
      else pay(at, MUTATIONS[some(4)] ?? 'createMoneyOut');
    }
    const gaps = hasGaps
      ? ([
          [0, 20.5, 12_345],
          [1, 50.5, -54_321],
          [2, 90.5, -116],
        ] as const)
      : [];
    for (const [index, hour, cents] of gaps) plan.at(START + hour * HOUR, () => move(index, cents));

    const lines: string[] = [];
    const counts: Record<string, number> = {};
    const week = Promise.withResolvers<void>();
    const ambient = {
      now,
      random,
      newId: () => 'this process',
      sleep: async (ms: number, signal: AbortSignal) => {
        if (plan.now >= START + WEEK) week.resolve();
        // The service answers meanwhile.
        await setImmediate();
        if (signal.aborted) return;
        await plan.reach(plan.now + 20 * ms).catch(week.reject);
        await Promise.all(appended.splice(0)).catch(week.reject);
      },
    };
    const money = createMoney({
      records,
      logger: collectingLogger(lines),
      ambient,
      onComparison: (outcome) => {
        counts[outcome] = (counts[outcome] ?? 0) + 1;
      },
    });
    const marginMs = 5 * SECOND;
    // No call ends by its time, however long this process stands still: the week passes by the plan's clock.
    const rest = () => upstream.restOf({ deadline: Date.now() + 10 * MINUTE, timeoutMs: 10 * MINUTE });
    const calls = createReconcilingCalls({
      ...{ clientId: CLIENT_ID, log, utcOffset: '-06:00', marginMs, rest, now },
      turn: () => undefined,
      sleep: (ms) => plan.reach(plan.now + ms),
    });
    money.reconcile(new Map([[CLIENT_ID, calls]]), { everyMs: HOUR, marginMs });
    await week.promise;
    await money.stop();
    await records.stop();

    const told = lines.map((line) => JSON.parse(line)).filter(({ amount }) => amount !== undefined);
    expect(told.map(({ account: id, amount }) => [id, Number(amount)])).toEqual(
      gaps.map(([index, , cents]) => [account(index).id, cents / 100]),
    );
    for (const [place, [, hour]] of gaps.entries()) {
      expect(Date.parse(told[place].from)).toBeLessThan(START + hour * HOUR);
      expect(Date.parse(told[place].to)).toBeGreaterThan(START + hour * HOUR);
    }
    expect(counts['failed'] ?? 0).toBe(0);
    expect(counts['compared']).toBeGreaterThan(150);
  },
);
