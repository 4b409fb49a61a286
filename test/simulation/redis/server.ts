import { createHash } from 'node:crypto';
import type { Chance } from '../chance.ts';
import type { Process, Simulation } from '../core.ts';
import { type Effect, Keyspace } from './keyspace.ts';
import { type Compiled, compileLua } from './lua-compile.ts';
import { LuaError } from './lua-runtime.ts';

const READONLY = "READONLY You can't write against a read only replica.";
const WRITES = new Set(
  'SET DEL PEXPIRE PEXPIREAT HSET HSETNX HINCRBY HDEL SADD SREM RPUSH LPOP ZADD ZREM ZREMRANGEBYLEX XADD XDEL XTRIM'.split(
    ' ',
  ),
);
const scripts = new Map<string, Compiled>();

/** What a replica has of its primary. */
interface Link {
  readonly replica: RedisServer;
  /** Up to where the primary knows that the replica has it. */
  acked: number;
  /** When the replica was heard of last. */
  heardAt: number;
  isSilent: boolean;
  /** What was told first arrives first. */
  arrivesAt: number;
}

/** A connection, as the server sees it. */
export interface Served {
  readonly process: Process | undefined;
  message(channel: string, text: string): void;
  /** The server is gone, or has closed it. */
  closed(): void;
}

/** One server: its data stays when it is started again, as with `appendfsync always`. */
export class RedisServer {
  readonly name: string;
  readonly #sim: Simulation;
  readonly #chance: Chance;
  #keyspace: Keyspace;
  isUp = true;
  isPrimary: boolean;
  #replid = '';
  #former = '';
  #syncs = 0;
  /** How much has been written in this history. */
  offset = 0;
  readonly #links = new Map<RedisServer, Link>();
  readonly #connections = new Set<Served>();
  readonly #subscribers = new Map<string, Set<Served>>();
  #known = new Set<string>();
  #frozenUntil = 0;
  readonly #waiting = new Set<() => void>();
  /** Whom it keeps waiting, to be told when it follows another. */
  readonly #blocked = new Set<() => void>();
  /** What the command that runs now has changed so far. */
  #effects: Effect[] = [];
  #depth = 0;
  /** Told of each entry that is appended to a stream here. */
  onAppend: (key: string, position: string, fields: readonly string[]) => void = () => {};

  /** Told of the keys of each script before it runs here. What it returns is called once the script has run. */
  onScript: (keys: readonly string[]) => () => void = () => () => {};

  constructor(sim: Simulation, name: string, isPrimary: boolean) {
    this.name = name;
    this.#sim = sim;
    this.#chance = sim.chance(`redis:${name}`);
    this.isPrimary = isPrimary;
    this.#keyspace = new Keyspace(() => Math.floor(sim.now));
    this.#beginHistory('');
  }

  get keyspace(): Keyspace {
    return this.#keyspace;
  }

  get thawsInMs(): number {
    return Math.max(0, this.#frozenUntil - this.#sim.now);
  }

  freeze(ms: number): void {
    this.#frozenUntil = this.#sim.now + ms;
  }

  accept(connection: Served): void {
    this.#connections.add(connection);
  }

  serves(connection: Served): boolean {
    return this.#connections.has(connection);
  }

  leave(connection: Served): void {
    this.#connections.delete(connection);
    for (const subscribers of this.#subscribers.values()) subscribers.delete(connection);
  }

  subscribe(connection: Served, channel: string): void {
    const subscribers = this.#subscribers.get(channel) ?? new Set();
    this.#subscribers.set(channel, subscribers.add(connection));
  }

  unsubscribe(connection: Served, channel: string): void {
    this.#subscribers.get(channel)?.delete(connection);
  }

  /** Its process ends; what was written stays. */
  stop(): void {
    this.isUp = false;
    this.closeConnections();
    this.#links.clear();
    this.#known = new Set();
  }

  closeConnections(): void {
    for (const connection of [...this.#connections]) {
      this.leave(connection);
      connection.closed();
    }
  }

  startAgain(): void {
    this.isUp = true;
    this.#frozenUntil = 0;
    this.#syncs = 0;
    this.#beginHistory('');
  }

  /** Begins to follow, with a whole copy. Sentinels end the connections then; REPLICAOF by itself ends none. */
  follow(primary: RedisServer, areConnectionsEnded = true): void {
    this.isPrimary = false;
    if (areConnectionsEnded) this.closeConnections();
    for (const unblock of [...this.#blocked]) unblock();
    this.#links.clear();
    this.#keyspace = new Keyspace(() => Math.floor(this.#sim.now), primary.keyspace);
    this.offset = primary.offset;
    this.#listen();
    primary.#take(this);
  }

  /** A replica takes the place of its primary: its history begins where that one's ended for it. */
  promote(from: RedisServer): void {
    this.isPrimary = true;
    this.#syncs = 0;
    this.#beginHistory(from.#replid);
  }

  /** The replica is gone: at once, or without a word. */
  lose(replica: RedisServer, isSilent: boolean): void {
    const link = this.#links.get(replica);
    if (link === undefined) return;
    if (isSilent) Object.assign(link, { isSilent, heardAt: this.#sim.now });
    else this.#links.delete(replica);
  }

  hasReplica(replica: RedisServer): boolean {
    return this.#links.get(replica)?.isSilent === false;
  }

  acknowledged(offset: number): number {
    return [...this.#links.values()].filter(({ acked, isSilent }) => !isSilent && acked >= offset).length;
  }

  /** Calls back whenever a replica has acknowledged something. @returns stops that. */
  onAcknowledged(listener: () => void): () => void {
    this.#waiting.add(listener);
    return () => this.#waiting.delete(listener);
  }

  /** Calls back when it begins to follow another. @returns stops that. */
  onDemoted(listener: () => void): () => void {
    this.#blocked.add(listener);
    return () => this.#blocked.delete(listener);
  }

  /** Runs a command. Replicas are told at once of all that a script has changed. @throws {LuaError} with what Redis would say */
  run(command: string, args: readonly string[]): unknown {
    this.#depth += 1;
    try {
      return this.#runOne(command, args);
    } finally {
      this.#depth -= 1;
      if (this.#depth === 0 && this.#effects.length > 0) {
        const effects = this.#effects;
        this.#effects = [];
        for (const link of this.#links.values()) this.#send(link, effects, this.offset);
      }
    }
  }

  #runOne(command: string, args: readonly string[]): unknown {
    const upper = command.toUpperCase();
    if (upper === 'EVALSHA' || upper === 'EVAL') return this.#runScript(upper, args);
    if (upper === 'INFO') return this.#info(args[0] ?? '');
    if (!this.isPrimary && WRITES.has(upper)) throw new LuaError(READONLY);
    if (upper === 'PUBLISH') return this.#publish(args[0] ?? '', args[1] ?? '');
    return this.#keyspace.run(upper, args);
  }

  #runScript(command: string, [text = '', count, ...rest]: readonly string[]): unknown {
    const sha = command === 'EVALSHA' ? text : createHash('sha1').update(text).digest('hex');
    if (command === 'EVALSHA' && !this.#known.has(sha))
      throw new LuaError('NOSCRIPT No matching script. Please use EVAL.');
    let compiled = scripts.get(sha);
    if (compiled === undefined) {
      compiled = compileLua(text);
      scripts.set(sha, compiled);
    }
    this.#known.add(sha);
    const keys = rest.slice(0, Number(count));
    const hasRun = this.onScript(keys);
    const reply = compiled({ call: (name, ...args) => this.run(name, args) }, keys, rest.slice(keys.length));
    hasRun();
    return reply;
  }

  #beginHistory(former: string): void {
    this.#replid = Buffer.from(this.#chance.bytes(20)).toString('hex');
    this.#former = former;
    this.#listen();
  }

  #listen(): void {
    this.#keyspace.onEffect = (effect) => {
      this.offset += 1;
      const [command, key = '', ...rest] = effect;
      if (command === 'XADD') {
        const [position = '', ...fields] = rest.slice(rest[0] === 'MAXLEN' ? 3 : 0);
        this.onAppend(key, position, fields);
      }
      if (this.#links.size > 0) this.#effects.push(effect);
    };
  }

  #take(replica: RedisServer): void {
    this.#syncs += 1;
    this.#links.set(replica, {
      replica,
      acked: this.offset,
      heardAt: this.#sim.now,
      isSilent: false,
      arrivesAt: 0,
    });
  }

  #send(link: Link, effects: readonly Effect[], offset: number): void {
    const { now } = this.#sim;
    link.arrivesAt = Math.max(
      link.arrivesAt,
      now + this.#chance.between(0.1, 1.5),
      now + link.replica.thawsInMs,
    );
    this.#sim.after(link.arrivesAt - now, undefined, () => {
      const isThere = () => this.#links.get(link.replica) === link && !link.isSilent;
      if (!isThere() || !link.replica.isUp) return;
      for (const effect of effects) link.replica.#deliver(effect);
      this.#sim.after(this.#chance.between(0.1, 1.5), undefined, () => {
        if (!isThere()) return;
        link.acked = Math.max(link.acked, offset);
        for (const listener of [...this.#waiting]) listener();
      });
    });
  }

  #deliver(effect: Effect): void {
    const listener = this.#keyspace.onEffect;
    this.#keyspace.onEffect = undefined;
    this.#keyspace.apply(effect);
    this.#keyspace.onEffect = listener;
    this.offset += 1;
  }

  #publish(channel: string, text: string): number {
    const subscribers = [...(this.#subscribers.get(channel) ?? [])];
    for (const subscriber of subscribers) subscriber.message(channel, text);
    return subscribers.length;
  }

  #info(section: string): string {
    if (section === 'stats') return `sync_full:${this.#syncs}\r\nsync_partial_ok:0\r\nevicted_keys:0\r\n`;
    if (section !== 'replication') return `run_id:${this.#replid}\r\n`;
    const rows = [...this.#links.values()].map(({ replica, acked, heardAt, isSilent }, number) => {
      const lag = isSilent ? Math.floor((this.#sim.now - heardAt) / 1000) : 0;
      return `slave${number}:ip=${replica.name},port=6379,state=online,offset=${acked},lag=${lag}\r\n`;
    });
    return (
      `role:${this.isPrimary ? 'master' : 'slave'}\r\nconnected_slaves:${rows.length}\r\n${rows.join('')}` +
      `master_replid:${this.#replid}\r\nmaster_replid2:${this.#former.padEnd(40, '0')}\r\n`
    );
  }
}
