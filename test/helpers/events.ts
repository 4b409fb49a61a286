import { createHash, randomUUID } from 'node:crypto';
import type { Logger } from '../../src/common/logger.ts';
import type { EventLog, NewEvent, StoredEvent } from '../../src/events/log.ts';
import { type EventMetrics, silentMetrics } from '../../src/events/metrics.ts';
import { until } from './until.ts';

/** A MONEY_IN that arrives for the first time, unless `changes` say otherwise. */
export function moneyIn(changes: Partial<NewEvent> & { amount?: string } = {}): NewEvent {
  const { amount = '100.00', ...rest } = changes;
  const id = rest.id ?? randomUUID();
  const payload = JSON.stringify({ id_msg: id, msg_name: 'MONEY_IN', body: { id: randomUUID(), amount } });
  return {
    id,
    type: 'MONEY_IN',
    receivedAt: new Date().toISOString(),
    decision: 'ACCEPTED',
    payload,
    identity: id,
    contents: createHash('sha256').update(payload).digest('hex'),
    spoolable: true,
    ...rest,
  };
}

/** A logger that keeps what it is told. */
export function recordingLogger(): Logger & {
  readonly lines: { level: string; fields: object; message: string }[];
} {
  const lines: { level: string; fields: object; message: string }[] = [];
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields, message });
  };
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

const GAUGES = new Set(['subscribers', 'spoolUnwritable', 'unreadableSpools', 'waiting']);

/** Counts by the name of the metric; of a gauge, the last value told. */
export function countingMetrics(): EventMetrics & { readonly counts: Record<string, number> } {
  const counts: Record<string, number> = {};
  const counted = Object.keys(silentMetrics).map((name) => [
    name,
    (value: unknown) => {
      counts[name] = GAUGES.has(name) ? Number(value) : (counts[name] ?? 0) + 1;
    },
  ]);
  // The keys are those of the interface, and each function ignores what it is not interested in.
  return Object.assign(Object.fromEntries(counted) as EventMetrics, { counts });
}

/** Resolves once the log can be read and followed, and nothing waits in the spool. */
export async function drained(log: EventLog): Promise<void> {
  await until(async () => {
    const { available, spooled } = await log.health();
    return available && spooled === 0;
  });
}

/** Resolves once the log can be read and followed; what it holds may wait in the spool as well. */
export async function available(log: EventLog): Promise<void> {
  await until(async () => (await log.health()).available);
}

/** Takes the next `count` events. */
export async function take(
  events: AsyncIterator<StoredEvent, undefined>,
  count: number,
): Promise<StoredEvent[]> {
  const taken: StoredEvent[] = [];
  while (taken.length < count) {
    const { value } = await events.next();
    if (value === undefined) throw new Error(`the stream ended after ${taken.length} of ${count} events`);
    taken.push(value);
  }
  return taken;
}

/** What the next pull throws. */
export async function failure(events: AsyncIterator<StoredEvent, undefined>): Promise<unknown> {
  try {
    for (;;) {
      const { done } = await events.next();
      if (done === true) throw new Error('the stream ended without an error');
    }
  } catch (error) {
    return error;
  }
}

export function ids(events: readonly StoredEvent[]): string[] {
  return events.map((event) => event.id);
}
