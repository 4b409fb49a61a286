import { once } from 'node:events';
import { join } from 'node:path';
import { clock } from '../../common/clock.ts';
import { entropy } from '../../common/entropy.ts';
import type { Logger } from '../../common/logger.ts';
import { connectRedis, type RedisClient } from '../../redis/connection.ts';
import { DurableWrites } from '../../redis/durable-write.ts';
import { logOutages } from '../../redis/outages.ts';
import { JOURNAL_RETENTION_MS } from '../journal/journal.ts';
import { type Clocks, systemClocks } from '../lived-time.ts';
import type { MoneyRecords } from '../record.ts';
import { RedisHolds } from './holds.ts';
import { CLIENTS, keysOf } from './keys.ts';
import { MARKS, RedisMarks } from './marks.ts';
import { RedisJournal } from './redis-journal.ts';
import { RedisOpen } from './redis-open-records.ts';
import { RedisPayments } from './redis-payment-reads.ts';
import { RedisReadings } from './redis-readings.ts';
import { refundOf } from './refunds.ts';
import { held, type RedisParts, RedisSteps, reaching } from './steps.ts';

/** How long a step waits for its reply, in ms. Without one it has failed. */
const COMMAND_TIMEOUT_MS = 2_000;
/** How long a durable step waits for the replicas, in ms. */
const REPLICA_TIMEOUT_MS = 1_000;
/** How often the process looks which replicas the primaries have, in ms. */
const LOOK_EVERY_MS = 10_000;

/**
 * The record in Redis, shared by all processes of the gateway. One hash per intent, under the hash tag of its client;
 * one script per step, so that each step happens whole or not at all.
 *
 * Resolves once connected; without a connection in {@link COMMAND_TIMEOUT_MS} it resolves all the same, and every step
 * fails until there is one: a gateway without Redis can still read.
 *
 * @param url as {@link connectRedis} takes it.
 * @param dataDir where it is kept how far Redis had come (marks.ts)
 * @param journalMs how long lines of the journal are kept, in ms
 * @param isCommand as `MoneyOptions` has it
 */
export async function openRedisRecords(
  url: string,
  dataDir: string,
  logger: Logger,
  journalMs = JOURNAL_RETENTION_MS,
  clocks: Clocks = systemClocks(),
  isCommand = false,
): Promise<MoneyRecords> {
  const redis = connectRedis(url, {
    // A step that cannot run now must fail now. If it ran later, its caller would already have been told that nothing moved.
    enableOfflineQueue: false,
    // A command whose connection broke is sent once more on the next one, if that comes in its time: steps may be repeated.
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    // Without it, a connection whose other end is gone without a word would stay for a quarter of an hour, until the system
    // stops retransmitting.
    socketTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: COMMAND_TIMEOUT_MS,
    connectionName: 'pasarela-money',
  });
  logOutages(redis, logger, 'the Redis of the payment records is away');
  await firstConnection(redis);

  const writes = new DurableWrites(url, REPLICA_TIMEOUT_MS);
  const marks = new RedisMarks(join(dataDir, MARKS));
  const holds = new RedisHolds(redis, writes, marks, isCommand);
  const parts = { redis, writes, clocks, marks, holds, journalMs };
  // Without an answer the last known state stays.
  const look = async (): Promise<void> => {
    await Promise.allSettled([writes.look(redis), holds.look()]);
  };
  const looking = clock.setInterval(look, LOOK_EVERY_MS).unref();
  // A Redis that was restarted may have been put back.
  redis.on('ready', () => {
    holds.began();
    void holds.look().catch(() => {});
  });
  await look();

  return {
    ...stepsOf(parts),
    ...readsOf(parts, isCommand),
    isAvailable: () =>
      writes.look(redis).then(
        () => writes.isDurable,
        () => false,
      ),
    problem: () => undefined,
    held: () => held(holds),
    isPutBack: (clientId) => reaching('held', holds.isPutBack(clientId)),
    holdPayments: () => reaching('stop', holds.stopPayments()),
    resume: (isCompared) => reaching('resume', holds.resume(isCompared)),
    stop: async () => {
      clock.clearInterval(looking);
      redis.disconnect();
      await marks.stop();
    },
  };
}

/** The methods that change a record. */
function stepsOf(parts: RedisParts) {
  const { redis, clocks, marks, holds } = parts;
  const steps = new RedisSteps(parts);
  const open = new RedisOpen(redis, clocks, marks, holds);
  return {
    claim: (name, wanted) => steps.claim(name, wanted),
    markSent: (name, owner, body, details) => steps.markSent(name, owner, body, details),
    renew: (name, owner, leaseMs) => steps.renew(name, owner, leaseMs),
    answer: (name, inputHash, answer, transactionId, code, begun) =>
      steps.answer(name, inputHash, answer, transactionId, code, begun),
    sentAgain: (name, requestId = '') => steps.sentAgain(name, requestId),
    release: (name, owner) => steps.release(name, owner),
    due: (clientId, limit) => reaching('due', open.due(clientId, limit)),
    takeOpen: (name, owner, leaseMs, isAsked = false) =>
      reaching('takeOpen', open.take(name, owner, leaseMs, isAsked)),
    putOff: (taken, dueMs, seen) => reaching('putOff', open.putOff(taken, dueMs, seen)),
    hasten: (name) => reaching('hasten', open.hasten(name)),
    tidy: (clientId) => reaching('tidy', open.tidy(clientId)),
  } satisfies Partial<MoneyRecords>;
}

/** The methods that read records, the journal and the readings of balances. */
function readsOf(parts: RedisParts, isCommand: boolean) {
  const { redis, writes, marks } = parts;
  const payments = new RedisPayments(parts);
  const journal = new RedisJournal(redis);
  const readings = new RedisReadings(redis, writes);
  const stored = () => redis.smembers(CLIENTS);
  const clients = async () => [...new Set([...(await stored()), ...marks.clients])];
  /** The folder of a command may name a client of another Redis. That client has no payment here which an id could name. */
  const isStrange = async (clientId: string): Promise<boolean> =>
    (await redis.sismember(CLIENTS, clientId)) === 0 &&
    (await redis.exists(`${keysOf(clientId)}payment-key`)) === 0;
  const idKey = async (clientId: string): Promise<Buffer> =>
    isCommand && (await isStrange(clientId)) ? entropy.bytes(32) : payments.idKey(clientId);
  const confirmReads = async (clientId: string): Promise<void> => {
    if (await writes.isCurrent(redis, keysOf(clientId))) return;
    throw new Error('It is not certain now which server has the record.');
  };
  return {
    read: (name) => reaching('read', payments.read(name)),
    readByTransactions: (clientId, ids) => reaching('read', payments.byTransactions(clientId, ids)),
    confirmReads: (clientId) => reaching('read', confirmReads(clientId)),
    refundOf: (clientId, credit) => reaching('read', refundOf(redis, clientId, credit)),
    search: (search) => reaching('search', payments.search(search)),
    clients: () => reaching('clients', isCommand ? stored() : clients()),
    journal: {
      clients: () => reaching('journal', clients()),
      head: (clientId) => reaching('journal', journal.head(clientId)),
      read: (clientId, after, limit) => reaching('journal', journal.read(clientId, after, limit)),
      lines: (clientId, ids) => reaching('journal', journal.lines(clientId, ids)),
    },
    readings: {
      take: (clientId, owner, leaseMs) => reaching('readings', readings.take(clientId, owner, leaseMs)),
      keep: (clientId, owner, text, dueMs) =>
        reaching('readings', readings.keep(clientId, owner, text, dueMs)),
    },
    idKey: (clientId) => reaching('idKey', idKey(clientId)),
  } satisfies Partial<MoneyRecords>;
}

async function firstConnection(redis: RedisClient): Promise<void> {
  const gaveUp = clock.timeoutSignal(COMMAND_TIMEOUT_MS);
  while (redis.status !== 'ready' && !gaveUp.aborted) {
    // An `error` event rejects this. It is logged where the connection is made, and is no reason to stop waiting.
    await once(redis, 'ready', { signal: gaveUp }).catch(() => undefined);
  }
}
