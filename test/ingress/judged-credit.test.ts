import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { EventLog } from '../../src/events/log.ts';
import { RedisLog } from '../../src/events/redis/redis-log.ts';
import { SqliteLog } from '../../src/events/sqlite/sqlite-log.ts';
import { countingMetrics, recordingLogger } from '../helpers/events.ts';
import { speiCredit, startDecider, startIngress } from '../helpers/ingress.ts';
import { startRedis } from '../helpers/redis.ts';

const TRANSACTION = 'c0ffee00-0000-4000-8000-00000000000a';

describe.each(['SQLite', 'Redis'])(
  'the 422 of one credit, kept in %s, is the answer to no other',
  (store) => {
    it.each<[string, number | undefined, string]>([
      ['where somebody would refuse that too', 422, 'SPEI_CREDIT'],
      ['where somebody would accept it', 200, 'SPEI_CREDIT'],
      ['where nobody decides any more', undefined, 'SPEI_CREDIT'],
      ['where it is an internal credit', 422, 'INT_CREDIT'],
    ])('%s', async (_, status, sub_category) => {
      await using kept = await startStore(store);
      const { log, clientId } = kept;
      const judged = speiCredit({ body: { id: TRANSACTION } });
      await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
      await using first = await startIngress({ clientId, log, decisionUrl: decider.url });
      expect((await first.post('MONEY_IN', judged)).status).toBe(422);
      await using later = await startDecider({ status: status ?? 500, body: '{"refundReason":"no"}' });
      const decisionUrl = status === undefined ? undefined : later.url;
      await using ingress = await startIngress({ clientId, log, decisionUrl });
      const other = speiCredit({ id_msg: judged.id_msg, body: { sub_category } });
      const response = await ingress.post('MONEY_IN', other);
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
      expect(later.asked).toEqual([]);
      expect(ingress.quarantined()).toEqual([{ reason: 'conflict', body: JSON.stringify(other) }]);
      expect(ingress.logger.lines).toContainEqual({
        level: 'error',
        fields: { clientId, eventId: judged.id_msg, transactionId: other.body['id'], redelivery: true },
        message: 'a credit has the message id of another, which was refused',
      });
      // The one that was judged is answered as before, however its id is written.
      const again = { ...judged, body: { ...judged.body, id: TRANSACTION.toUpperCase() } };
      for (const body of [again, judged]) expect((await ingress.post('MONEY_IN', body)).status).toBe(422);
      expect((await log.readAfter(clientId, null, 5)).events).toHaveLength(1);
    });

    it.each([201, 422])('nor where both have the message id `None`, after a %s', async (status) => {
      await using kept = await startStore(store);
      const { log, clientId } = kept;
      await using decider = await startDecider({ status, body: '{"refundReason":"no"}' });
      await using ingress = await startIngress({ clientId, log, decisionUrl: decider.url });
      const both = [speiCredit({ id_msg: 'None' }), speiCredit({ id_msg: 'None' })];
      for (const credit of [...both, ...both]) {
        expect((await ingress.post('MONEY_IN', credit)).status).toBe(status);
      }
      expect(decider.asked).toHaveLength(2);
      const { events } = await log.readAfter(clientId, null, 5);
      expect(events.map(({ id }) => id === 'None')).toEqual([false, false]);
    });

    it('nor where two come at once, each for somebody to decide on', async () => {
      await using kept = await startStore(store);
      const { log, clientId } = kept;
      await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
      await using ingress = await startIngress({ clientId, log, decisionUrl: decider.url });
      for (let round = 0; round < 5; round += 1) {
        const one = speiCredit();
        const both = [one, speiCredit({ id_msg: one.id_msg })];
        const answers = await Promise.all(both.map((credit) => ingress.post('MONEY_IN', credit)));
        expect(answers.map((answer) => answer.status).toSorted((a, b) => a - b)).toEqual([422, 503]);
      }
    });

    it('nor is a rejection that version 0.2.0 stored, which names no credit, where the contents are others', async () => {
      await using kept = await startStore(store);
      const { log, clientId } = kept;
      await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
      const append = log.append.bind(log);
      log.append = (client, { transactionId: _, ...event }) => append(client, event);
      await using ingress = await startIngress({ clientId, log, decisionUrl: decider.url });
      const judged = speiCredit();
      expect((await ingress.post('MONEY_IN', judged)).status).toBe(422);
      const other = speiCredit({ id_msg: judged.id_msg });
      const response = await ingress.post('MONEY_IN', other);
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
      expect(ingress.quarantined()).toEqual([{ reason: 'conflict', body: JSON.stringify(other) }]);
      expect((await ingress.post('MONEY_IN', judged)).status).toBe(422);
      expect(decider.asked).toHaveLength(1);
    });
  },
);

/** An event log of the test's own, in a file or in a Redis. */
async function startStore(
  store: string,
): Promise<{ readonly log: EventLog; readonly clientId: string } & AsyncDisposable> {
  await using parts = new AsyncDisposableStack();
  const options = { retention: 100, metrics: countingMetrics(), now: Date.now };
  let log: EventLog;
  if (store === 'Redis') {
    const redis = parts.use(await startRedis());
    const redisLog = new RedisLog({ ...options, redisUrl: redis.url, logger: recordingLogger() });
    await redisLog.settled();
    log = redisLog;
  } else {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-decider-'));
    parts.defer(() => rm(dataDir, { recursive: true, force: true }));
    log = new SqliteLog({ ...options, dataDir });
  }
  parts.defer(() => log.stop());
  const owned = parts.move();
  return { log, clientId: randomUUID(), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
