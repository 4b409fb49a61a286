import { entropy } from '../../common/entropy.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { durableScript } from '../../redis/durable-script.ts';
import type { DurableWrites } from '../../redis/durable-write.ts';
import { runScript, script } from '../../redis/script.ts';
import { MONEY_MUTATIONS, type MoneyMutation, type RecordName } from '../intent.ts';
import { partsOf } from '../journal/journal.ts';
import { ageOf, type Clocks } from '../lived-time.ts';
import { OPERATION_LETTERS, readSummary } from '../order-summary.ts';
import {
  type PaymentRecord,
  type PaymentSearch,
  type PaymentsFound,
  RETENTION_DAYS,
  RETENTION_MS,
  type StoredAnswer,
} from '../record.ts';
import { FIRST_DUE_MS } from '../settling/open-records.ts';
import { keyOf, keysOf, UNMOVED } from './keys.ts';
import { boundsOf, positionIn, TIME_DIGITS } from './members.ts';
import { JOURNAL_ASKED } from './redis-journal.ts';
import { NOW } from './time.ts';
import { DAY, TRANSACTION_INDEX, transactionName } from './transaction-index.ts';

/** Stands in the place of a customer in the names of the sets that hold all payments of the client. */
const EVERYBODY = '*';

/** A table of Lua: operations by their letters. */
const OPERATIONS = MONEY_MUTATIONS.map((name) => `${OPERATION_LETTERS[name]} = '${name}'`).join(', ');

/** Leaves the key of the record as `key`, the prefix of the client's keys as `base`, and the hash of the record as `hash`. */
export const HERE = `
  local key = KEYS[1]
  local base, hash = string.match(key, '^(.*:)([^:]*)$')
  ${UNMOVED}`;

/**
 * Puts the record of `key` into the sets of its class, and takes it out of those of the others: one set for each operation and
 * class, of the client and of its customer. All are in the client's slot. Members are times and hashes, so that a set is in the
 * order of its payments. What is open is in the set of those that are due as well, by when it is to be looked at.
 *
 * In front of it: NOW, HERE.
 */
export const FILE = `
  ${JOURNAL_ASKED}
  local function file(class)
    local due = base .. 'due'
    if class ~= 'open' then redis.call('ZREM', due, hash) end
    local askedAt, line, past = unpack(redis.call('HMGET', key, 'askedAt', 'line', 'past'))
    line = lineOf(line, past)
    local asked = begun(line)
    askedAt = askedAt or (line and string.match(line, '^%d+'))
    if not asked or not askedAt then return end
    asked = cjson.decode(asked)
    local operation = ({${OPERATIONS}})[asked[2]]
    if not operation then return end
    local member = askedAt .. ':' .. hash
    if class == 'open' then
      redis.call('ZADD', due, 'NX', string.format('%.0f', now + ${FIRST_DUE_MS}), hash)
      redis.call('PEXPIRE', due, ${2 * RETENTION_MS})
    end
    local owners = {'${EVERYBODY}'}
    if asked[3] ~= '' then owners[2] = asked[3] end
    for _, owner in ipairs(owners) do
      for _, other in ipairs({'open', 'done', 'refused'}) do
        local set = base .. 'payments:' .. owner .. ':' .. operation .. ':' .. other
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

/**
 * Defines `ownerOf(whose, past)`, the owner of a record's key; nothing where a version before has named none. A build between 0.2.0 and this
 * version left the field out for an owner who is not told apart, where a payment is done: such a record has its status at the end of `past`.
 */
export const OWNER = `
  local function ownerOf(whose, past)
    return whose or (past and string.match(past, '^[^,]*,[^,]*,[^,]*,[^,]*,%d') and '') or nil
  end`;

/**
 * Defines `record(key)`, which reads a record into a list of texts, an empty one for what it does not have, and `askedAt(found)`, the time
 * in the names of its members, of what that returns; nothing where it is not known. In front of it: NOW, `base`.
 */
const READ_RECORD = `
  ${JOURNAL_ASKED} ${OWNER}
  local function record(key)
    local found = redis.call('HMGET', key, 'state', 'whose', 'lease', 'askedAt', 'sentAt', 'wall', 'bootId', 'bootMs',
      'attempts', 'kind', 'status', 'text', 'input', 'line', 'past', 'seen', 'body', 'original')
    if not found[1] then return false end
    found[2] = ownerOf(found[2], found[15]) or '?'
    found[14] = lineOf(found[14], found[15])
    local asked = begun(found[14])
    for field = 1, 18 do found[field] = found[field] or '' end
    found[19] = asked or ''
    found[20] = string.format('%.0f', now)
    found[21] = string.match(key, '[^:]*$')
    return found
  end
  local function askedAt(found) return found[4] ~= '' and found[4] or string.match(found[14], '^%d+') end`;

/** KEYS: record. */
const READ = script(`${NOW} ${HERE} ${READ_RECORD}
  return record(KEYS[1])`);

/** KEYS: record of any name, for the client. ARGV: transactions, each with its part. Returns the record of each. */
const READ_BY_TRANSACTIONS = script(`${NOW} ${HERE} ${READ_RECORD}
  local function one(id, part)
    ${TRANSACTION_INDEX}
    for day = today + 1, today - ${RETENTION_DAYS + 1}, -1 do
      local found = redis.call('HGET', index(day), id)
      if found then
        local one = record(base .. found)
        local begunAt = tonumber(one and askedAt(one) or 0)
        -- Asked for after its transaction was known: another payment, under a key that was used again. A day more, as clocks differ.
        return begunAt < (day + 2) * ${DAY} and one
      end
    end
    return false
  end
  local found = {}
  for at = 1, #ARGV, 2 do found[#found + 1] = one(ARGV[at], ARGV[at + 1]) end
  return found`);

/**
 * KEYS: sets. ARGV: prefix of the client's keys, where to begin, where to end, limit, whether the oldest come first. Returns the place where
 * it ended, empty where nothing is left, then records. Takes members out whose record has expired, where Redis takes writes now: the sets keep
 * a member for twice as long, as each sending and each stored answer prolongs its record, and every page would go through all of them again.
 * A record of another time than its member's is that of a later payment under the same key, which has a member of its own.
 */
const SEARCH = script(`${NOW}
  local base = ARGV[1]
  ${UNMOVED} ${READ_RECORD}
  local limit, isBack = tonumber(ARGV[4]), ARGV[5] == '1'
  -- The next member of each set, in the order of its bytes. Lua would compare texts by the locale of Redis.
  local lists, nexts, times = {}, {}, {}
  local function step(list)
    nexts[list] = (nexts[list] or 0) + 1
    times[list] = tonumber(string.match(lists[list][nexts[list]] or '', '^%d+'))
  end
  local order = isBack and {'LIMIT', 0, limit} or {'REV', 'LIMIT', 0, limit}
  for list, set in ipairs(KEYS) do
    lists[list] = redis.call('ZRANGE', set, ARGV[2], ARGV[3], 'BYLEX', unpack(order))
    step(list)
  end
  local function isBefore(list, other)
    if times[list] ~= times[other] then return times[list] < times[other] end
    local one, two, at = lists[list][nexts[list]], lists[other][nexts[other]], ${TIME_DIGITS + 1}
    while string.byte(one, at) and string.byte(one, at) == string.byte(two, at) do at = at + 1 end
    return (string.byte(one, at) or 0) < (string.byte(two, at) or 0)
  end
  local found = {''}
  for place = 1, limit do
    local first
    for list in ipairs(lists) do
      if times[list] and (not first or isBefore(list, first) == isBack) then first = list end
    end
    if not first then break end
    local member = lists[first][nexts[first]]; step(first)
    if place == limit then found[1] = member end
    local begunAt, hash = string.match(member, '^(.*):([^:]*)$')
    local one = record(base .. hash)
    if one and (askedAt(one) or begunAt) == begunAt then
      found[#found + 1] = one
    else
      for _, set in ipairs(KEYS) do redis.pcall('ZREM', set, member) end
      if not one then redis.pcall('ZREM', base .. 'due', hash) end
    end
  end
  return found`);

/** KEYS: where a client's key is kept. ARGV: one to take where there is none. */
const ID_KEY = durableScript(`
  return redis.call('GET', KEYS[1]) or (redis.call('SET', KEYS[1], ARGV[1]) and ARGV[1])`);

/** The key of the set of a client's open payments of one operation. */
export const openSet = (clientId: string, operation: MoneyMutation): string =>
  `${keysOf(clientId)}payments:${EVERYBODY}:${operation}:open`;

interface RedisPaymentsParts {
  readonly redis: RedisClient;
  readonly writes: DurableWrites;
  readonly clocks: Clocks;
}

/** Reads the records of payments that the scripts of {@link openRedisRecords} write. */
export class RedisPayments {
  readonly #redis: RedisClient;
  readonly #writes: DurableWrites;
  readonly #clocks: Clocks;

  constructor({ redis, writes, clocks }: RedisPaymentsParts) {
    this.#redis = redis;
    this.#writes = writes;
    this.#clocks = clocks;
  }

  async read(name: RecordName): Promise<PaymentRecord | undefined> {
    return this.#record(await runScript(this.#redis, READ, [keyOf(name)], []));
  }

  async byTransactions(
    clientId: string,
    transactionIds: readonly string[],
  ): Promise<(PaymentRecord | undefined)[]> {
    const any = keyOf({ clientId, hash: 'any' });
    const names = transactionIds.flatMap(transactionName);
    // The script returns a list.
    const rows = (await runScript(this.#redis, READ_BY_TRANSACTIONS, [any], names)) as unknown[];
    return rows.map((row) => this.#record(row));
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
      next: end === '' ? undefined : positionIn(end),
    };
  }

  async idKey(clientId: string): Promise<Buffer> {
    const name = `${keysOf(clientId)}payment-key`;
    const key = (await this.#redis.get(name)) ?? (await this.#makeIdKey(name));
    return Buffer.from(key, 'base64url');
  }

  /** Ids that were told under a key that a failover forgets would name nothing. */
  async #makeIdKey(name: string): Promise<string> {
    const fresh = entropy.bytes(32).toString('base64url');
    return String(await this.#writes.write(this.#redis, ID_KEY, [name], [fresh]));
  }

  #record(reply: unknown): PaymentRecord | undefined {
    if (!Array.isArray(reply)) return undefined;
    // READ_RECORD returns a list of texts.
    const fields = reply as string[];
    const [state, whose, lease, askedAt, , wall = '', bootId = '', bootMs] = fields;
    const [kind = '', status = '', text = '', input = '', line = '', past = ''] = fields.slice(9);
    const [seen = '', body = '', original = '', asked, now, hash = ''] = fields.slice(15);
    const begunAt = line === '' ? 0 : partsOf(line)[0];
    const [sentAt = '', settledAt = '', attempts = ''] =
      past === '' ? [fields[4], '', fields[8]] : timesOf(past);
    const stamp = { wall: wall === '' ? this.#clocks.now() : Number(wall), bootId, bootMs: Number(bootMs) };
    const ageMs = Math.max(Number(now) - Number(sentAt), ageOf(stamp, this.#clocks));
    return {
      hash,
      // No owner of a key is written as `?`.
      keyOwner: whose === '?' ? null : String(whose),
      asked: readSummary(asked, input),
      state: state as PaymentRecord['state'],
      isHeld: state !== 'answered' && Number(lease) > Number(now),
      createdAt: askedAt === '' ? begunAt || Number(sentAt) : Number(askedAt),
      sent: sentAt === '' ? null : { sentAt: Number(sentAt), ageMs },
      body: body === '' ? null : body,
      original: original === '' ? null : original,
      seen: seen === '' ? null : seen,
      settledAt: settledAt === '' ? null : Number(settledAt),
      attempts: Number(attempts === '' ? (sentAt === '' ? 0 : 1) : attempts),
      answer: kind === '' ? null : storedAnswer([kind, status, text, past]),
    };
  }
}

/**
 * Of a settled record: when it was sent and settled, counted from its line in the journal where it has one; attempts; and the status of
 * what is done, which versions up to 0.2.0 have kept in a field of its own.
 */
function timesOf(past: string): string[] {
  const [line = '', sentAt = '', settledAt, attempts = '', status = ''] = past.split(',');
  const since = line === '' ? 0 : partsOf(line)[0];
  return [
    sentAt === '' ? '' : String(since + Number(sentAt)),
    String(since + Number(settledAt)),
    attempts,
    status,
  ];
}

/** @param fields kind, status, text and past of a record; null or empty for what it does not have */
export function storedAnswer([kind, status, text, past]: readonly (string | null)[]): StoredAnswer {
  return {
    // ANSWER is only ever given the fields of a StoredAnswer.
    kind: kind as StoredAnswer['kind'],
    status: Number(status || timesOf(past ?? '')[3]),
    text: String(text),
  };
}
