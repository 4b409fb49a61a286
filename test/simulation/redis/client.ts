import { EventEmitter } from 'node:events';
import type { RedisConnectOptions } from '../../../src/redis/connection.ts';
import type { Chance } from '../chance.ts';
import { type Alarm, currentProcess, type Process, type Simulation } from '../core.ts';
import { LuaError } from './lua-runtime.ts';
import type { RedisServer, Served } from './server.ts';

/** Where a name leads to, and how the network is on the way. */
export interface RedisPlace {
  /** The server that the name stands for now; undefined where nobody listens. */
  server(): RedisServer | undefined;
  /** Whether nothing of this process gets there or back. */
  isCut(process: Process | undefined): boolean;
  /** What becomes of the reply to a command that was run for this process: it arrives, or its connection ends first, or falls silent. */
  replyOf(process: Process | undefined, command: string, reply: unknown): 'arrives' | 'reset' | 'silence';
}

type Settle = (error: Error | null, reply: unknown) => void;

interface Sent {
  readonly words: readonly string[];
  readonly settle: Settle;
  /** Its place in a pipeline; undefined for a command of its own. */
  readonly index: number | undefined;
  overdue: Alarm | undefined;
}

const replyError = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });
const notWriteable = (): Error => new Error("Stream isn't writeable and enableOfflineQueue options is false");
/** How long ioredis waits for the other end of a connection that it ends, in milliseconds. */
const DISCONNECT_TIMEOUT_MS = 2_000;

/** A client with the manners of ioredis, as far as the gateway relies on them, on a connection of the simulation. */
export class SimulatedRedis extends EventEmitter implements Served {
  status = 'connecting';
  readonly options = { host: 'redis', port: 6379 };
  readonly process: Process | undefined;
  readonly #sim: Simulation;
  readonly #chance: Chance;
  readonly #place: RedisPlace;
  readonly #given: RedisConnectOptions;
  #server: RedisServer | undefined;
  #attempts = 0;
  #sent: Sent[] = [];
  /** Sent once more on the next connection. */
  #again: Sent[] = [];
  #isWanted = true;
  /** What has been sent arrives in order, and replies come in order. */
  #arrivesAt = 0;
  #repliesAt = 0;
  #blocked: Promise<void> = Promise.resolve();
  #wrote = 0;
  #quiet: Alarm | undefined;
  #number = 0;
  /** Numbers of connections that were ended from here. */
  readonly #left = new Set<number>();
  /** Whether no reply comes on this connection any more. */
  #isSilent = false;
  /** Whether this end of the connection is closed: what is under way may be answered yet, and nothing more leaves. */
  #isEnding = false;

  constructor(sim: Simulation, chance: Chance, place: RedisPlace, given: RedisConnectOptions) {
    super();
    this.#sim = sim;
    this.#chance = chance;
    this.#place = place;
    this.#given = given;
    this.process = currentProcess();
    this.process?.atEnd(() => this.#drop());
    this.#connect();
  }

  disconnect(reconnect = false): void {
    if (reconnect) {
      if (this.#server !== undefined) this.#endSoon();
      return;
    }
    this.#isWanted = false;
    this.#drop();
    this.status = 'end';
    this.#fail([...this.#sent.splice(0), ...this.#again.splice(0)], 'Connection is closed.');
    this.#sim.after(0, this.process, () => {
      this.emit('close');
      this.emit('end');
    });
  }

  /** Closes this end, as ioredis does to connect again: the server answers what it has, and closes the other. */
  #endSoon(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const number = this.#number;
    const ms = this.#place.isCut(this.process) ? DISCONNECT_TIMEOUT_MS : this.#chance.between(0.2, 3);
    this.#sim.after(ms, this.process, () => number === this.#number && this.#lost('Connection is closed.'));
  }

  #drop(): void {
    this.#isEnding = false;
    // What has left on a connection that the server still serves arrives, also where nobody waits for it any more.
    if (this.#server?.serves(this) === true) this.#left.add(this.#number);
    this.#server?.leave(this);
    this.#server = undefined;
    this.#number += 1;
    this.#quiet?.cancel();
    this.#quiet = undefined;
  }

  #connect(): void {
    this.status = 'connecting';
    const number = this.#number;
    const isMine = (): boolean => number === this.#number && this.#isWanted;
    this.#sim.after(this.#chance.between(0.2, 2), this.process, () => {
      if (!isMine()) return;
      const server = this.#place.server();
      if (this.#place.isCut(this.process) || server === undefined || !server.isUp || server.thawsInMs > 0) {
        const wait = server?.isUp === false ? 1 : (this.#given.connectTimeout ?? 1000);
        this.#sim.after(wait, this.process, () => isMine() && this.#lost('connect ECONNREFUSED'));
        return;
      }
      this.#server = server;
      server.accept(this);
      this.#blocked = Promise.resolve();
      // WAIT speaks of the writes of its own connection.
      this.#wrote = 0;
      this.#isSilent = false;
      this.#attempts = 0;
      this.status = 'ready';
      this.emit('connect');
      this.emit('ready');
      for (const sent of this.#again.splice(0)) this.#transmit(sent);
    });
  }

  /** The server has ended the connection: that is heard of a little later, or from its answer to what is sent next. */
  closed(): void {
    const number = this.#number;
    this.#sim.after(this.#chance.between(0.1, 1), this.process, () => {
      if (number === this.#number && !this.#place.isCut(this.process)) this.#lost('read ECONNRESET');
    });
  }

  #lost(reason: string): void {
    this.#drop();
    this.status = 'close';
    this.#attempts += 1;
    if (this.listenerCount('error') > 0) this.emit('error', new Error(reason));
    const retries = this.#given.maxRetriesPerRequest ?? 20;
    // What is sent again has no more time than it had.
    const sent = this.#abortIncompletePipelines(this.#sent.splice(0));
    if (this.#given.autoResendUnfulfilledCommands === false || this.#attempts > retries) {
      this.#fail([...sent, ...this.#again.splice(0)], 'Reached the max retries per request limit');
    } else this.#again.push(...sent);
    this.emit('close');
    const { retryStrategy = this.#pause } = this.#given;
    const wait = retryStrategy?.(this.#attempts);
    this.#sim.after(
      typeof wait === 'number' ? wait : 100,
      this.process,
      () => this.#isWanted && this.#connect(),
    );
  }

  /** How long ioredis waits before it connects again, in milliseconds, unless it is told otherwise. */
  readonly #pause = (times: number): number =>
    Math.min(2 ** (times - 1) * 50, 5_000) + this.#chance.below(200);

  /** The rest of a pipeline whose beginning was answered would speak of another connection: ioredis rejects it. */
  #abortIncompletePipelines(sent: readonly Sent[]): readonly Sent[] {
    let expected = 0;
    const aborted = sent.filter(({ index }) => {
      if (index === undefined || index === 0) expected = 0;
      return index !== undefined && index !== expected++;
    });
    this.#fail(aborted, 'Command aborted due to connection close');
    return sent.filter((one) => !aborted.includes(one));
  }

  #fail(sent: readonly Sent[], reason: string): void {
    for (const { settle, overdue } of sent) {
      overdue?.cancel();
      settle(new Error(reason), undefined);
    }
  }

  message(channel: string, text: string): void {
    this.#reply(() => this.emit('message', channel, text));
  }

  /** Lets something of the server arrive here, in order. */
  #reply(work: () => void): void {
    const number = this.#number;
    this.#repliesAt = Math.max(this.#repliesAt, this.#sim.now + this.#chance.between(0.1, 1.5));
    this.#sim.after(this.#repliesAt - this.#sim.now, this.process, () => {
      if (number !== this.#number || this.#isSilent || this.#place.isCut(this.process)) return;
      work();
      this.#heardOf();
    });
  }

  #send(words: readonly string[], index: number | undefined, settle: Settle): void {
    const isWriteable = this.status === 'ready' && !this.#isEnding;
    if (!isWriteable && !this.#mayWait) {
      settle(notWriteable(), undefined);
      return;
    }
    const sent: Sent = { words, settle, index, overdue: undefined };
    const { commandTimeout } = this.#given;
    if (commandTimeout !== undefined) {
      sent.overdue = this.#sim.after(commandTimeout, this.process, () => {
        this.#again = this.#again.filter((other) => other !== sent);
        this.#sent = this.#sent.filter((other) => other !== sent);
        settle(new Error('Command timed out'), undefined);
      });
    }
    if (isWriteable) this.#transmit(sent);
    else this.#again.push(sent);
  }

  /** Whether a command waits for the next connection where there is none. */
  get #mayWait(): boolean {
    return this.#isWanted && this.#given.enableOfflineQueue !== false;
  }

  /** Puts a command on the connection that stands. */
  #transmit(sent: Sent): void {
    this.#sent.push(sent);
    this.#watch();
    const number = this.#number;
    const server = this.#server;
    this.#arrivesAt = Math.max(this.#arrivesAt, this.#sim.now + this.#chance.between(0.1, 1.5));
    this.#sim.after(this.#arrivesAt - this.#sim.now, undefined, () => {
      if (server === undefined || this.#place.isCut(this.process)) return;
      if (number !== this.#number) {
        if (!this.#left.has(number) || !server.isUp || sent.words[0] === 'SUBSCRIBE') return;
      } else if (!server.serves(this)) {
        this.closed();
        return;
      }
      const arrive = () => this.#arrive(server, number, sent);
      if (server.thawsInMs > 0) this.#sim.after(server.thawsInMs, undefined, arrive);
      else arrive();
    });
  }

  #arrive(server: RedisServer, number: number, sent: Sent): void {
    this.#blocked = this.#blocked.then(async () => {
      if (!server.isUp) return;
      const [command = '', ...args] = sent.words;
      let error: Error | null = null;
      let reply: unknown;
      try {
        reply = await this.#serve(server, command.toUpperCase(), args);
      } catch (thrown) {
        if (!(thrown instanceof LuaError)) throw thrown;
        if (/^attempt|is not known/.test(thrown.message))
          throw new Error(`a script cannot be run by the model: ${thrown.message}`, { cause: thrown });
        error = replyError(thrown.message);
      }
      if (number !== this.#number || this.#isSilent) return;
      const fate = this.#place.replyOf(this.process, command, reply);
      // A connection that nobody watches would wait for ever.
      this.#isSilent = fate === 'silence' && this.#given.socketTimeout !== undefined;
      if (fate === 'arrives') this.#reply(() => this.#heard(sent, error, reply));
      else if (!this.#isSilent) this.closed();
      if (error?.message.startsWith('UNBLOCKED') === true) this.#endsBehindReply(server);
    });
    this.#blocked.catch((error: unknown) => this.#sim.fail(error));
  }

  /** The server closes the connection once its last reply has left. */
  #endsBehindReply(server: RedisServer): void {
    server.leave(this);
    this.#reply(() => this.#lost('read ECONNRESET'));
  }

  async #serve(server: RedisServer, command: string, args: readonly string[]): Promise<unknown> {
    if (command === 'WAIT') return this.#wait(server, Number(args[0]), Number(args[1]));
    if (command === 'SUBSCRIBE') {
      server.subscribe(this, args[0] ?? '');
      return 1;
    }
    if (command === 'UNSUBSCRIBE') {
      server.unsubscribe(this, args[0] ?? '');
      return 0;
    }
    const before = server.offset;
    const reply = server.run(command, args);
    if (server.offset > before) this.#wrote = server.offset;
    return reply;
  }

  /** @throws {LuaError} by a replica, and by a server that becomes one meanwhile, which closes the connection besides */
  #wait(server: RedisServer, count: number, ms: number): Promise<number> {
    const wrote = this.#wrote;
    if (!server.isPrimary) throw new LuaError('ERR WAIT cannot be used with replica instances.');
    return new Promise((resolve, reject) => {
      const stops = [
        server.onAcknowledged(() => server.acknowledged(wrote) >= count && end()),
        server.onDemoted(() => {
          stop();
          reject(new LuaError('UNBLOCKED force unblock from blocking operation, instance state changed'));
        }),
      ];
      const late = this.#sim.after(ms, undefined, () => end());
      const stop = (): void => {
        for (const one of stops) one();
        late.cancel();
      };
      const end = (): void => {
        stop();
        resolve(server.acknowledged(wrote));
      };
      if (server.acknowledged(wrote) >= count) end();
    });
  }

  #heard(sent: Sent, error: Error | null, reply: unknown): void {
    const isDemoted = error?.message.startsWith('READONLY') === true && this.#sent.includes(sent);
    if (!isDemoted) {
      this.#answer(sent, error, reply);
      return;
    }
    // It says so before it runs anything. ioredis connects again, and then sends that once more: at once, on what it has just closed.
    this.#endSoon();
    if (!this.#mayWait) {
      this.#answer(sent, notWriteable(), undefined);
      return;
    }
    this.#sent = this.#sent.filter((other) => other !== sent);
    this.#again.push(sent);
  }

  #answer(sent: Sent, error: Error | null, reply: unknown): void {
    if (!this.#sent.includes(sent)) return;
    this.#sent = this.#sent.filter((other) => other !== sent);
    sent.overdue?.cancel();
    sent.settle(error, reply);
  }

  /** A server that says nothing for too long once it was sent something is left, whether or not that is still waited for. */
  #watch(): void {
    const { socketTimeout } = this.#given;
    if (socketTimeout === undefined || this.#quiet !== undefined) return;
    const number = this.#number;
    this.#quiet = this.#sim.after(socketTimeout, this.process, () => {
      this.#quiet = undefined;
      if (number === this.#number) this.#lost('Socket timeout');
    });
  }

  #heardOf(): void {
    this.#quiet?.cancel();
    this.#quiet = undefined;
    if (this.#sent.length > 0) this.#watch();
  }

  #run(...words: readonly (string | number)[]): Promise<unknown> {
    return this.#runAt(undefined, words);
  }

  #runAt(index: number | undefined, words: readonly (string | number)[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#send(words.map(String), index, (error, reply) =>
        error === null ? resolve(reply) : reject(error),
      );
    });
  }

  call = this.#run.bind(this);
  ping = () => this.#run('PING');
  time = () => this.#run('TIME');
  info = (section: string) => this.#run('INFO', section);
  get = (key: string) => this.#run('GET', key);
  set = (...args: (string | number)[]) => this.#run('SET', ...args);
  del = (key: string) => this.#run('DEL', key);
  hget = (key: string, field: string) => this.#run('HGET', key, field);
  hmget = (...args: string[]) => this.#run('HMGET', ...args);
  xrange = (...args: (string | number)[]) => this.#run('XRANGE', ...args);
  sadd = (...args: string[]) => this.#run('SADD', ...args);
  srem = (...args: string[]) => this.#run('SREM', ...args);
  smembers = (key: string) => this.#run('SMEMBERS', key);
  evalsha = (...args: (string | number)[]) => this.#run('EVALSHA', ...args);
  eval = (...args: (string | number)[]) => this.#run('EVAL', ...args);
  subscribe = (channel: string) => this.#run('SUBSCRIBE', channel);
  unsubscribe = (channel: string) => this.#run('UNSUBSCRIBE', channel);

  pipeline() {
    const commands: (readonly (string | number)[])[] = [];
    const add =
      (name: string) =>
      (...args: (string | number)[]) => {
        commands.push([name, ...args]);
        return pipeline;
      };
    const pipeline = {
      evalsha: add('EVALSHA'),
      eval: add('EVAL'),
      wait: add('WAIT'),
      exec: () =>
        Promise.all(
          commands.map((words, index) =>
            this.#runAt(index, words).then(
              (reply) => [null, reply],
              (error: unknown) => [error, undefined],
            ),
          ),
        ),
    };
    return pipeline;
  }
}
