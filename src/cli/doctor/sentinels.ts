import { connectSentinel } from '../../redis/connection.ts';
import { fieldsOf } from '../../redis/failover.ts';
import { parseRedisUrl, type RedisNode, type RedisTarget } from '../../redis/url.ts';
import { type Findings, reasonOf } from './finding.ts';

const TIMEOUT_MS = 1_000;
const ADDRESSES = 'Correct the addresses of the Sentinels in REDIS_URL, or `sentinel monitor` of this one.';

/** What a Sentinel says of the group. */
interface Said {
  readonly name: string;
  /** Where it sees the primary. */
  readonly primary: string;
  readonly replicas: number;
  /** How many Sentinels it knows, itself included. */
  readonly sentinels: number;
  /** Why it could begin no failover; undefined if it could. */
  readonly lack: string | undefined;
}

/** Asks each Sentinel that `REDIS_URL` names, and finds what keeps it from a failover. Never fails; of another form it finds nothing. */
export async function lookAtSentinels(url: string, found: Findings): Promise<void> {
  const target = parseRedisUrl(url);
  if (target.form !== 'sentinel') return;
  const asked = await Promise.all(target.nodes.map((node) => ask(target, node, found)));
  const said = asked.filter((answer) => answer !== undefined);
  const primaries = [...new Set(said.map(({ primary }) => primary))];
  if (primaries.length > 1) {
    const named = said.map(({ name, primary }) => `${name} names ${primary}`).join(', ');
    found.warning(
      `the Sentinels name different primaries: ${named}`,
      `Wait until a failover is over. Where it lasts: ${ADDRESSES}`,
    );
  }
  const most = Math.max(...said.map(({ replicas }) => replicas));
  for (const { name, replicas, lack } of said) {
    if (lack !== undefined) {
      found.warning(
        `Sentinel ${name} could begin no failover: ${lack}`,
        'Bring the other Sentinels back, and let them reach each other; or lower the quorum (SENTINEL SET).',
      );
    }
    if (replicas === 0 || replicas < most) {
      found.warning(
        `Sentinel ${name} knows of ${replicas === 0 ? 'no replica' : `${replicas} replicas, and another of ${most}`}`,
        'Let it reach the primary, whose INFO replication names the replicas; then SENTINEL RESET on this Sentinel.',
      );
    }
  }
  const sentinels = Math.max(...said.map((answer) => answer.sentinels));
  if (sentinels > target.nodes.length) {
    found.warning(
      `REDIS_URL names ${target.nodes.length} of ${sentinels} Sentinels`,
      'Name all Sentinels in REDIS_URL: the gateway asks those alone which replicas could be promoted.',
    );
  }
}

async function ask(target: RedisTarget, node: RedisNode, found: Findings): Promise<Said | undefined> {
  const { primaryName = '' } = target;
  const name = `${node.host}:${node.port}`;
  let last: unknown;
  const sentinel = connectSentinel(target, node, {
    commandTimeout: TIMEOUT_MS,
    retryStrategy: () => null,
  });
  sentinel.on('error', (error) => {
    last = error;
  });
  try {
    const fields = fieldsOf(await sentinel.call('SENTINEL', 'MASTER', primaryName));
    const lack = await sentinel.call('SENTINEL', 'CKQUORUM', primaryName).then(() => undefined, reasonOf);
    return {
      name,
      primary: `${fields.get('ip')}:${fields.get('port')}`,
      replicas: Number(fields.get('num-slaves')),
      sentinels: Number(fields.get('num-other-sentinels')) + 1,
      lack,
    };
  } catch (error) {
    const reason = reasonOf(last ?? error);
    if (/No such master/.test(reason)) {
      found.warning(`Sentinel ${name} knows no primary named ${primaryName}`, ADDRESSES);
    } else {
      found.warning(
        `Sentinel ${name} does not answer: ${reason}`,
        'Start it, or let this machine reach it; with a password, name it as sentinelPassword in REDIS_URL.',
      );
    }
    return undefined;
  } finally {
    sentinel.disconnect();
  }
}
