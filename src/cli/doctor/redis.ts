import type { Variables } from '../../app/variables.ts';
import { clock } from '../../common/clock.ts';
import { redisWarnings } from '../../events/redis/settings.ts';
import { connectRedis, NoSentinelError, type RedisClient } from '../../redis/connection.ts';
import { DurableWrites } from '../../redis/durable-write.ts';
import { serversOf } from '../../redis/failover.ts';
import { primaryIn } from '../../redis/replication.ts';
import { type Finding, Findings, reasonOf } from './finding.ts';
import { lookAtSentinels } from './sentinels.ts';

const TIMEOUT_MS = 3_000;

/** What to do about a sentence of `redisWarnings`, by the setting that it names. */
const CURES: readonly (readonly [setting: RegExp, cure: string])[] = [
  [/ is of version /, 'Run a later Redis, or Valkey.'],
  // It names others, too.
  [/does not let its settings/, 'Look at these settings in the console of your Redis provider.'],
  [/without appendonly/, 'redis-cli CONFIG SET appendonly yes, and "appendonly yes" in redis.conf.'],
  [
    /on-rewrite yes/,
    'redis-cli CONFIG SET no-appendfsync-on-rewrite no, and "no-appendfsync-on-rewrite no" in redis.conf.',
  ],
  [/appendfsync/, 'redis-cli CONFIG SET appendfsync always, and "appendfsync always" in redis.conf.'],
  [
    /min-replicas/,
    'Where refusing payments while a replica is down is better than this risk: redis-cli CONFIG SET min-replicas-to-write, to the number of replicas, on each of these Redis; the same in redis.conf.',
  ],
  [
    /names one Redis/,
    'Use redis+sentinel:// or redis+cluster://, or set min-replicas-to-write to the number of replicas.',
  ],
  [
    /No Sentinel|CLUSTER NODES/,
    'Let all Sentinels be reached from here; with users, allow SENTINEL MASTER, REPLICAS and CKQUORUM, or CLUSTER NODES.',
  ],
  [/validity-factor/, 'redis-cli CONFIG SET cluster-replica-validity-factor 10, and the same in redis.conf.'],
  [/maxmemory-policy/, 'redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf.'],
  [
    /has evicted keys/,
    'Set maxmemory-policy noeviction, and look up the payments and credits of that time; then redis-cli CONFIG RESETSTAT.',
  ],
  [
    /cannot be asked/,
    'Let the gateway reach every replica at the address that INFO replication names, with the user, the password and the certificates of REDIS_URL: users are not replicated.',
  ],
];

/** Commands that change nothing: one for each kind of right that the gateway needs and the look at a primary does not. */
const RIGHTS = [
  ['eval', 'return 1', '0'],
  ['hdel', '{pasarela}:meta', 'probe'],
  ['xdel', '{pasarela}:log', '0-1'],
  ['publish', '{pasarela}:events', ''],
] as const;

/** Checks that Redis answers, that it keeps what it is given, and that a copy of it exists. */
export async function lookAtRedis({
  REDIS_URL,
  UPSTREAM_URL,
}: Pick<Variables, 'REDIS_URL' | 'UPSTREAM_URL'>): Promise<readonly Finding[]> {
  const found = new Findings('redis');
  if (REDIS_URL === undefined) {
    if (UPSTREAM_URL === undefined) found.ok('not needed: the embedded log serves the sandbox');
    else
      found.ok(
        'not set: the embedded log in DATA_DIR serves this one process, and no second one can share it',
      );
    return found.list;
  }
  let redis: RedisClient;
  try {
    // Before there is a connection: one that is ready meanwhile would not be noticed.
    await lookAtSentinels(REDIS_URL.reveal(), found);
    redis = connectRedis(REDIS_URL.reveal(), {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      connectTimeout: TIMEOUT_MS,
      commandTimeout: TIMEOUT_MS,
    });
  } catch (error) {
    found.failure(reasonOf(error), 'Correct REDIS_URL.');
    return found.list;
  }
  try {
    await ready(redis);
    const primaries = serversOf(redis);
    const infos = await Promise.all(primaries.map((primary) => primary.info('replication')));
    if (infos.some((info) => /^role:slave/m.test(info))) {
      found.failure(
        'is a replica, which takes no writes. Events go to the spool, and no money moves',
        'Name the primary in REDIS_URL, or the Sentinels that know it: redis+sentinel://.',
      );
      return found.list;
    }
    for (const { text } of await redisWarnings(redis, REDIS_URL.reveal())) {
      const [, cure] = CURES.find(([setting]) => setting.test(text)) ?? [];
      found.warning(text, cure ?? 'Look at docs/redis.md, "Settings".');
    }
    await lookAtRights(redis, found);
    const writes = new DurableWrites(REDIS_URL.reveal(), TIMEOUT_MS);
    await writes.look(redis);
    if (!writes.isDurable) {
      const reason = writes.problems.join(' ');
      found.failure(
        `takes nothing that would stay. ${reason} Events go to the spool, and no money moves`,
        cureOf(reason),
      );
      return found.list;
    }
    const counts = infos.map((info) => primaryIn(info).replicas);
    const alone = counts.filter((count) => count === 0).length;
    const copies =
      alone === 0
        ? `every replica acknowledges each event (${counts.join(', ')})`
        : alone === counts.length
          ? 'no replica: its disk holds the only copy'
          : `${alone} of ${counts.length} primaries have no replica: their disks hold the only copy`;
    found.ok(`answers; ${copies}`);
  } catch (error) {
    const [reason, cure] = failureOf(error);
    found.failure(`cannot be used: ${reason}. Events go to the spool, and no money moves`, cure);
  } finally {
    redis.disconnect();
  }
  return found.list;
}

/** Finds rights that the user of `REDIS_URL` lacks. */
async function lookAtRights(redis: RedisClient, found: Findings): Promise<void> {
  const reasons = new Set<string>();
  for (const [command, ...args] of RIGHTS)
    reasons.add(await redis.call(command, ...args).then(() => '', reasonOf));
  for (const reason of reasons) {
    if (!reason.startsWith('NOPERM')) continue;
    found.warning(
      `refuses a right to the user of REDIS_URL: ${reason}. Events wait in the spool, nobody can follow them, or no money moves`,
      cureOf(reason),
    );
  }
}

/** Resolves once commands can be sent. Rejects with the last error of the connection. */
function ready(redis: RedisClient): Promise<void> {
  return new Promise((resolved, rejected) => {
    let last = new Error(`no answer within ${TIMEOUT_MS} ms`);
    const timer = clock.setTimeout(() => rejected(last), TIMEOUT_MS);
    redis.on('error', (error: Error) => {
      last = error;
      // Waiting cures neither a wrong password, certificate or database.
      if (/NOAUTH|WRONGPASS|NOPERM|certificate|alert|DB index/.test(reasonOf(error))) rejected(error);
    });
    redis.once('ready', () => {
      clock.clearTimeout(timer);
      resolved();
    });
  });
}

/** Until version 0.2.0 the gateway went on in database 0 where Redis refused the one of REDIS_URL. */
const KEPT_IN_0 =
  'If a gateway up to 0.2.0 has run with this REDIS_URL, take the number of the database out of it: all records of payments are in database 0. Otherwise';

/** Returns why Redis cannot be used, and what to do. */
function failureOf(error: unknown): readonly [reason: string, cure: string] {
  if (error instanceof NoSentinelError) {
    const cure = 'See to the Sentinels first: a warning about each says what is wrong.';
    return [error.message.replace(/\.$/, ''), cure];
  }
  const reason = reasonOf(error);
  return [reason, cureOf(reason)];
}

function cureOf(reason: string): string {
  if (/NOAUTH|WRONGPASS/.test(reason)) {
    return 'Where gateways run, have Redis take their old password again: they need no restart for that. Otherwise put the right user and password into REDIS_URL: redis://user:password@host:6379.';
  }
  if (reason.includes('NOPERM') && reason.includes("'select'")) {
    return `${KEPT_IN_0} give the user of REDIS_URL the rights of docs/redis.md, "Rights".`;
  }
  if (/NOPERM/.test(reason)) return 'Give the user of REDIS_URL the rights of docs/redis.md, "Rights".';
  if (/DB index/.test(reason)) {
    return `${KEPT_IN_0} name a database that this Redis has, or raise "databases" in redis.conf.`;
  }
  if (/cluster support disabled/.test(reason)) {
    return 'This Redis is no Cluster: use redis://, or redis+sentinel:// with Sentinels.';
  }
  if (/ENOTFOUND|EAI_AGAIN/.test(reason)) return 'Correct the name of the host in REDIS_URL.';
  if (/NOREPLICAS|replicas? ha/.test(reason)) {
    return 'Bring the missing replica back. For good without it: lower min-replicas-to-write, and have the Sentinels or the Cluster forget it.';
  }
  if (/OOM/.test(reason))
    return 'Give Redis more memory (maxmemory). A lower EVENTS_RETENTION frees some only once Redis takes events again.';
  if (/MISCONF/.test(reason)) return 'Make room on the disk of Redis, and look at its log.';
  if (/^BUSY /.test(reason)) {
    return 'A script holds Redis up, and it is none of the gateway: end it by redis-cli SCRIPT KILL.';
  }
  if (/ECONNREFUSED/.test(reason)) return 'Start Redis, or correct host and port in REDIS_URL.';
  if (/alert/.test(reason)) {
    return 'Redis ends the connection: show it a certificate that an authority of its own has signed, REDIS_TLS_CERT and REDIS_TLS_KEY.';
  }
  // With TLS 1.3 Redis refuses a client without a certificate only after the handshake. A command that is on its way by then may have
  // the connection reset before the alert is read. So may one that Redis has no room for, before its words are.
  if (/ECONNRESET|EPIPE/.test(reason)) {
    return 'Redis, or a proxy before it, ends the connection as it begins. Where Redis asks for a certificate, set REDIS_TLS_CERT and REDIS_TLS_KEY. Otherwise look whether REDIS_URL needs TLS (rediss://), whether Redis has as many clients as its maxclients, and at the log of Redis.';
  }
  if (/certificate (has expired|is not yet valid)/.test(reason)) {
    return 'Renew the certificate of Redis, and look at the clock of this machine.';
  }
  if (/altnames/.test(reason)) {
    return 'Name the host in REDIS_URL as the certificate does, or have its name signed into the certificate.';
  }
  if (/certificate/.test(reason)) {
    return 'Name the authority that signed it, REDIS_TLS_CA=/path/to/ca.pem.';
  }
  return 'Check host, port and TLS (rediss://) of REDIS_URL, and that this machine may connect. A Redis that was just started answers once it has read its file.';
}
