import { Cluster, type Redis } from 'ioredis';
import { connectSentinel, type RedisClient } from './connection.ts';
import { awayFor, type Failover, primaryIn } from './replication.ts';
import { parseRedisUrl, type RedisNode, type RedisTarget } from './url.ts';

const SENTINEL_TIMEOUT_MS = 1000;
/** A Sentinel promotes no replica that has been cut off from its primary for this many times `down-after-milliseconds`. */
const TOO_OLD = 10;
const DOWN = /s_down|o_down/;

/** Decides about failovers: Sentinel, or the Cluster. */
export interface FailoverAuthority {
  /**
   * Resolves with what it knows of a primary; `replaced` if a Sentinel names another one; undefined if it cannot be asked, if too few of its
   * members see each other, or if they see it as down. Never fails.
   *
   * @param others the other primaries of a Cluster, if they are to confirm it: a primary may not have heard yet that it was
   * replaced
   */
  ask(primary: Redis, others?: readonly Redis[]): Promise<Failover | 'replaced' | undefined>;
}

/** Returns the authority of a `REDIS_URL`; undefined for a single Redis, which has none. */
export function failoverAuthorityOf(url: string): FailoverAuthority | undefined {
  const target = parseRedisUrl(url);
  if (target.form === 'cluster') return { ask: askCluster };
  if (target.form === 'sentinel') return { ask: (primary) => askSentinels(target, primary) };
  return undefined;
}

/** Returns the servers of a client: the primaries of a Cluster, or the one that it is connected to. */
export function serversOf(redis: RedisClient): readonly Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/**
 * Asks a Cluster. Its primaries agree on failed nodes: a node is marked `fail` once most of them say so. A primary that is
 * cut off from most of them cannot have its replicas marked, and takes no writes after `cluster-node-timeout`.
 */
async function askCluster(primary: Redis, others: readonly Redis[] = []): Promise<Failover | undefined> {
  try {
    const [rows, [seconds]] = await Promise.all([nodesOf(primary), primary.time()]);
    const own = rows.find(({ flags }) => flags.includes('myself'));
    if (own === undefined || !(await isConfirmed(own, others))) return undefined;
    const mayReturn = ({ flags, heardAt }: ClusterNode): boolean =>
      !flags.includes('fail') || Number(seconds) * 1000 - heardAt < awayFor(0);
    const replicas = rows.filter((row) => row.primaryId === own.id && mayReturn(row));
    if (replicas.length > 0) return { promotable: replicas.length, noticedAfterMs: 0 };
    // A replaced primary has no slots left, and is no replica until it is back.
    const replaced = rows.filter(
      (row) => row.flags.includes('master') && row.flags.includes('fail') && !row.hasSlots && mayReturn(row),
    );
    const mayBeIts = replaced.length > 0 && primaryIn(await primary.info('replication')).former !== '';
    return { promotable: mayBeIts ? 1 : 0, noticedAfterMs: 0 };
  } catch {
    return undefined;
  }
}

const nodesOf = async (server: Redis): Promise<readonly ClusterNode[]> =>
  String(await server.cluster('NODES'))
    .split('\n')
    .map(nodeIn);

/** Resolves with true if most primaries of a Cluster, itself included, see it as a primary with slots that has not failed. */
async function isConfirmed({ id }: ClusterNode, others: readonly Redis[]): Promise<boolean> {
  const views = await Promise.all(others.map((other) => nodesOf(other).catch(() => [])));
  const agreeing = views.filter((rows) =>
    rows.some((row) => row.id === id && row.hasSlots && isUp(row) && row.flags.includes('master')),
  );
  return 2 * (1 + agreeing.length) > 1 + others.length;
}

const isUp = ({ flags }: ClusterNode): boolean => !flags.includes('fail') && !flags.includes('fail?');

/** A line of CLUSTER NODES. */
interface ClusterNode {
  readonly id: string | undefined;
  readonly flags: readonly string[];
  readonly primaryId: string | undefined;
  /** When it was last heard, in milliseconds since 1970, by the clock of the server that was asked. */
  readonly heardAt: number;
  readonly hasSlots: boolean;
}

function nodeIn(line: string): ClusterNode {
  const [id, , flags = '', primaryId, , heardAt, , , ...slots] = line.split(' ');
  const words = flags.split(',');
  const isKnown = !words.includes('handshake') && !words.includes('noaddr');
  return {
    id,
    flags: words,
    primaryId: isKnown ? primaryId : undefined,
    heardAt: Number(heardAt),
    hasSlots: slots.length > 0,
  };
}

/**
 * Asks all Sentinels that `REDIS_URL` names. At least one of them must see enough others for a failover, so that no failover
 * can happen without its knowledge; and none may name another primary.
 */
async function askSentinels(target: RedisTarget, primary: Redis): Promise<Failover | 'replaced' | undefined> {
  try {
    const runId = /^run_id:(\w+)/m.exec(await primary.info('server'))?.[1];
    const answers = await Promise.all(target.nodes.map((node) => askSentinel(target, node).catch(() => {})));
    const answered = answers.filter((answer) => answer !== undefined);
    // A Sentinel that has just started has not asked the primary for its run id yet, and names none.
    if (answered.some((answer) => answer.runId && answer.runId !== runId)) return 'replaced';
    const named = answered.every((answer) => answer.runId === runId && !answer.isDown);
    if (!named || !answered.some(({ hasQuorum }) => hasQuorum)) return undefined;
    return {
      promotable: Math.max(...answered.map(({ promotable }) => promotable)),
      noticedAfterMs: Math.max(...answered.map(({ noticedAfterMs }) => noticedAfterMs)),
    };
  } catch {
    return undefined;
  }
}

interface SentinelAnswer extends Failover {
  /** The run id of the process that it sees as the primary. */
  readonly runId: string | undefined;
  /** True if it sees the primary as down, or is replacing it. */
  readonly isDown: boolean;
  /** True if it sees enough other Sentinels to fail over. */
  readonly hasQuorum: boolean;
}

async function askSentinel(target: RedisTarget, node: RedisNode): Promise<SentinelAnswer> {
  const { primaryName = '' } = target;
  const sentinel = connectSentinel(target, node, {
    commandTimeout: SENTINEL_TIMEOUT_MS,
    retryStrategy: () => null,
  });
  try {
    const [primary, replicas, hasQuorum] = await Promise.all([
      sentinel.call('SENTINEL', 'MASTER', primaryName),
      sentinel.call('SENTINEL', 'REPLICAS', primaryName),
      sentinel.call('SENTINEL', 'CKQUORUM', primaryName).then(
        () => true,
        () => false,
      ),
    ]);
    const fields = fieldsOf(primary);
    const noticedAfterMs = Number(fields.get('down-after-milliseconds'));
    const rows = Array.isArray(replicas) ? replicas.map(fieldsOf) : [];
    const promotable = rows.filter((row) => {
      if (row.get('slave-priority') === '0') return false;
      if (DOWN.test(row.get('flags') ?? '')) return Number(row.get('s-down-time')) < awayFor(noticedAfterMs);
      return Number(row.get('master-link-down-time') ?? 0) <= TOO_OLD * noticedAfterMs;
    });
    return {
      runId: fields.get('runid'),
      isDown: /s_down|o_down|failover_in_progress/.test(fields.get('flags') ?? ''),
      hasQuorum,
      noticedAfterMs,
      promotable: promotable.length,
    };
  } finally {
    sentinel.disconnect();
  }
}

/** Reads a reply that lists names, each followed by its value. */
export function fieldsOf(reply: unknown): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  if (!Array.isArray(reply)) return fields;
  for (let index = 0; index + 1 < reply.length; index += 2) {
    fields.set(String(reply[index]), String(reply[index + 1]));
  }
  return fields;
}
