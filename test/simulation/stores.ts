import { useRedis } from '../../src/redis/connection.ts';
import { currentProcess, type Process, type Simulation } from './core.ts';
import { Appends } from './history.ts';
import { SimulatedRedis } from './redis/client.ts';
import type { Keyspace } from './redis/keyspace.ts';
import { RedisServer } from './redis/server.ts';

/** How long a replica may have been gone that is promoted, in milliseconds: docs/redis.md promises nothing past 30 s. */
const FRESH_MS = 29_000;

/** A process that is to be cut off from Redis in the midst of a payment. */
export interface Cutting {
  readonly process: string;
  /** The word that the step replies with. */
  readonly step: 'claimed' | 'sent';
  /** Whether that reply still arrives. */
  readonly isReplied: boolean;
  readonly ms: number;
}

/** A group of Redis servers behind one name that moves with a failover. */
export class RedisGroup {
  readonly #sim: Simulation;
  readonly servers: readonly RedisServer[];
  #primary: RedisServer;
  /** Processes that no byte of this group reaches. */
  readonly cut = new Set<string>();
  /** By process: how likely it is that Redis runs a script for it, or reads a field, and the reply is lost. */
  readonly losing = new Map<string, number>();
  readonly #goneSince = new Map<RedisServer, number>();
  /** Replicas whose connection to the primary has ended: INFO names them no more. */
  readonly #unnamed = new Set<RedisServer>();
  /** Replicas that follow nobody, whatever is mended meanwhile. */
  readonly #away = new Set<RedisServer>();
  readonly #processes = new WeakSet<Process>();
  /** What is to be cut off as soon as Redis has done a step of a payment for it. */
  cutting: Cutting | undefined;
  /** When what a primary alone had was last forgotten, in ms since the beginning. */
  forgottenAt = Number.NEGATIVE_INFINITY;
  /** All that was ever appended to any of them. */
  readonly appends = new Appends();

  constructor(sim: Simulation, replicas: number) {
    this.#sim = sim;
    const primary = new RedisServer(sim, 'redis-0', true);
    this.#primary = primary;
    this.servers = [
      primary,
      ...Array.from({ length: replicas }, (_, index) => new RedisServer(sim, `redis-${index + 1}`, false)),
    ];
    for (const server of this.servers) {
      server.onAppend = (key, position, fields) => this.appends.note(key, position, fields);
      if (server !== primary) server.follow(primary);
    }
  }

  get primary(): RedisServer {
    return this.#primary;
  }

  /** Lets gateways connect to this group. @returns ends that. */
  install(): () => void {
    const chance = this.#sim.chance('redis clients');
    const isCut = (process: Process | undefined): boolean =>
      process !== undefined && this.cut.has(process.name);
    const lost = this.#sim.chance('lost replies');
    const lostFields = this.#sim.chance('lost fields');
    const lossesOf = (command: string) =>
      command.startsWith('EVAL') ? lost : command === 'HGET' ? lostFields : undefined;
    const replyOf = (process: Process | undefined, command: string, reply: unknown) => {
      const losses = lossesOf(command);
      if (losses === undefined) return 'arrives';
      if (this.#cuts(process, reply)) return 'silence';
      return losses.happens(this.losing.get(process?.name ?? '') ?? 0)
        ? losses.pick(['reset', 'silence'] as const)
        : 'arrives';
    };
    // The gateway uses no more of a client than the simulated one has.
    const open = (
      server: () => RedisServer | undefined,
      options: ConstructorParameters<typeof SimulatedRedis>[3],
    ) => {
      this.#noteProcess();
      return new SimulatedRedis(this.#sim, chance, { server, isCut, replyOf }, options) as never;
    };
    return useRedis({
      all: (_url, options) => open(() => this.#primary, options),
      node: (_url, node, options) => open(() => this.servers.find(({ name }) => name === node.host), options),
    });
  }

  /** Whether something keeps a process from its record, or a failover may be forgetting what was written. */
  isTroubled(process: string): boolean {
    return (
      this.cut.has(process) ||
      this.losing.has(process) ||
      this.servers.some((server) => !server.isUp || server.thawsInMs > 0) ||
      this.replicas().length < this.servers.length - 1
    );
  }

  /**
   * Puts keys back to what they were in a copy, as after a restart with an old file: every server has them so, and every connection ends.
   */
  putBack(copy: Keyspace, isMeant: (key: string) => boolean): void {
    const { keyspace } = this.#primary;
    for (const server of this.servers) server.stop();
    for (const key of keyspace.keys()) if (isMeant(key)) keyspace.delete(key);
    keyspace.take(copy, isMeant);
    this.#primary.startAgain();
    this.#away.clear();
    this.mend();
    this.forgottenAt = this.#sim.elapsed;
  }

  /** Cuts a process off where that is due. @returns whether the reply is lost already */
  #cuts(process: Process | undefined, reply: unknown): boolean {
    const due = this.cutting;
    // A durable step replies with what it has done, and with what follows its server.
    const [word] = [reply].flat(2);
    if (due === undefined || due.process !== process?.name || due.step !== word) return false;
    this.cutting = undefined;
    // A reply takes less than this.
    this.#sim.after(due.isReplied ? 2 : 0, undefined, () => this.cut.add(due.process));
    this.#sim.after(due.ms, undefined, () => this.cut.delete(due.process));
    return !due.isReplied;
  }

  replicas(): RedisServer[] {
    return this.servers.filter(
      (server) => server !== this.#primary && server.isUp && this.#primary.hasReplica(server),
    );
  }

  /** A replica goes away: with a word, or so that its primary notices by and by alone. */
  lose(replica: RedisServer, isSilent: boolean): void {
    this.#primary.lose(replica, isSilent);
    if (!this.#goneSince.has(replica)) this.#goneSince.set(replica, this.#sim.now);
    if (!isSilent) this.#unnamed.add(replica);
  }

  /** A replica goes away without a word, and stays so. @returns ends that, once it is mended */
  keepAway(replica: RedisServer): () => void {
    this.lose(replica, true);
    this.#away.add(replica);
    return () => this.#away.delete(replica);
  }

  /**
   * A process that begins over `redis://` knows of no replica that INFO does not name, and docs/events.md promises nothing where such a
   * one is promoted.
   */
  #noteProcess(): void {
    const process = currentProcess();
    if (process === undefined || this.#processes.has(process)) return;
    this.#processes.add(process);
    for (const replica of this.#unnamed) this.#goneSince.delete(replica);
  }

  /** Whoever does not follow the primary follows it again. */
  mend(): void {
    for (const server of this.servers) {
      if (!server.isUp) server.startAgain();
      if (server !== this.#primary && !this.#away.has(server) && !this.#primary.hasReplica(server)) {
        this.#primary.lose(server, false);
        server.follow(this.#primary);
        this.#goneSince.delete(server);
        this.#unnamed.delete(server);
      }
    }
  }

  /** Those that Sentinels, or an operator, may promote. */
  promotable(): RedisServer[] {
    return this.servers.filter((server) => {
      if (server === this.#primary || !server.isUp) return false;
      const goneSince = this.#goneSince.get(server);
      return (
        this.#primary.hasReplica(server) || (goneSince !== undefined && this.#sim.now - goneSince < FRESH_MS)
      );
    });
  }

  /**
   * The only replica takes over, and a moment later, before the primary that it replaced has followed it, that one again: with what it had.
   *
   * @returns ends that, and lets the other follow
   */
  replaceAndPromoteAgain(primary: RedisServer, replica: RedisServer, ms: number): () => void {
    const ends = [this.failOver(replica, false)];
    this.#sim.after(ms, undefined, () => {
      if (this.#primary !== replica || primary.isUp || !replica.isUp) return;
      primary.startAgain();
      ends.push(this.failOver(primary, false));
    });
    return () => {
      for (const end of ends) end();
      this.mend();
    };
  }

  /**
   * A replica takes over. The primary before it is gone; or goes on for a while, for those who are connected to it.
   *
   * @param areConnectionsEnded whether the primary before it, as it begins to follow, ends the connections that it has
   * @returns ends the old primary's rule
   */
  failOver(replica: RedisServer, isOldAlive: boolean, areConnectionsEnded = true): () => void {
    const old = this.#primary;
    for (const server of this.servers) old.lose(server, isOldAlive);
    if (!isOldAlive) old.stop();
    replica.promote(old);
    this.#primary = replica;
    this.#away.delete(replica);
    for (const server of this.servers) {
      if (server !== replica && server !== old && server.isUp && !this.#away.has(server))
        server.follow(replica);
    }
    this.#goneSince.clear();
    this.#unnamed.clear();
    this.#goneSince.set(old, this.#sim.now - FRESH_MS);
    this.forgottenAt = this.#sim.elapsed;
    return () => {
      if (!old.isUp) old.startAgain();
      if (this.#primary !== old) {
        old.follow(this.#primary, areConnectionsEnded);
        this.#goneSince.delete(old);
      }
      this.forgottenAt = this.#sim.elapsed;
    };
  }
}
