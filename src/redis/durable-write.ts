import type { Redis } from 'ioredis';
import { clock } from '../common/clock.ts';
import { SingleFlight } from '../common/single-flight.ts';
import { type RedisClient, silenceOf } from './connection.ts';
import { answerOf, type DurableAnswer, durableScript } from './durable-script.ts';
import { type FailoverAuthority, failoverAuthorityOf, serversOf } from './failover.ts';
import { type KeyRoute, KeyRoutes } from './key-routes.ts';
import { primaryInfo } from './on-primary.ts';
import { refusalOf } from './refusal.ts';
import { type Primary, primaryIn, Replication } from './replication.ts';
import { isTimeOut, runPipelined, runScript, type Script, withoutCommand } from './script.ts';

/** How long a write waits for the replicas if the write before it waited in vain, in milliseconds. */
const STALLED_TIMEOUT_MS = 50;
/** The least pause between two looks at all primaries, in milliseconds. */
const LOOK_AFTER_MS = 500;
/** How often a write is tried. A slot moves, or a replica comes, less often during one write. */
const MOST_TRIES = 5;

const UNHEARD = 'neither the Sentinels nor the Cluster say that fewer will do';

/** Writes something that is needed by nobody. */
const PROBE = durableScript("redis.call('SET', KEYS[1], '', 'PX', 60000)");

/** A write was made, and replicas lack it, so that it may still be lost. */
export class UnacknowledgedError extends Error {
  /** Names the history of data that it is in. */
  readonly replid: string;
  /** What the script has replied. Private, so that no log takes it for a property to show. */
  readonly #reply: unknown;

  constructor(message: string, replid: string, reply: unknown) {
    super(message);
    this.replid = replid;
    this.#reply = reply;
  }

  get reply(): unknown {
    return this.#reply;
  }
}

/** How many replicas a write waits for, and how long. */
interface Wait {
  readonly replicas: number;
  readonly timeoutMs: number;
}

/**
 * Writes that stay. A write is done once every replica that could be promoted has it; the server tells in the very script
 * that writes how many follow it. See {@link Replication} for how many have to.
 */
export class DurableWrites {
  readonly #authority: FailoverAuthority | undefined;
  readonly #replicaTimeoutMs: number;
  readonly #replication: Replication;
  readonly #routes = new KeyRoutes();
  /** The replication history that a connection last wrote to, or looked at. It is forgotten as the connection ends. */
  readonly #replids = new WeakMap<Redis, string>();
  /** By history: the write that finds out if the replicas acknowledge again. */
  readonly #probes = new SingleFlight<unknown>();
  #looking: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Why primaries refused writes at the last look. */
  #refusals: readonly string[] = [];
  #silence: string | undefined;

  /**
   * @param url any form that `parseRedisUrl` reads
   * @param replicaTimeoutMs how long a write waits for the replicas; it holds up its connection meanwhile
   * @param now in milliseconds, by a clock that only goes forward
   */
  constructor(url: string, replicaTimeoutMs: number, now?: () => number) {
    this.#replicaTimeoutMs = replicaTimeoutMs;
    this.#authority = failoverAuthorityOf(url);
    this.#replication = new Replication(this.#authority !== undefined, now);
  }

  /** True if a write on any primary would count now, as far as is known. */
  get isDurable(): boolean {
    return this.#refusals.length === 0 && this.#replication.isDurable;
  }

  /** How many replicas the primaries have, as far as is known. */
  get replicas(): number {
    return this.#replication.replicas;
  }

  /** Why it would not, as sentences for the operator that name no address; empty where it would. */
  get problems(): readonly string[] {
    const { missing } = this.#replication;
    return [
      ...(this.#silence === undefined ? [] : [`Redis does not answer: ${this.#silence}.`]),
      ...this.#refusals.map((refusal) => `Redis refuses writes: ${refusal.replace(/\.?$/, '.')}`),
      ...(missing === undefined
        ? []
        : [
            `A write counts once ${missing.required} ${missing.required === 1 ? 'replica has' : 'replicas have'} it, and ` +
              `${missing.replicas} ${missing.replicas === 1 ? 'answers' : 'answer'} now${missing.isUnheard ? `: ${UNHEARD}` : ''}.`,
          ]),
    ];
  }

  /**
   * Runs a script of {@link durableScript}, and resolves with its reply once its effect stays.
   *
   * Rejects when it is not certain that the effect is there, and stays; with {@link UnacknowledgedError} when it is there. No error
   * holds the command.
   */
  async write(
    redis: RedisClient,
    durable: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    try {
      return await this.#write(redis, durable, keys, args);
    } catch (error) {
      throw error instanceof UnacknowledgedError ? error : withoutCommand(error);
    }
  }

  /**
   * Resolves with true if the server from which a client reads a key is the primary, as far as can be told: Sentinels or the
   * Cluster name it, or a write on it counts. A server that was replaced may not know that yet, and goes on counting the replicas
   * that have left it.
   *
   * Rejects if it does not answer.
   */
  async isCurrent(redis: RedisClient, key: string): Promise<boolean> {
    const { server } = await this.#routes.route(redis, key);
    if ((await primaryInfo(server, redis)) === undefined) return false;
    const others = serversOf(redis).filter((other) => other !== server);
    const word = await this.#authority?.ask(server, others);
    if (word !== undefined && word !== 'replaced') return true;
    return this.#write(redis, PROBE, [`${key}:probe`], []).then(
      () => true,
      () => false,
    );
  }

  /** Looks at every primary. Rejects if one of them does not answer; the answers of the others count all the same. */
  look(redis: RedisClient): Promise<void> {
    this.#looking ??= this.#look(redis)
      .then(
        () => {
          this.#silence = undefined;
        },
        (error: unknown) => {
          this.#silence = silenceOf(redis, withoutCommand(error));
          throw error;
        },
      )
      .finally(() => {
        this.#looking = undefined;
        this.#lookedAt = clock.monotonic();
      });
    return this.#looking;
  }

  async #write(
    redis: RedisClient,
    durable: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const route = await this.#routes.route(redis, keys[0] ?? '');
    return this.#inTurn(route.server, () => this.#attempt(redis, route, durable, keys, args));
  }

  /**
   * While the replicas do not acknowledge, one write at a time finds out whether they do again: each that waits for them holds up
   * all behind it on its connection, also when its caller no longer waits.
   */
  async #inTurn(server: Redis, write: () => Promise<unknown>): Promise<unknown> {
    const replid = this.#replids.get(server);
    const isStalled = (): boolean => this.#replication.awaited(replid).isStalled;
    if (replid === undefined || !isStalled()) return write();
    const probe = this.#probes.underWay(replid);
    if (probe === undefined) return this.#probes.begin(replid, '', write(), undefined).result;
    await probe.result.catch(() => undefined);
    if (isStalled()) throw new Error('replicas follow, and do not acknowledge what is written');
    return write();
  }

  async #attempt(
    redis: RedisClient,
    from: KeyRoute,
    durable: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const [key = ''] = keys;
    let route = from;
    // A rerun sees its own write as a duplicate, so the first reply of one history counts.
    let first: DurableAnswer | undefined;
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const known = this.#replids.get(route.server);
      const wait = this.#waitOn(known);
      let replies: readonly unknown[];
      try {
        replies = await send(route, durable, keys, args, wait);
      } catch (error) {
        if (wait.replicas > 0 && isTimeOut(error)) this.#replication.acknowledged(known, false);
        const run = () => runScript(redis, durable, keys, args);
        const followed = await this.#routes.followed(redis, route.server, key, error, run);
        ({ route } = followed);
        first = followed.reply === undefined ? undefined : answerOf(followed.reply);
        continue;
      }
      const answer = answerOf(replies[0]);
      const { primary } = answer;
      if (first?.primary.replid !== primary.replid) first = answer;
      const acknowledged = Number(replies[1] ?? 0);
      this.#observe(route.server, primary);
      if (primary.replicas < this.#replication.required(primary.replid))
        await this.#lookLately(redis, primary.replid);
      const required = this.#replication.required(primary.replid);
      const isDone = acknowledged >= required;
      const isLate = !isDone && wait.replicas >= required;
      if (isDone || isLate) this.#replication.acknowledged(primary.replid, isDone);
      if (isDone) return first.reply;
      if (isLate || primary.replicas < required) {
        throw new UnacknowledgedError(
          `${required} replicas should have this: ${primary.replicas} follow, ${acknowledged} acknowledged`,
          primary.replid,
          first.reply,
        );
      }
    }
    throw new Error('the owner of the slot, or its replicas, changed too often');
  }

  /** If too few replicas follow, the write does not WAIT: that would hold up the connection for nothing. */
  #waitOn(replid: string | undefined): Wait {
    const { replicas, isStalled } = this.#replication.awaited(replid);
    return { replicas, timeoutMs: isStalled ? STALLED_TIMEOUT_MS : this.#replicaTimeoutMs };
  }

  #observe(server: Redis, primary: Primary): void {
    // Made again, it may lead to another server, whose replicas are not known.
    if (!this.#replids.has(server)) server.once('close', () => this.#replids.delete(server));
    this.#replids.set(server, primary.replid);
    this.#replication.observe(primary);
  }

  /** Looks. Waits for that only where a write on this history may count by what it tells, as a Sentinel may be silent. */
  async #lookLately(redis: RedisClient, replid: string): Promise<void> {
    if (clock.monotonic() - this.#lookedAt < LOOK_AFTER_MS) return;
    // Another primary that does not answer says nothing of this one.
    const look = this.look(redis).catch(() => {});
    if (this.#replication.needsWord(replid)) await look;
  }

  async #look(redis: RedisClient): Promise<void> {
    const looks = await Promise.allSettled(serversOf(redis).map((server) => this.#lookAt(redis, server)));
    const seen = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
    this.#refusals = [...new Set(seen.flatMap(({ refusal }) => refusal ?? []))];
    const failed = looks.find((look) => look.status === 'rejected');
    if (failed !== undefined) throw withoutCommand(failed.reason);
    if (!(await this.#routes.coversAllSlots(redis))) throw new Error('a primary of the Cluster is not there');
    if (looks.length === 0) throw new Error('no primary is known');
    this.#replication.keep(seen.map(({ replid }) => replid));
  }

  async #lookAt(
    redis: RedisClient,
    server: Redis,
  ): Promise<{ readonly replid: string; readonly refusal: string | undefined }> {
    const refusal = await refusalOf(redis, server);
    const infos = await Promise.all([server.info('replication'), server.info('stats')]);
    const primary = primaryIn(infos.join(''));
    this.#observe(server, primary);
    const word = await this.#authority?.ask(server);
    // Made again meanwhile, it may lead to another server, of which they speak.
    if (this.#replids.get(server) !== primary.replid) throw new Error('the connection has ended');
    this.#replication.told(primary.replid, word);
    return { replid: primary.replid, refusal };
  }
}

/** Sends all in one pipeline, because WAIT counts the writes of its own connection, on the server at its other end. */
async function send(
  { server, asking }: KeyRoute,
  durable: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
  { replicas, timeoutMs }: Wait,
): Promise<readonly unknown[]> {
  const replies = await runPipelined(durable, (run, text) => {
    const pipeline = server.pipeline();
    if (asking) pipeline.asking();
    pipeline[run](text, keys.length, ...keys, ...args);
    if (replicas > 0) pipeline.wait(replicas, timeoutMs);
    return pipeline;
  });
  return asking ? replies.slice(1) : replies;
}
