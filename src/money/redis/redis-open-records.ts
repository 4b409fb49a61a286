import type { RedisClient } from '../../redis/connection.ts';
import { runScript, script } from '../../redis/script.ts';
import { RETRY_WINDOW_MS } from '../backoff.ts';
import { MONEY_MUTATIONS, type RecordName } from '../intent.ts';
import { ageOf, type Clocks } from '../lived-time.ts';
import { readSummary } from '../order-summary.ts';
import type { OpenPayment, TakenPayment } from '../settling/open-records.ts';
import { ledgerOf, type RedisHolds } from './holds.ts';
import { dueKey, keyOf, keysOf, UNMOVED } from './keys.ts';
import type { RedisMarks } from './marks.ts';
import { FILE, HERE, openSet, storedAnswer } from './redis-payment-reads.ts';
import { COMPARE } from './scripts.ts';
import { NOW } from './time.ts';

/** Payments that {@link TIDY} looks at in one step. */
const TIDIED_AT_ONCE = 200;

/** KEYS: the set of those that are due. ARGV: limit. */
const DUE = script(`${NOW}
  return redis.call('ZRANGE', KEYS[1], '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, ARGV[1])`);

/**
 * KEYS: record, those that are due, ledger. ARGV: owner, lease in ms, known epoch, known count, whether its caller has come,
 * when that was counted.
 * Returns texts, empty ones for what there is not; `held` alone while payments are held.
 */
const TAKE = script(`${NOW} ${HERE} ${FILE}
  local ledger, knownEpoch, known, knownAt = KEYS[3], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6])
  ${COMPARE}
  if held then return {'held'} end
  local state, kind, lease, line = unpack(redis.call('HMGET', key, 'state', 'kind', 'lease', 'line'))
  if state == 'answered' and kind ~= 'unknown' then
    file(kind)
    return
  end
  local asked = begun(line)
  if not state or state == 'claimed' or not asked then
    redis.call('ZREM', KEYS[2], hash)
    return
  end
  local due = redis.call('ZSCORE', KEYS[2], hash)
  if not due then return end
  local wait = tonumber(due) - now
  local upstreamKey, sentAt = unpack(redis.call('HMGET', key, 'upstreamKey', 'sentAt'))
  local mayBeSent = state == 'sent' and upstreamKey and sentAt and now - sentAt < ${RETRY_WINDOW_MS}
  local isPutOff = wait > 2 * ARGV[2] and (wait == math.huge or not mayBeSent)
  if wait > 0 and not (ARGV[5] == '1' and isPutOff) then return end
  if state == 'sent' and lease and tonumber(lease) > now then
    redis.call('ZADD', KEYS[2], lease, hash)
    return
  end
  local untilThen = string.format('%.0f', now + ARGV[2])
  -- What is only looked for stays its sender's, who may yet find that nothing had left; and no caller has to wait for it.
  if state == 'sent' and upstreamKey then
    redis.call('HSET', key, 'owner', ARGV[1], 'lease', untilThen)
  end
  redis.call('ZADD', KEYS[2], untilThen, hash)
  local tries = redis.call('HINCRBY', key, 'tries', 1)
  local found = redis.call('HMGET', key, 'input', 'original', 'body', 'sentAt', 'wall', 'bootId', 'bootMs', 'upstreamKey',
    'epoch', 'kind', 'status', 'text')
  for field = 1, 12 do found[field] = found[field] or '' end
  found[13] = state
  found[14] = tostring(tries - 1)
  found[15] = tostring(epoch)
  found[17] = asked
  found[18] = redis.call('HGET', key, 'whose') or '?'
  found[19] = redis.call('HGET', key, 'twin') or ''
  found[16] = string.format('%.0f', now - (found[4] == '' and now or tonumber(found[4])))
  return found`);

/** KEYS: record, those that are due. ARGV: how often it has been taken, when it is due in ms from now or nothing for never, what was seen. */
const PUT_OFF = script(`${NOW}
  local hash = string.match(KEYS[1], '[^:]*$')
  local state, kind, tries = unpack(redis.call('HMGET', KEYS[1], 'state', 'kind', 'tries'))
  if tries ~= ARGV[1] or state == 'claimed' or (state == 'answered' and kind ~= 'unknown') then return end
  redis.call('HSET', KEYS[1], 'seen', ARGV[3])
  if state == 'sent' then redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', now)) end
  if ARGV[2] == '' then redis.call('ZADD', KEYS[2], '+inf', hash)
  else redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), hash) end`);

/** KEYS: record, those that are due, ledger. */
const HASTEN = script(`
  local hash = string.match(KEYS[1], '[^:]*$')
  local state, kind = unpack(redis.call('HMGET', KEYS[1], 'state', 'kind'))
  if state ~= 'sent' and not (state == 'answered' and kind == 'unknown') then return end
  redis.call('HSET', KEYS[1], 'epoch', redis.call('HGET', KEYS[3], 'epoch') or '0', 'tries', 0)
  redis.call('ZADD', KEYS[2], 0, hash)`);

/** KEYS: a set of open payments. ARGV: prefix of the client's keys, after which member, limit. Returns the last one looked at. */
const TIDY = script(`${NOW}
  local base = ARGV[1]
  ${UNMOVED}
  local members = redis.call('ZRANGE', KEYS[1], ARGV[2], '+', 'BYLEX', 'LIMIT', 0, ARGV[3])
  for _, member in ipairs(members) do
    local hash = string.match(member, '[^:]*$')
    local key = base .. hash
    local state, kind = unpack(redis.call('HMGET', key, 'state', 'kind'))
    if not state or state == 'claimed' then
      redis.call('ZREM', KEYS[1], member)
      redis.call('ZREM', base .. 'due', hash)
    else
      ${FILE}
      local class = state == 'answered' and kind ~= 'unknown' and kind or 'open'
      -- What has its place among those that are due was filed as open: it is left as it is, as there may be very many.
      if class ~= 'open' or not redis.call('ZSCORE', base .. 'due', hash) then file(class) end
    end
  end
  return members[#members]`);

/** Finds and takes open payments among the records that the scripts of `openRedisRecords` write. */
export class RedisOpen {
  readonly #redis: RedisClient;
  readonly #clocks: Clocks;
  readonly #marks: RedisMarks;
  readonly #holds: RedisHolds;

  constructor(redis: RedisClient, clocks: Clocks, marks: RedisMarks, holds: RedisHolds) {
    this.#redis = redis;
    this.#clocks = clocks;
    this.#marks = marks;
    this.#holds = holds;
  }

  async due(clientId: string, limit: number): Promise<readonly RecordName[]> {
    // DUE returns a list of members.
    const hashes = (await runScript(this.#redis, DUE, [dueKey(clientId)], [limit])) as string[];
    return hashes.map((hash) => ({ clientId, hash }));
  }

  async take(
    name: RecordName,
    owner: string,
    leaseMs: number,
    isAsked: boolean,
  ): Promise<OpenPayment | undefined> {
    const keys = [keyOf(name), dueKey(name.clientId), ledgerOf(name.clientId)];
    const { epoch: knownEpoch, sent: known, at } = this.#marks.of(name.clientId);
    const args = [owner, leaseMs, knownEpoch, known, isAsked ? 1 : 0, at];
    const reply = await runScript(this.#redis, TAKE, keys, args);
    if (!Array.isArray(reply)) return undefined;
    if (reply[0] === 'held') {
      await this.#holds.found(name.clientId);
      return undefined;
    }
    // TAKE returns a list of texts.
    const fields = reply as string[];
    const [input = '', original = '', body = '', sentAt, wall = '', bootId = '', bootMs, upstreamKey = ''] =
      fields;
    const [
      epoch,
      kind = '',
      status = '',
      text = '',
      state,
      tries,
      nowEpoch,
      age,
      written,
      whose = '?',
      twin = '',
    ] = fields.slice(8);
    const asked = readSummary(written, input);
    if (asked === null) {
      await this.putOff({ name, tries: Number(tries) }, undefined, '');
      return undefined;
    }
    // A record of an earlier version has no stamp.
    const stamp = { wall: wall === '' ? this.#clocks.now() : Number(wall), bootId, bootMs: Number(bootMs) };
    return {
      name,
      asked,
      inputHash: input,
      body,
      sentAt: Number(sentAt),
      ageMs: Math.max(Number(age), ageOf(stamp, this.#clocks)),
      upstreamKey: upstreamKey === '' || epoch !== nowEpoch ? null : upstreamKey,
      original: original === '' ? null : original,
      closed: state === 'answered' ? storedAnswer([kind, status, text]) : null,
      tries: Number(tries),
      keyOwner: whose === '?' ? null : whose,
      twin: twin === '' ? null : twin,
      // What an earlier version sent has no epoch.
      isCurrent: (epoch || '0') === nowEpoch,
    };
  }

  async putOff({ name, tries }: TakenPayment, dueMs: number | undefined, seen: string): Promise<void> {
    const due = dueMs === undefined ? '' : Math.round(dueMs);
    const keys = [keyOf(name), dueKey(name.clientId)];
    await runScript(this.#redis, PUT_OFF, keys, [tries + 1, due, seen]);
  }

  async hasten({ clientId, hash }: RecordName): Promise<void> {
    const keys = [keyOf({ clientId, hash }), dueKey(clientId), ledgerOf(clientId)];
    await runScript(this.#redis, HASTEN, keys, []);
  }

  async tidy(clientId: string): Promise<void> {
    for (const operation of MONEY_MUTATIONS) {
      let from = '-';
      for (;;) {
        const set = [openSet(clientId, operation)];
        const last = await runScript(this.#redis, TIDY, set, [keysOf(clientId), from, TIDIED_AT_ONCE]);
        if (typeof last !== 'string') break;
        from = `(${last}`;
      }
    }
  }
}
