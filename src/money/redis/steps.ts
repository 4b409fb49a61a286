import type { RedisClient } from '../../redis/connection.ts';
import type { DurableWrites } from '../../redis/durable-write.ts';
import { runScript, type Script, withoutCommand } from '../../redis/script.ts';
import { isRepeatable, type RecordName } from '../intent.ts';
import {
  answeredLine,
  askedLine,
  type NextLine,
  nothingMovedLine,
  retriedLine,
  sentLine,
} from '../journal/journal.ts';
import { ageOf, type Clocks, stampOf } from '../lived-time.ts';
import {
  type Begun,
  type Claim,
  type Claimed,
  type Hold,
  PaymentsHeldError,
  RETENTION_MS,
  RecordsUnavailableError,
} from '../record.ts';
import { ONLY_REFUND_MS, OtherRefundError, type SentDetails, type StoredAnswer } from '../record-parts.ts';
import { ledgerOf, type RedisHolds } from './holds.ts';
import { CLIENTS, keyOf, twinsKey } from './keys.ts';
import type { RedisMarks } from './marks.ts';
import { storedAnswer } from './redis-payment-reads.ts';
import { refundsKey } from './refunds.ts';
import { ANSWER, CLAIM, RELEASE, RENEW, SENT, SENT_AGAIN } from './scripts.ts';
import { transactionName } from './transaction-index.ts';

type Arguments = readonly (string | number)[];

/** The parts that the steps of a record in Redis share. */
export interface RedisParts {
  readonly redis: RedisClient;
  readonly writes: DurableWrites;
  readonly clocks: Clocks;
  readonly marks: RedisMarks;
  readonly holds: RedisHolds;
  /** How long lines of the journal are kept, in ms. */
  readonly journalMs: number;
}

/** The steps of a record in Redis, one script each. They are described in `MoneyRecords`. */
export class RedisSteps {
  readonly #parts: RedisParts;
  /** The clients that this process knows to be noted in Redis, so that a stop finds them. */
  readonly #known = new Set<string>();
  /** The clients that are being noted. */
  readonly #noting = new Map<string, Promise<unknown>>();
  /** {@link RedisHolds.lives}, when the first of these was noted. */
  #life = 0;

  constructor(parts: RedisParts) {
    this.#parts = parts;
  }

  async claim(name: RecordName, wanted: Claim): Promise<Claimed> {
    const { owner, inputHash, leaseMs, keyOwner, other, twin, isCustomers, asked, requestId = '' } = wanted;
    const { clocks, journalMs } = this.#parts;
    void this.#note(name.clientId).catch(() => undefined);
    const { clientId } = name;
    const keys = [keyOf(name), twinsKey(clientId, twin), keyOf({ clientId, hash: other.hash })];
    const line = askedLine(asked, inputHash, name, requestId);
    const whose = [keyOwner, isCustomers ? 1 : 0];
    const repeatable = isRepeatable(asked.operation) ? 1 : 0;
    const args = [
      owner,
      inputHash,
      leaseMs,
      RETENTION_MS,
      ...whose,
      line,
      journalMs,
      repeatable,
      other.isFirst ? 1 : 0,
    ];
    return claimed(await this.#run('claim', CLAIM, keys, args), clocks);
  }

  async markSent(name: RecordName, owner: string, body: string, details?: SentDetails): Promise<boolean> {
    const { clientId } = name;
    const { holds, marks, clocks } = this.#parts;
    const isNew = !this.#isKnown(clientId);
    if (isNew) await reaching('sent', this.#note(clientId));
    // Asked after the client is noted. A stop that came earlier shows here; one that comes later finds the client.
    const [hold] = isNew || holds.isHeld ? await held(holds) : [];
    if (hold !== undefined) throw new PaymentsHeldError(hold.why);
    this.#known.add(clientId);
    const { epoch, sent, at } = marks.of(clientId);
    const { wall, bootId, bootMs } = stampOf(clocks);
    const original = details?.original ?? '';
    const keys = [keyOf(name), ledgerOf(clientId), refundsKey(clientId, original)];
    const args = [owner, body, RETENTION_MS, epoch, sent, wall, bootId, bootMs, ...partsOf(sentLine)];
    const more = [details?.upstreamKey ?? '', details?.original ?? '', ONLY_REFUND_MS, at];
    const reply = await this.#write('sent', SENT, keys, [...args, ...more]);
    if (!Array.isArray(reply)) return false;
    if (reply[0] === 'held') {
      await holds.found(clientId).catch(() => {});
      throw new PaymentsHeldError('put-back');
    }
    if (reply[0] === 'stopped') throw new PaymentsHeldError('stopped');
    if (reply[0] === 'other-refund') throw new OtherRefundError();
    marks.note(clientId, { epoch: Number(reply[1]), sent: Number(reply[2]), at: Number(reply[3]) });
    return true;
  }

  async renew(name: RecordName, owner: string, leaseMs: number): Promise<void> {
    await this.#run('renew', RENEW, [keyOf(name)], [owner, leaseMs]);
  }

  async answer(
    name: RecordName,
    inputHash: string,
    answer: StoredAnswer,
    transactionId: string | undefined,
    code: string | undefined,
    begun: Begun | undefined,
  ): Promise<boolean> {
    const { kind, status, text, onlyOf = '' } = answer;
    const line = partsOf(answeredLine(answer, transactionId, code));
    const again = begun && [begun.keyOwner, askedLine(begun.asked, inputHash, name, begun.requestId ?? '')];
    const named = transactionId === undefined ? [] : transactionName(transactionId);
    const told = [inputHash, kind, status, text, RETENTION_MS, ...line];
    const args = [...told, ...(again ?? ['', '']), onlyOf, ...named];
    const keys = begun?.isCustomers ? [keyOf(name), twinsKey(name.clientId, begun.twin)] : [keyOf(name)];
    const reply = await this.#write('answer', ANSWER, keys, args);
    return reply !== 'anothers' && reply !== 'taken';
  }

  async sentAgain(name: RecordName, requestId: string): Promise<void> {
    await this.#run('sentAgain', SENT_AGAIN, [keyOf(name)], partsOf(retriedLine(requestId)));
  }

  async release(name: RecordName, owner: string): Promise<boolean> {
    const args = [owner, ...partsOf(nothingMovedLine)];
    return (await this.#write('release', RELEASE, [keyOf(name)], args)) === 1;
  }

  /** Notes the client in Redis. A claim begins this, so that the client's first payment need not wait for it. */
  async #note(clientId: string): Promise<void> {
    if (this.#isKnown(clientId)) return;
    const noting = this.#noting.get(clientId) ?? this.#parts.redis.sadd(CLIENTS, clientId);
    this.#noting.set(clientId, noting);
    try {
      await noting;
    } catch (error) {
      this.#noting.delete(clientId);
      throw error;
    }
  }

  #isKnown(clientId: string): boolean {
    const { lives } = this.#parts.holds;
    if (lives !== this.#life) {
      this.#known.clear();
      this.#noting.clear();
      this.#life = lives;
    }
    return this.#known.has(clientId);
  }

  #run(step: string, what: Script, keys: string[], args: Arguments): Promise<unknown> {
    return reaching(step, runScript(this.#parts.redis, what, keys, args));
  }

  #write(step: string, what: Script, keys: string[], args: Arguments): Promise<unknown> {
    return reaching(step, this.#parts.writes.write(this.#parts.redis, what, keys, args));
  }
}

/** @throws {RecordsUnavailableError} instead of any other error */
export const reaching = <T>(step: string, work: Promise<T>): Promise<T> =>
  work.catch((cause: unknown) => {
    if (cause instanceof PaymentsHeldError) throw cause;
    throw new RecordsUnavailableError(step, withoutCommand(cause));
  });

export const held = (holds: RedisHolds): Promise<readonly Hold[]> => reaching('held', holds.held());

const partsOf = ({ letter, rest }: NextLine): [string, string] => [letter, rest];

function claimed(reply: unknown, clocks: Clocks): Claimed {
  // CLAIM returns an array of strings, a state first.
  const [state, ...rest] = reply as [Claimed['state'], ...string[]];
  switch (state) {
    case 'sent': {
      const [body = '', sentAt, ageMs, wall = '', bootId = '', bootMs] = rest;
      // A record of an earlier version has no stamp.
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
