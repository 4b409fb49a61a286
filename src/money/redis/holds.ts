import { clock } from '../../common/clock.ts';
import type { RedisClient } from '../../redis/connection.ts';
import type { DurableWrites } from '../../redis/durable-write.ts';
import { runScript, type Script } from '../../redis/script.ts';
import { type Hold, PaymentsHeldError } from '../record.ts';
import { CLIENTS } from './keys.ts';
import type { RedisMarks } from './marks.ts';
import { CHECK, LOOK, RESUME, STOP, STOP_CLIENT } from './scripts.ts';

/** The clients whose ledger showed that Redis was put back. While there is one, no client's payments are sent. */
const HELD = 'pasarela:money:held';
/** Since when an operator has stopped payments, in ms since the epoch. */
const STOPPED = 'pasarela:money:stopped';

/** The key of a client's ledger, which counts its sent payments. It is in the slot of the client's records. */
export const ledgerOf = (clientId: string): string => `pasarela:money:{${clientId}}:ledger`;

/**
 * Finds out whether Redis was put back, or an operator has stopped payments. While one of these holds, no process sends
 * payments, until an operator lets them go on.
 *
 * A stop is written into the ledger of each client that has paid, so that no further payment of that client is sent. It is
 * also written into {@link STOPPED}, which a process reads before it sends the first payment of a client.
 */
export class RedisHolds {
  readonly #redis: RedisClient;
  readonly #writes: DurableWrites;
  readonly #marks: RedisMarks;
  readonly #isCommand: boolean;
  #isHeld = false;
  #lives = 0;

  /** @param isCommand as `MoneyOptions` has it */
  constructor(redis: RedisClient, writes: DurableWrites, marks: RedisMarks, isCommand = false) {
    this.#redis = redis;
    this.#writes = writes;
    this.#marks = marks;
    this.#isCommand = isCommand;
  }

  /** True if payments were held when that was last read. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Changes with each time that Redis may have been put back. What a process knows to be in Redis may then be gone. */
  get lives(): number {
    return this.#lives;
  }

  /** Redis was connected to again, or was put back. */
  began(): void {
    this.#lives += 1;
  }

  /** Compares the ledgers with the marks of this process. One that cannot be read keeps it from none of the others. */
  async look(): Promise<void> {
    await Promise.allSettled(this.#marks.clients.map((clientId) => this.isPutBack(clientId)));
    await this.held();
  }

  /** Compares a client's ledger with the mark of this process. */
  async isPutBack(clientId: string): Promise<boolean> {
    if ((await this.#check(clientId)) === undefined) return false;
    await this.found(clientId);
    return true;
  }

  /**
   * Records that a client's ledger is behind, for the other processes too, also for those that know nothing of this client.
   * Takes that back if an operator has let payments go on since the ledger was read: nobody else would. A command records nothing.
   */
  async found(clientId: string): Promise<void> {
    if (this.#isCommand) return;
    this.#isHeld = true;
    this.began();
    await this.#redis.sadd(HELD, clientId);
    if ((await this.#check(clientId)) === undefined) await this.#redis.srem(HELD, clientId);
  }

  /**
   * Returns the holds that all processes see now, an operator's first. Rejects when Redis does not answer. That of a command also rejects
   * where it finds none and could not read a ledger, which may be behind.
   */
  async held(): Promise<readonly Hold[]> {
    const [clients, stopped, { behind, unread }] = await Promise.all([
      this.#redis.smembers(HELD),
      this.#redis.get(STOPPED),
      this.#behind(),
    ]);
    const checks = await Promise.all(clients.map((clientId) => this.#check(clientId)));
    const holds: Hold[] = [];
    if (stopped !== null)
      holds.push({ why: 'stopped', since: Number(stopped), missing: 0, copied: undefined });
    if (clients.length > 0) this.began();
    // A ledger may say itself that it was put back, though the set lacks its client.
    const others = [...behind].filter(([clientId]) => !clients.includes(clientId)).map(([, check]) => check);
    const noted = [...checks, ...others.filter(({ isNoted }) => isNoted)];
    const unnoted = others.filter(({ isNoted }) => !isNoted);
    if (noted.length > 0) holds.push(putBack(noted));
    if (unnoted.length > 0) holds.push({ ...putBack(unnoted), isUnnoted: true });
    if (holds.length === 0 && unread !== undefined) throw unread.reason;
    this.#isHeld = holds.length > 0;
    return holds;
  }

  /**
   * What a command finds by the marks of its folder and in the ledgers of all clients that have paid, and does not record; empty for a
   * gateway, which records it. A ledger that cannot be read keeps it from none of the others, and is told as `unread`.
   */
  async #behind(): Promise<Behind> {
    if (!this.#isCommand) return { behind: new Map(), unread: undefined };
    const [paying] = await Promise.allSettled([this.#redis.smembers(CLIENTS)]);
    const clients = new Set([...this.#marks.clients, ...(paying.status === 'fulfilled' ? paying.value : [])]);
    const looks = await Promise.allSettled(
      [...clients].map(async (clientId) => {
        const check = await this.#check(clientId);
        return check === undefined ? [] : [[clientId, check] as const];
      }),
    );
    return {
      behind: new Map(looks.flatMap((look) => (look.status === 'fulfilled' ? look.value : []))),
      unread: [paying, ...looks].find((look) => look.status === 'rejected'),
    };
  }

  /**
   * Stops all payments that it can reach. Rejects if one of them may go on: its client's ledger could not be written, or a
   * failover may forget that they are stopped.
   */
  async stopPayments(): Promise<void> {
    const failures: unknown[] = [];
    const write = (script: Script, key: string, args: readonly number[]): Promise<unknown> =>
      this.#writes.write(this.#redis, script, [key], args).catch((error: unknown) => failures.push(error));
    await write(STOP, STOPPED, [clock.now()]);
    for (const clientId of await this.#redis.smembers(CLIENTS))
      await write(STOP_CLIENT, ledgerOf(clientId), []);
    this.#isHeld = true;
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Lets all payments go on. May be repeated: also clients whose ledgers alone say that they are stopped go on. That of a command changes
   * nothing where it cannot read a ledger, which may be behind.
   *
   * @param isCompared as `MoneyRecords` has it
   * @throws {PaymentsHeldError} as there
   */
  async resume(isCompared: boolean): Promise<void> {
    const [held, paying, { behind, unread }] = await Promise.all([
      this.#redis.smembers(HELD),
      this.#redis.smembers(CLIENTS),
      this.#behind(),
    ]);
    const putBack = new Set([...held, ...behind.keys()]);
    // The operator may not have been told of it: its ledger could not be read then, or is behind since.
    if (putBack.size > 0 && !isCompared) throw new PaymentsHeldError('put-back');
    if (unread !== undefined) throw unread.reason;
    for (const clientId of new Set([...putBack, ...paying])) {
      // The epoch that begins has to be later than the one that the folder of the command knows.
      if (behind.has(clientId)) await this.#compare(CHECK, clientId);
      await runScript(this.#redis, RESUME, [ledgerOf(clientId)], [putBack.has(clientId) ? 1 : 0]);
      await this.#redis.srem(HELD, clientId);
    }
    // Last: as long as a client may be stopped, everybody is told so.
    await this.#redis.del(STOPPED);
    this.#isHeld = false;
  }

  async #check(clientId: string): Promise<Check | undefined> {
    const reply = await this.#compare(this.#isCommand ? LOOK : CHECK, clientId);
    if (!Array.isArray(reply)) return undefined;
    const copied = Number(reply[2]);
    return {
      since: Number(reply[0]),
      missing: Number(reply[1]),
      copied: copied === 0 ? undefined : copied,
      isNoted: reply[3] !== '0',
    };
  }

  #compare(script: Script, clientId: string): Promise<unknown> {
    const { epoch, sent, at } = this.#marks.of(clientId);
    return runScript(this.#redis, script, [ledgerOf(clientId)], [epoch, sent, at]);
  }
}

/** What a command finds in the ledgers of clients. */
interface Behind {
  /** By client, each ledger that is behind, or says itself that it was put back. */
  readonly behind: ReadonlyMap<string, Check>;
  /** Why a ledger, or which clients there are, could not be read. */
  readonly unread: PromiseRejectedResult | undefined;
}

/** What the ledger of a client that was put back says. */
interface Check extends Pick<Hold, 'since' | 'missing' | 'copied'> {
  /** Whether the ledger itself says that payments are held. */
  readonly isNoted: boolean;
}

/** @param checks undefined for a client whose payments go on meanwhile */
function putBack(checks: readonly (Check | undefined)[]): Hold {
  const found = checks.filter((check) => check !== undefined);
  return {
    why: 'put-back',
    since: Math.min(clock.now(), ...found.map(({ since }) => since)),
    missing: found.reduce((sum, { missing }) => sum + missing, 0),
    copied: earliest(checks.map((check) => check?.copied)),
  };
}

/** Undefined if one of them is not known. */
const earliest = (times: readonly (number | undefined)[]): number | undefined =>
  times.reduce((one, other) => (one === undefined || other === undefined ? undefined : Math.min(one, other)));
