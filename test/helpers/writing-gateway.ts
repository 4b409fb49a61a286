import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { StoreUnavailableError } from '../../src/events/errors.ts';
import type { Appended, EventLog } from '../../src/events/log.ts';
import { openEventLog } from '../../src/events/open.ts';
import type { MoneyResult } from '../../src/money/call.ts';
import { createMoney } from '../../src/money/execute.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { order } from '../money/orders.ts';
import type { Upstream } from '../money/upstream.ts';
import { ids, moneyIn } from './events.ts';

/** What of a gateway writes to Redis. */
export interface WritingGateway extends AsyncDisposable {
  readonly log: EventLog;
  /** An internal transfer of which the upstream recognises no repeat. */
  pay(key: string): Promise<MoneyResult>;
}

export async function startWritingGateway(redisUrl: string, upstream: Upstream): Promise<WritingGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-writing-'));
  const log = await openEventLog({ redisUrl, dataDir, retention: 100_000, logger });
  const records = await openMoneyRecords({ redisUrl, dataDir, logger });
  const money = createMoney({ records, logger });
  return {
    log,
    pay: (key) =>
      money.execute(order(upstream.url, 'createInternalTransaction', key), {
        deadline: Date.now() + 5_000,
        signal: new AbortController().signal,
      }),
    async [Symbol.asyncDispose]() {
      await money.stop();
      await records.stop();
      await log.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** All ids of a client's events, in the order of the log. */
export async function readAll(log: EventLog, client: string): Promise<string[]> {
  const read: string[] = [];
  for (let cursor: string | null = null; ; ) {
    const { events, hasMore } = await log.readAfter(client, cursor, 500);
    read.push(...ids(events));
    if (!hasMore) return read;
    cursor = events.at(-1)?.cursor ?? null;
  }
}

/** What is in the first and not in the second. */
export const difference = (one: readonly string[], other: readonly string[]): string[] => [
  ...new Set(one).difference(new Set(other)),
];

/** Two lanes of something that is done again and again until it is stopped. */
function lanes(work: () => Promise<void>): () => Promise<void> {
  let running = true;
  const lane = async (): Promise<void> => {
    while (running) await work();
  };
  const both = [lane(), lane()];
  return async () => {
    running = false;
    await Promise.all(both);
  };
}

/** Between two webhooks, or payments, of a lane. */
const PACE_MS = 5;

/** Appends one event after another until it is stopped, and tells which were answered with 201. */
export function load(log: EventLog, client: string): { readonly answered: string[]; stop(): Promise<void> } {
  const answered: string[] = [];
  const stop = lanes(async () => {
    const event = moneyIn();
    const { answer } = await log.append(client, event);
    if (answer.status === 201) answered.push(event.id);
    await pause(PACE_MS);
  });
  return { answered, stop };
}

/** What a credit was answered, by its id; once for each delivery that was answered. */
export type Verdicts = ReadonlyMap<string, ReadonlySet<number>>;

/**
 * Delivers credits on which somebody decides, each to every gateway, as the ingress does: what is known is answered as before, and
 * nobody is asked again. Each delivery is decided otherwise than the one before it. `again` delivers all once more.
 */
export function loadDecided(
  logs: readonly EventLog[],
  client: string,
): { readonly verdicts: Verdicts; again(): Promise<void>; stop(): Promise<void> } {
  const verdicts = new Map<string, Set<number>>();
  const credits = new Map<string, ReturnType<typeof moneyIn>>();
  let decided = 0;
  const deliver = async (log: EventLog, id: string): Promise<boolean> => {
    const credit = credits.get(id) ?? moneyIn({ id, spoolable: false });
    credits.set(id, credit);
    decided += 1;
    const decision = decided % 2 === 0 ? ('ACCEPTED' as const) : ('REJECTED' as const);
    let appended: Appended;
    try {
      appended =
        (await log.recall(client, credit)) ??
        (await log.append(client, { ...credit, decision, refundReason: 'not wanted' }));
    } catch (error) {
      if (error instanceof StoreUnavailableError) return false;
      throw error;
    }
    verdicts.set(id, (verdicts.get(id) ?? new Set()).add(appended.answer.status));
    return true;
  };
  const stop = lanes(async () => {
    const { id } = moneyIn();
    for (const log of logs) await deliver(log, id);
    await pause(PACE_MS);
  });
  return {
    verdicts,
    stop,
    async again() {
      for (const id of verdicts.keys()) for (const log of logs) while (!(await deliver(log, id)));
    },
  };
}

/** Pays with one key after another; with each until somebody knows what became of it. */
export function loadPayments(gateway: WritingGateway): {
  /** How each payment ended, by its key. */
  readonly results: ReadonlyMap<string, MoneyResult['kind']>;
  stop(): Promise<void>;
} {
  const results = new Map<string, MoneyResult['kind']>();
  let keys = 0;
  let key: string | undefined;
  let running = true;
  const run = async (): Promise<void> => {
    while (running) {
      if (key === undefined) keys += 1;
      key = `payment-${keys}`;
      const result = await gateway.pay(key).catch(() => undefined);
      if (result !== undefined) {
        results.set(key, result.kind);
        key = undefined;
      }
      await pause(PACE_MS);
    }
  };
  const done = run();
  return {
    results,
    async stop() {
      running = false;
      await done;
    },
  };
}
