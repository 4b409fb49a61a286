import { once } from 'node:events';
import { join } from 'node:path';
import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { connectRedis, type RedisClient } from '../redis/connection.ts';
import { DurableWrites } from '../redis/durable-write.ts';
import { logOutages } from '../redis/outages.ts';
import { runScript, type Script, withoutCommand } from '../redis/script.ts';
import {
  answeredLine,
  askedLine,
  JOURNAL_RETENTION_MS,
  type NextLine,
  nothingMovedLine,
  retriedLine,
  sentLine,
} from './journal.ts';
import { ageOf, type Clocks, stampOf, systemClocks } from './lived-time.ts';
import {
  type Claimed,
  type Hold,
  type MoneyRecords,
  PaymentsHeldError,
  RETENTION_MS,
  StoreUnavailableError,
} from './record.ts';
import { ledgerOf, RedisHolds } from './redis-holds.ts';
import { RedisJournal } from './redis-journal.ts';
import { CLIENTS, keyOf } from './redis-keys.ts';
import { RedisMarks } from './redis-marks.ts';
import { RedisOpen } from './redis-open.ts';
import { RedisPayments, storedAnswer, transactionName } from './redis-payments.ts';
import { ANSWER, CLAIM, RELEASE, RENEW, SENT, SENT_AGAIN } from './redis-scripts.ts';

/** A step that has no reply by then has failed, in ms. */
const COMMAND_TIMEOUT_MS = 2_000;
/** How long a step that must stay waits for the replicas, in ms. */
const REPLICA_TIMEOUT_MS = 1_000;
/** How often it is looked which primaries have which replicas, in ms. */
const LOOK_EVERY_MS = 10_000;

/**
 * The record in Redis, shared by all processes of the gateway. One hash per intent, under the hash tag of its client;
 * one script per step, so that each step happens whole or not at all.
 *
 * Resolves once connected; without a connection in {@link COMMAND_TIMEOUT_MS} it resolves all the same, and every step
 * fails until there is one: a gateway without Redis can still read.
 *
 * @param url as {@link connectRedis} takes it.
 * @param dataDir where it is kept how far Redis had come (redis-marks.ts)
 * @param journalMs how long lines of the journal are kept, in ms
 */
export async function openRedisRecords(
  url: string,
  dataDir: string,
  logger: Logger,
  journalMs = JOURNAL_RETENTION_MS,
  clocks: Clocks = systemClocks(),
): Promise<MoneyRecords> {
  const redis = connectRedis(url, {
    // A step that cannot run now must fail now: later, its caller has been told that nothing moved.
    enableOfflineQueue: false,
    // What was cut off in mid-air is sent once more on the next connection: steps may be repeated.
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: COMMAND_TIMEOUT_MS,
    connectionName: 'pasarela-money',
  });
  logOutages(redis, logger, 'the Redis of the payment records is away');
  await firstConnection(redis);

  const writes = new DurableWrites(url, REPLICA_TIMEOUT_MS);
  const marks = new RedisMarks(join(dataDir, 'payments.marks.json'));
  const holds = new RedisHolds(redis, marks);
  const payments = new RedisPayments(redis, clocks);
  const open = new RedisOpen(redis, clocks, marks, holds);
  const journal = new RedisJournal(redis);
  const known = new Set<string>();
  /** Notes that there is such a client. Its payments do not wait for that, and the next one tries again where it fails. */
  const note = (clientId: string): void => {
    if (known.has(clientId)) return;
    known.add(clientId);
    redis.sadd(CLIENTS, clientId).catch(() => known.delete(clientId));
  };
  const clients = async () => [...new Set([...(await redis.smembers(CLIENTS)), ...marks.clients])];
  // Without an answer what was known last stands.
  const look = async (): Promise<void> => {
    await Promise.allSettled([writes.look(redis), holds.look()]);
  };
  const looking = clock.setInterval(look, LOOK_EVERY_MS).unref();
  // A Redis that was started again may have been put back.
  redis.on('ready', () => void holds.look().catch(() => {}));
  await look();

  const run = async (step: string, what: Script, keys: string[], ...args: (string | number)[]) => {
    try {
      return await runScript(redis, what, keys, args);
    } catch (cause) {
      throw unavailable(step, cause);
    }
  };
  const write = async (step: string, what: Script, keys: string[], ...args: (string | number)[]) => {
    try {
      return await writes.write(redis, what, keys, args);
    } catch (cause) {
      throw unavailable(step, cause);
    }
  };

  return {
    claim: async (name, wanted) => {
      const { owner, inputHash, leaseMs, keyOwner, twin, isCustomers, asked, requestId = '' } = wanted;
      note(name.clientId);
      const keys = [keyOf(name), keyOf({ clientId: name.clientId, hash: `twin:${twin}` })];
      const line = askedLine(asked, inputHash, name, requestId);
      const args = [owner, inputHash, leaseMs, RETENTION_MS, keyOwner, name.hash, isCustomers ? 1 : 0, line];
      return claimed(await run('claim', CLAIM, keys, ...args, journalMs), clocks);
    },
    markSent: async (name, owner, body, noted) => {
      const { clientId } = name;
      const hold = holds.isHeld ? await held(holds) : undefined;
      if (hold !== undefined) throw new PaymentsHeldError(hold.why);
      const { epoch, sent } = marks.of(clientId);
      const { wall, bootId, bootMs } = stampOf(clocks);
      const keys = [keyOf(name), ledgerOf(clientId)];
      const args = [owner, body, RETENTION_MS, epoch, sent, wall, bootId, bootMs, ...partsOf(sentLine)];
      const more = [noted?.upstreamKey ?? '', noted?.original ?? ''];
      const reply = await write('sent', SENT, keys, ...args, ...more);
      if (!Array.isArray(reply)) return false;
      if (reply[0] === 'held') {
        await holds.found(clientId).catch(() => {});
        throw new PaymentsHeldError('put-back');
      }
      if (reply[0] === 'stopped') throw new PaymentsHeldError('stopped');
      marks.note(clientId, { epoch: Number(reply[1]), sent: Number(reply[2]) });
      return true;
    },
    renew: async (name, owner, leaseMs) => {
      await run('renew', RENEW, [keyOf(name)], owner, leaseMs);
    },
    answer: async (name, inputHash, answer, transactionId, code) => {
      const { kind, status, text } = answer;
      const line = partsOf(answeredLine(answer, transactionId, code));
      const named = transactionId === undefined ? [] : transactionName(transactionId);
      const args = [inputHash, kind, status, text, RETENTION_MS, ...line, ...named];
      await write('answer', ANSWER, [keyOf(name)], ...args);
    },
    sentAgain: async (name, requestId = '') => {
      await run('sentAgain', SENT_AGAIN, [keyOf(name)], ...partsOf(retriedLine(requestId)));
    },
    read: (name) => reading('read', payments.read(name)),
    readByTransaction: (clientId, id) => reading('read', payments.byTransaction(clientId, id)),
    search: (search) => reading('search', payments.search(search)),
    clients: () => reading('clients', clients()),
    journal: {
      clients: () => reading('journal', clients()),
      head: (clientId) => reading('journal', journal.head(clientId)),
      read: (clientId, after, limit) => reading('journal', journal.read(clientId, after, limit)),
      lines: (clientId, ids) => reading('journal', journal.lines(clientId, ids)),
    },
    idKey: (clientId) => reading('idKey', payments.idKey(clientId)),
    due: (clientId, limit) => reading('due', open.due(clientId, limit)),
    takeOpen: (name, owner, leaseMs) => reading('takeOpen', open.take(name, owner, leaseMs)),
    putOff: (name, owner, dueMs, seen) => reading('putOff', open.putOff(name, owner, dueMs, seen)),
    hasten: (name) => reading('hasten', open.hasten(name)),
    tidy: (clientId) => reading('tidy', open.tidy(clientId)),
    release: async (name, owner) => {
      await write('release', RELEASE, [keyOf(name)], owner, ...partsOf(nothingMovedLine));
    },
    isAvailable: () =>
      writes.look(redis).then(
        () => writes.isDurable,
        () => false,
      ),
    held: () => held(holds),
    holdPayments: () =>
      holds.stop().catch((cause: unknown) => {
        throw unavailable('hold', cause);
      }),
    resume: () =>
      holds.resume().catch((cause: unknown) => {
        throw unavailable('resume', cause);
      }),
    stop: async () => {
      clock.clearInterval(looking);
      redis.disconnect();
      await marks.stop();
    },
  };
}

const reading = <T>(step: string, read: Promise<T>): Promise<T> =>
  read.catch((cause: unknown) => {
    throw unavailable(step, cause);
  });

const held = (holds: RedisHolds): Promise<Hold | undefined> =>
  holds.held().catch((cause: unknown) => {
    throw unavailable('held', cause);
  });

function unavailable(step: string, cause: unknown): StoreUnavailableError {
  return new StoreUnavailableError(step, withoutCommand(cause));
}

const partsOf = ({ letter, rest }: NextLine): [string, string] => [letter, rest];

function claimed(reply: unknown, clocks: Clocks): Claimed {
  // CLAIM returns an array of strings, a state first.
  const [state, ...rest] = reply as [Claimed['state'], ...string[]];
  switch (state) {
    case 'sent': {
      const [body = '', sentAt, ageMs, wall = '', bootId = '', bootMs] = rest;
      // A record of a version before has no stamp.
      const stamp = { wall: wall === '' ? clocks.now() : Number(wall), bootId, bootMs: Number(bootMs) };
      return { state, body, sentAt: Number(sentAt), ageMs: Math.max(Number(ageMs), ageOf(stamp, clocks)) };
    }
    case 'customers':
      return { state, answer: rest.length === 0 ? undefined : storedAnswer(rest) };
    case 'answered':
      return { state, answer: storedAnswer(rest) };
    default:
      return { state };
  }
}

async function firstConnection(redis: RedisClient): Promise<void> {
  const gaveUp = clock.timeoutSignal(COMMAND_TIMEOUT_MS);
  while (redis.status !== 'ready' && !gaveUp.aborted) {
    // `error` would reject; it is logged where the connection is made, and is no reason to stop waiting.
    await once(redis, 'ready', { signal: gaveUp }).catch(() => undefined);
  }
}
