import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../src/common/logger.ts';
import { RedisLog } from '../../src/events/redis/redis-log.ts';
import { MONEY_MUTATIONS, type MoneyMutation } from '../../src/money/intent.ts';
import { PAYMENT_CLASSES, type PaymentPosition } from '../../src/money/record.ts';
import { keyOf } from '../../src/money/redis/keys.ts';
import { openSet } from '../../src/money/redis/redis-payment-reads.ts';
import { openRedisRecords } from '../../src/money/redis/redis-record.ts';
import { countingMetrics, moneyIn, recordingLogger } from '../helpers/events.ts';
import { DURABLE, type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

const NAME = 'people';
const ASCII = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
const symbolOf = (text: string): string =>
  `<U${text.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`;
/** The order of people: signs, digits, then letters, with both cases of each side by side. */
const ORDER = [/[^a-z\d]/i, /\d/, /[a-z]/i].flatMap((kind) =>
  ASCII.filter((text) => kind.test(text)).toSorted((one, other) => one.localeCompare(other, 'en')),
);
const CHARACTERS = [
  ...['<escape_char> /', '<code_set_name> "ASCII"', '<mb_cur_min> 1', '<mb_cur_max> 1', 'CHARMAP'],
  ...ASCII.map((text) => `${symbolOf(text)} /x${Buffer.from(text).toString('hex')} OF_ASCII`),
  'END CHARMAP',
];
const LOCALE = ['LC_COLLATE', 'order_start forward', ...ORDER.map(symbolOf), 'order_end', 'END LC_COLLATE'];

/**
 * Makes such a locale, by a program that comes with the C library: few servers have a locale of people. Returns the variables by which a
 * program has it; undefined where the C library is another than that of GNU, which compares by bytes.
 */
async function localeIn(dir: string): Promise<Readonly<Record<string, string>> | undefined> {
  if (process.platform !== 'linux' || spawnSync('localedef', ['--help']).error !== undefined)
    return undefined;
  await writeFile(join(dir, 'characters'), CHARACTERS.join('\n'));
  await writeFile(join(dir, 'locale'), LOCALE.join('\n'));
  // It makes the locale, and says by its code that it lacks all but the order.
  spawnSync('localedef', ['-c', '-i', join(dir, 'locale'), '-f', join(dir, 'characters'), join(dir, NAME)]);
  return { LC_ALL: NAME, LOCPATH: dir };
}

const dir = await mkdtemp(join(tmpdir(), 'pasarela-locale-'));
const locale = await localeIn(dir);
afterAll(() => rm(dir, { recursive: true, force: true }));

// A machine may give the services that it starts its own language. Lua in Redis then compares texts by that, and not by their bytes.
describe('a Redis that runs in the locale of people', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    for (const [name, value] of Object.entries(locale ?? {})) vi.stubEnv(name, value);
    redis = await startRedis(DURABLE);
    vi.unstubAllEnvs();
    const compared = await redis.admin.eval("return 'a' < 'B' and '~' < '1' and 1 or 0", 0);
    expect(compared).toBe(locale === undefined ? 0 : 1);
  });
  afterAll(() => redis.stop());

  it('lists payments of one millisecond each once, page by page, both ways', async () => {
    const records = await openRedisRecords(redis.url, join(dir, 'data'), silentLogger);
    const clientId = randomUUID();
    const askedAt = Date.now();
    const operations: readonly MoneyMutation[] = ['createMoneyOut', 'createInternalTransaction'];
    const hashes = ['B', 'a', 'Z', 'b', '-x', '0', '_y', 'A', 'z'].map((first) => first.padEnd(43, '1'));
    for (const [index, hash] of hashes.entries()) {
      const key = keyOf({ clientId, hash });
      await redis.admin.hset(key, { state: 'sent', input: 'an input', askedAt, sentAt: askedAt });
      const operation = operations[index % 2] ?? 'createMoneyOut';
      await redis.admin.zadd(openSet(clientId, operation), 0, `${askedAt}:${hash}`);
    }
    const search = { clientId, customerId: undefined, from: undefined, to: undefined, limit: 2 };
    for (const isBack of [true, false]) {
      const found: string[] = [];
      let beyond: PaymentPosition | undefined;
      do {
        const how = { operations: MONEY_MUTATIONS, classes: PAYMENT_CLASSES, isBack, beyond };
        const page = await records.search({ ...search, ...how });
        found.push(...page.records.map(({ hash }) => hash));
        beyond = page.next;
      } while (beyond !== undefined && found.length <= hashes.length);
      const sorted = hashes.toSorted();
      expect(found).toEqual(isBack ? sorted : sorted.toReversed());
    }
    await records.stop();
  });

  it('finds events by a name, page by page, from the newest on', async () => {
    const log = new RedisLog({
      ...{ redisUrl: redis.url, retention: 1_000, logger: recordingLogger(), metrics: countingMetrics() },
      ...{ now: Date.now, names: () => ['a name'] },
    });
    await log.settled();
    const client = randomUUID();
    const sent: string[] = [];
    for (let count = 0; count < 5; count += 1)
      sent.unshift((await log.append(client, moneyIn())).cursor ?? '');
    const search = { name: 'a name' };
    await until(async () => (await log.readBefore(client, null, 9, search)).events.length === sent.length);
    const found: string[] = [];
    let from: string | null = null;
    do {
      const { events } = await log.readBefore(client, from, 2, search);
      found.push(...events.map(({ cursor }) => cursor).toReversed());
      from = events[0]?.cursor ?? null;
    } while (from !== null && found.length <= sent.length);
    expect(found).toEqual(sent);
    await log.stop();
  });
});
