import { entropy } from '../common/entropy.ts';
import type { RedisClient } from '../redis/connection.ts';
import { runScript, script } from '../redis/script.ts';
import { readAsked } from './asked.ts';
import type { RecordName } from './intent.ts';
import { ageOf, type Clocks } from './lived-time.ts';
import {
  type PaymentPlace,
  type PaymentRecord,
  type PaymentSearch,
  type PaymentsFound,
  RETENTION_MS,
} from './record.ts';
import { NOW } from './redis-time.ts';

/** Digits of a time in ms since the epoch, until the year 2286. */
const TIME_DIGITS = 13;
const LATEST = 10 ** TIME_DIGITS - 1;
/** In the place of a customer: the sets that hold all payments of the client. */
const EVERYBODY = '*';

/**
 * Puts the record of `key` into the sets of its class, and takes it out of those of the others: one set for each operation and
 * class, of the client and of its customer. All are in the client's slot. Members are times and hashes, so that a set is in the
 * order of its payments. Leaves the prefix of the client's keys as `base`, and the hash of the record as `hash`.
 *
 * In front of it: NOW.
 */
export const FILE = `
  local base, hash = string.match(key, '^(.*:)([^:]*)$')
  local function file(class)
    local asked, askedAt = unpack(redis.call('HMGET', key, 'asked', 'askedAt'))
    if not asked or not askedAt then return end
    asked = cjson.decode(asked)
    local member = askedAt .. ':' .. hash
    local owners = {'${EVERYBODY}'}
    if asked[3] ~= '' then owners[2] = asked[3] end
    for _, owner in ipairs(owners) do
      for _, other in ipairs({'open', 'done', 'refused'}) do
        local set = base .. 'payments:' .. owner .. ':' .. asked[2] .. ':' .. other
        if other == class then
          redis.call('ZADD', set, 0, member)
          redis.call('ZREMRANGEBYLEX', set, '-', '(' .. string.format('%.0f', now - ${RETENTION_MS} - ${RETENTION_MS}))
          redis.call('PEXPIRE', set, ${2 * RETENTION_MS})
        else
          redis.call('ZREM', set, member)
        end
      end
    end
  end`;

/** Reads the record of `key` into a list of texts, an empty one for what it does not have. In front of it: NOW. */
const READ_RECORD = `
  local function record(key)
    local found = redis.call('HMGET', key, 'state', 'whose', 'lease', 'asked', 'askedAt', 'sentAt', 'wall', 'bootId', 'bootMs',
      'settledAt', 'attempts', 'kind', 'status', 'text', 'input')
    if not found[1] then return false end
    found[2] = found[2] or '?'
    for field = 1, 15 do found[field] = found[field] or '' end
    found[16] = string.format('%.0f', now)
    found[17] = string.match(key, '[^:]*$')
    return found
  end`;

/** KEYS: record. */
const READ = script(`${NOW} ${READ_RECORD}
  return record(KEYS[1])`);

/** KEYS: the name of a record by its transaction. */
const READ_BY_TRANSACTION = script(`${NOW} ${READ_RECORD}
  local hash = redis.call('GET', KEYS[1])
  return hash and record(string.match(KEYS[1], '^(.*:)transaction:') .. hash)`);

/**
 * KEYS: sets. ARGV: prefix of the client's keys, where to begin, where to end, limit, whether the oldest come first. Returns the
 * place where it ended, empty where nothing is left, then records.
 */
const SEARCH = script(`${NOW} ${READ_RECORD}
  local limit, isBack = tonumber(ARGV[4]), ARGV[5] == '1'
  local members = {}
  for _, set in ipairs(KEYS) do
    local some = isBack and redis.call('ZRANGE', set, ARGV[2], ARGV[3], 'BYLEX', 'LIMIT', 0, limit)
      or redis.call('ZRANGE', set, ARGV[2], ARGV[3], 'BYLEX', 'REV', 'LIMIT', 0, limit)
    for _, member in ipairs(some) do members[#members + 1] = member end
  end
  table.sort(members, function(one, other)
    if isBack then return one < other end
    return one > other
  end)
  local found = {#members >= limit and members[limit] or ''}
  for place = 1, math.min(limit, #members) do
    local one = record(ARGV[1] .. string.match(members[place], '[^:]*$'))
    if one then found[#found + 1] = one end
  end
  return found`);

/** KEYS: where a client's key is kept. ARGV: one to take where there is none. */
const ID_KEY = script(`
  return redis.call('GET', KEYS[1]) or (redis.call('SET', KEYS[1], ARGV[1]) and ARGV[1])`);

/** The prefix of a client's keys; its id is their hash tag, so that a Cluster keeps them together. */
export const keysOf = (clientId: string): string => `pasarela:money:{${clientId}}:`;

/** Where the hash of a record is found by its transaction. */
export const transactionKey = (clientId: string, transactionId: string): string =>
  `${keysOf(clientId)}transaction:${transactionId.toLowerCase()}`;

/** Reads the records of payments that the scripts of {@link openRedisRecords} write. */
export class RedisPayments {
  readonly #redis: RedisClient;
  readonly #clocks: Clocks;

  constructor(redis: RedisClient, clocks: Clocks) {
    this.#redis = redis;
    this.#clocks = clocks;
  }

  async read({ clientId, hash }: RecordName): Promise<PaymentRecord | undefined> {
    return this.#record(await runScript(this.#redis, READ, [keysOf(clientId) + hash], []));
  }

  async byTransaction(clientId: string, transactionId: string): Promise<PaymentRecord | undefined> {
    const key = transactionKey(clientId, transactionId);
    return this.#record(await runScript(this.#redis, READ_BY_TRANSACTION, [key], []));
  }

  async search(search: PaymentSearch): Promise<PaymentsFound> {
    const { clientId, customerId = EVERYBODY, operations, classes, isBack, limit } = search;
    const sets = operations.flatMap((operation) =>
      classes.map((kind) => `${keysOf(clientId)}payments:${customerId}:${operation}:${kind}`),
    );
    if (sets.length === 0) return { records: [], next: undefined };
    const args = [keysOf(clientId), ...boundsOf(search), limit, isBack ? 1 : 0];
    // SEARCH returns a list, the place first.
    const [end, ...rows] = (await runScript(this.#redis, SEARCH, sets, args)) as [string, ...unknown[]];
    return {
      records: rows.map((row) => this.#record(row)).filter((record) => record !== undefined),
      next: end === '' ? undefined : placeIn(end),
    };
  }

  async idKey(clientId: string): Promise<Buffer> {
    const fresh = entropy.bytes(32).toString('base64url');
    const key = await runScript(this.#redis, ID_KEY, [`${keysOf(clientId)}payment-key`], [fresh]);
    return Buffer.from(String(key), 'base64url');
  }

  #record(reply: unknown): PaymentRecord | undefined {
    if (!Array.isArray(reply)) return undefined;
    // READ_RECORD returns so many texts.
    const fields = reply as string[];
    const [state, whose, lease, asked = '', askedAt, sentAt = '', wall = '', bootId = '', bootMs] = fields;
    const [settledAt = '', attempts = '', kind = '', status, text = '', input = '', now, hash = ''] =
      fields.slice(9);
    const stamp = { wall: wall === '' ? this.#clocks.now() : Number(wall), bootId, bootMs: Number(bootMs) };
    const ageMs = Math.max(Number(now) - Number(sentAt), ageOf(stamp, this.#clocks));
    return {
      hash,
      // No owner of a key has this mark.
      keyOwner: whose === '?' ? null : String(whose),
      asked: readAsked(asked, input),
      state: state as PaymentRecord['state'],
      isHeld: state !== 'answered' && Number(lease) > Number(now),
      createdAt: Number(askedAt === '' ? sentAt : askedAt),
      sent: sentAt === '' ? null : { sentAt: Number(sentAt), ageMs },
      settledAt: settledAt === '' ? null : Number(settledAt),
      attempts: Number(attempts === '' ? (sentAt === '' ? 0 : 1) : attempts),
      answer: kind === '' ? null : storedAnswer([kind, String(status), text]),
    };
  }
}

export function storedAnswer([kind, status, text]: string[]): NonNullable<PaymentRecord['answer']> {
  // ANSWER is only ever given the fields of a StoredAnswer.
  return {
    kind: kind as NonNullable<PaymentRecord['answer']>['kind'],
    status: Number(status),
    text: String(text),
  };
}

/** Where a range of a set begins and ends, in the order in which it is read. */
function boundsOf({ from, to, beyond, isBack }: PaymentSearch): [string, string] {
  const place = beyond === undefined ? undefined : `${written(beyond.createdAt)}:${beyond.hash}`;
  const oldest = from === undefined ? '-' : `[${written(from)}`;
  const newest = to === undefined ? '+' : `(${written(to)}`;
  if (isBack) return [place === undefined || isLess(place, oldest) ? oldest : `(${place}`, newest];
  return [place === undefined || isLess(newest, place) ? newest : `(${place}`, oldest];
}

const isLess = (one: string, other: string): boolean =>
  one.replace(/^[[(]/, '').replace('+', '~') < other.replace(/^[[(]/, '').replace('+', '~');

const written = (time: number): string =>
  String(Math.min(Math.max(0, Math.ceil(time)), LATEST)).padStart(TIME_DIGITS, '0');

const placeIn = (member: string): PaymentPlace => ({
  createdAt: Number(member.slice(0, TIME_DIGITS)),
  hash: member.slice(TIME_DIGITS + 1),
});
