import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openEventLog } from '../../../src/events/open.ts';
import { Sightings } from '../../../src/resolvers/payments/sightings.ts';
import { available, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { CLIENT_ID } from '../../helpers/http-stub.ts';

const SECOND = 1_000;

/** An index finds events by their time in blocks of positions: so many lie between two that are told apart. */
const BETWEEN = 600;

/** A log of events that name one transaction each, `count` of them, ten seconds apart, until now, with others between them. */
async function openLog(count: number) {
  const stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-sightings-'));
  stack.defer(() => rm(dataDir, { recursive: true }));
  const log = await openEventLog({ dataDir, retention: 10_000, logger: recordingLogger() });
  stack.defer(() => log.stop());
  await available(log);
  const now = Date.now();
  const named: { readonly id: string; readonly at: number }[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    const at = now - (count - index) * 10 * SECOND;
    const payload = JSON.stringify({ transaction: id });
    const receivedAt = new Date(at).toISOString();
    await log.append(CLIENT_ID, moneyIn({ type: 'STATUS_UPDATE', payload, receivedAt }));
    const others = Array.from({ length: BETWEEN }, () => moneyIn({ payload: '{"body":{}}', receivedAt }));
    await Promise.all(others.map((event) => log.append(CLIENT_ID, event)));
    named.push({ id, at });
  }
  return { log, now, named, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const idsOf = (found: readonly { readonly id: string }[] | undefined) => found?.map(({ id }) => id);

it.each([
  { order: 'the latest first', turned: true },
  { order: 'the earliest first', turned: false },
])(
  'looks for several payments that begin at once each see all events since theirs, $order',
  async ({ turned }) => {
    await using made = await openLog(4);
    const { log, now, named } = made;
    const sightings = new Sightings(log, CLIENT_ID);
    const payments = named.map(({ at }, index) => ({ from: at - SECOND, ids: idsOf(named.slice(index)) }));
    if (turned) payments.reverse();
    // Twice: what the first looks left must do for the next ones too.
    for (const at of [now, now + 60 * SECOND]) {
      const found = await Promise.all(payments.map(({ from }) => sightings.since(from, at)));
      expect(found.map(idsOf)).toEqual(payments.map(({ ids }) => ids));
    }
  },
);

it('one look that fails does not keep the next from all events', async () => {
  await using made = await openLog(2);
  const { log, now, named } = made;
  let isAway = true;
  const sightings = new Sightings(
    {
      readAfter: async (...asked) => {
        if (isAway) throw new Error('the log is away');
        return log.readAfter(...asked);
      },
    },
    CLIENT_ID,
  );
  const [first, second] = named.map(({ at }) => at - SECOND);
  const looks = [second ?? 0, first ?? 0].map((from) => sightings.since(from, now));
  const results = await Promise.allSettled(looks);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  isAway = false;
  expect(idsOf(await sightings.since(first ?? 0, now))).toEqual(idsOf(named));
});
