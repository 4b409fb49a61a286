import { useRedis } from '../../src/redis/connection.ts';
import type { Process, Simulation } from './core.ts';
import { Appends } from './history.ts';
import { SimulatedRedis } from './redis/client.ts';
import { RedisServer } from './redis/server.ts';

/** How long a replica may have been gone that is promoted, in milliseconds: docs/operations.md promises nothing past 30 s. */
const FRESH_MS = 20_000;

/** A group of Redis servers behind one name that moves with a failover. */
export class RedisGroup {
  readonly #sim: Simulation;
  readonly servers: readonly RedisServer[];
  #primary: RedisServer;
  /** Processes that no byte of this group reaches. */
  readonly cut = new Set<string>();
  readonly #goneSince = new Map<RedisServer, number>();
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
    // The gateway uses no more of a client than the simulated one has.
    const open = (
      server: () => RedisServer | undefined,
      options: ConstructorParameters<typeof SimulatedRedis>[3],
    ) => new SimulatedRedis(this.#sim, chance, { server, isCut }, options) as never;
    return useRedis({
      all: (_url, options) => open(() => this.#primary, options),
      node: (_url, node, options) => open(() => this.servers.find(({ name }) => name === node.host), options),
    });
  }

  replicas(): RedisServer[] {
    return this.servers.filter(
      (server) => server !== this.#primary && server.isUp && this.#primary.hasReplica(server),
    );
  }

  /** A replica goes away: with a word, or so that its primary notices by and by alone. */
  lose(replica: RedisServer, isSilent: boolean): void {
    this.#primary.lose(replica, isSilent);
    this.#goneSince.set(replica, this.#sim.now);
  }

  /** Whoever does not follow the primary follows it again. */
  mend(): void {
    for (const server of this.servers) {
      if (!server.isUp) server.startAgain();
      if (server !== this.#primary && !this.#primary.hasReplica(server)) {
        this.#primary.lose(server, false);
        server.follow(this.#primary);
        this.#goneSince.delete(server);
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
    for (const server of this.servers) {
      if (server !== replica && server !== old && server.isUp) server.follow(replica);
    }
    this.#goneSince.clear();
    this.#goneSince.set(old, this.#sim.now - FRESH_MS);
    return () => {
      if (!old.isUp) old.startAgain();
      if (this.#primary !== old) {
        old.follow(this.#primary, areConnectionsEnded);
        this.#goneSince.delete(old);
      }
    };
  }
}
