import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/common/logger.ts';
import type { EventLog } from '../../src/events/log.ts';
import { openEventLog } from '../../src/events/open.ts';
import { type EventReads, sealedReads } from '../../src/events/sealed-reads.ts';
import { type EventPageArgs, eventPage } from '../../src/resolvers/event-page.ts';
import { moneyIn } from '../helpers/events.ts';

/** So many events of others are looked through for one page. */
const SCANNED = 5_000;

let dataDir: string;
let log: EventLog;
const clientId = randomUUID();
const customerId = randomUUID();
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-page-'));
  log = await openEventLog({ redisUrl: undefined, dataDir, retention: 100_000, logger: silentLogger });
  await Promise.all(Array.from({ length: SCANNED + 50 }, () => log.append(clientId, ownedBy(randomUUID()))));
  await log.append(clientId, ownedBy(customerId));
  await Promise.all(Array.from({ length: SCANNED + 50 }, () => log.append(clientId, ownedBy(randomUUID()))));
});
afterAll(async () => {
  await log.stop();
  await rm(dataDir, { recursive: true, force: true });
});

function ownedBy(owner: string) {
  const event = moneyIn();
  return { ...event, payload: JSON.stringify({ id_msg: event.id, body: { owner_id: owner } }) };
}

/** A page as a narrowed caller reads it; credits are told apart without the service. */
const page = (args: EventPageArgs, events: EventReads) =>
  eventPage(args, {
    events,
    caller: { clientId, customerId },
    signal: new AbortController().signal,
    session: { transactions: { get: async () => null } },
    receiptOwner: () => {
      throw new Error('a credit names its owner');
    },
  });

describe('a page of a narrowed caller that ends among events of others', () => {
  it.each([
    ['forward', (after: string | null) => ({ first: 1, after })],
    ['back', (before: string | null) => ({ last: 1, before })],
  ] as const)('leads %s to its own event, and its end cannot be recognised', async (way, args) => {
    const events = sealedReads(log, customerId);
    const endOf = async (from: string | null) => {
      const { nodes, pageInfo } = await page(args(from), events);
      const { startCursor, endCursor, hasNextPage, hasPreviousPage } = pageInfo;
      return way === 'forward'
        ? { nodes, end: endCursor, goesOn: hasNextPage }
        : { nodes, end: startCursor, goesOn: hasPreviousPage };
    };
    const [once, again] = [await endOf(null), await endOf(null)];
    for (const { nodes, goesOn } of [once, again]) {
      expect(nodes).toEqual([]);
      expect(goesOn).toBe(true);
    }
    expect(once.end).not.toBe(again.end);
    for (const { end } of [once, again]) {
      const { nodes } = await endOf(end);
      expect(nodes).toMatchObject([{ type: 'MONEY_IN', ownerId: customerId }]);
    }
  });
});
