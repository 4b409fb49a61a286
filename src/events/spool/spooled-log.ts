import { clock, type Timer } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import { unplaced } from '../entry.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { Appended, EventLogHealth, NewEvent } from '../log.ts';
import type { EventMetrics } from '../metrics.ts';
import type { Quarantine } from '../quarantine.ts';
import type { EventNames } from '../search.ts';
import { WrappedLog } from '../wrapped-log.ts';
import { EarlierSpools } from './earlier-spools.ts';
import { Emptying } from './emptying.ts';
import type { RemoteLog } from './remote-log.ts';
import type { Spool } from './spool.ts';
import { SpoolDisk } from './spool-disk.ts';
import { SpoolDrain } from './spool-drain.ts';
import { openAbandoned, openSpool } from './spool-files.ts';

export interface SpooledLogOptions {
  readonly log: RemoteLog;
  /** Folder of the spool. */
  readonly dataDir: string;
  readonly quarantine: Quarantine;
  readonly logger: Logger;
  readonly metrics: EventMetrics;
  readonly names: EventNames;
}

/** Pauses between attempts to drain, in milliseconds: the first, then doubling up to the longest. */
const RETRY_MS = { first: 25, longest: 400 } as const;
const ADOPT_EVERY_MS = 10_000;

/**
 * A log that takes events while it is away. It spools an event that may be spooled, while the log is away or events of the
 * same client wait. The spool drains through the log's own append, so that a message that is stored twice is one event.
 */
export class SpooledLog extends WrappedLog<RemoteLog> {
  readonly #options: SpooledLogOptions;
  readonly #stopping = new AbortController();
  readonly #timer: Timer;
  /** Its own spool first, then those that it has taken over from processes that ended. */
  #spools: Spool[] = [];
  #own: Spool | undefined;
  /** Why files of the folder cannot be drained, by their names. */
  #unreadable: ReadonlyMap<string, string> = new Map();
  /** Paths of spools that turned out to be damaged. No event is added to them any more. */
  readonly #damaged = new Set<string>();
  #draining: Promise<void> | undefined;
  readonly #drains: SpoolDrain;
  readonly #emptying = new Emptying();
  readonly #disk: SpoolDisk;
  readonly #earlier: EarlierSpools;
  #isEarlierTold = false;

  constructor(options: SpooledLogOptions) {
    super(options.log);
    this.#options = options;
    this.#disk = new SpoolDisk(options);
    this.#drains = new SpoolDrain({
      ...options,
      stopping: this.#stopping.signal,
      released: () => {
        options.metrics.waiting(this.#waiting);
        this.#emptying.look();
      },
      damaged: () => this.#noteDamage(),
    });
    this.#earlier = new EarlierSpools(options.dataDir, () => this.#tellOfEarlier());
    this.#ownSpool();
    this.#adopt();
    this.#timer = clock.setInterval(() => this.#adopt(), ADOPT_EVERY_MS);
    this.#timer.unref();
  }

  override async append(clientId: string, event: NewEvent): Promise<Appended> {
    if (!event.spoolable) return this.log.append(clientId, event);
    if (this.#own?.has(clientId) === true) return this.#spool(clientId, event);
    try {
      return await this.log.append(clientId, event);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      return this.#spool(clientId, event);
    }
  }

  override async recall(
    clientId: string,
    event: Pick<NewEvent, 'type' | 'identity' | 'contents'>,
  ): Promise<Appended | undefined> {
    for (const spool of this.#spools) {
      const known = spool.find(clientId, event);
      if (known !== undefined) return known;
    }
    if (this.#waits(clientId)) await this.#emptying.wait(() => !this.#waits(clientId), this.#drain());
    if (this.#waits(clientId)) throw new StoreUnavailableError('Events of this client wait in the spool.');
    return this.log.recall(clientId, event);
  }

  override async health(): Promise<EventLogHealth> {
    const { writable: logWritable, reasons = [], ...health } = await this.log.health();
    if (!logWritable || this.#disk.isDue) await this.#lookAtDisk();
    const { problem } = this.#disk;
    const unreadableSpools = [...this.#unreadable.keys()];
    return {
      ...health,
      writable: logWritable || (this.#own !== undefined && problem === undefined),
      spooled: this.#waiting,
      ...(problem !== undefined && { spoolProblem: problem }),
      ...(reasons.length > 0 && { reasons }),
      ...(unreadableSpools.length > 0 && { unreadableSpools }),
    };
  }

  override async stop(withinMs?: number): Promise<void> {
    clock.clearInterval(this.#timer);
    this.#stopping.abort();
    await this.log.stop(withinMs);
    await this.#draining;
    const spooled = this.#waiting;
    if (spooled > 0) this.#options.logger.warn({ spooled }, 'events stay in the spool for the next process');
    for (const spool of this.#spools.splice(0)) spool.close();
    this.#earlier.stop();
    this.#options.quarantine.close();
  }

  async #spool(clientId: string, event: NewEvent): Promise<Appended> {
    const { metrics, names } = this.#options;
    const appended = await this.#add(clientId, { ...event, names: names(unplaced(event)) });
    if (appended.duplicate) metrics.duplicate(event.type, appended.conflict);
    else metrics.spooled(event.type);
    metrics.waiting(this.#waiting);
    void this.#drain();
    return appended;
  }

  /** Adds an event to its own spool; where that turns out to be damaged, to the next one. */
  async #add(clientId: string, event: NewEvent): Promise<Appended> {
    const spool = this.#ownSpool();
    if (spool === undefined)
      throw new StoreUnavailableError('Neither the event log nor the spool can be written.');
    try {
      return await spool.add(clientId, event);
    } catch (error) {
      if (spool.damage === undefined) throw error;
      this.#noteDamage();
      return this.#add(clientId, event);
    }
  }

  get #waiting(): number {
    return this.#spools.reduce((sum, { size }) => sum + size, 0);
  }

  /** Whether events of this client wait that can be read. */
  #waits(clientId: string): boolean {
    return this.#spools.some((spool) => spool.has(clientId));
  }

  /** Returns its own spool, and opens it if that failed before. */
  #ownSpool(): Spool | undefined {
    if (this.#own !== undefined || this.#stopping.signal.aborted) return this.#own;
    try {
      this.#own = openSpool(this.#options.dataDir, this.#damaged);
      this.#spools.unshift(this.#own);
      this.#disk.note(undefined);
    } catch (error) {
      this.#disk.note(error);
    }
    return this.#own;
  }

  /** Finds out whether its own spool takes events; where that turns out to be damaged, whether the next one does. */
  async #lookAtDisk(): Promise<void> {
    const { signal } = this.#stopping;
    const spool = this.#ownSpool();
    if (spool === undefined || signal.aborted) return;
    await this.#disk.look(spool, signal);
    this.#noteDamage();
    if (this.#own !== spool) await this.#lookAtDisk();
  }

  /** Takes over the spools of processes that have ended. */
  #adopt(): void {
    this.#retryDamaged();
    try {
      const own = this.#spools.map(({ path }) => path);
      const earlier = this.#earlier.free();
      const { abandoned, unreadable } = openAbandoned(this.#options.dataDir, own, earlier);
      this.#spools.push(...abandoned);
      // A damaged one that is tried again stays named until it is empty.
      const tried = [...this.#unreadable].filter(([name]) =>
        this.#spools.some((spool) => spool.name === name && this.#damaged.has(spool.path)),
      );
      const found = unreadable.map(({ name, reason }) => [name, reason] as const);
      this.#nameUnreadable(new Map([...tried, ...found]));
    } catch (error) {
      this.#options.logger.error({ error: String(error) }, 'the folder of the spools cannot be read');
    }
    this.#options.metrics.waiting(this.#waiting);
    if (this.#disk.isDue) void this.#lookAtDisk();
    void this.#tidy();
    void this.#drain();
  }

  /** Deletes what a full disk has kept in the spools although the log has it. */
  async #tidy(): Promise<void> {
    await Promise.all(this.#spools.map((spool) => spool.tidy()));
    this.#noteDamage();
    if (this.#draining === undefined) this.#releaseAdopted();
  }

  #tellOfEarlier(): void {
    if (this.#isEarlierTold) return;
    this.#isEarlierTold = true;
    this.#options.logger.info({}, 'an earlier version runs on this folder: its spools are left to it');
  }

  /** Logs each file once, and again when the reason changes. */
  #nameUnreadable(unreadable: ReadonlyMap<string, string>): void {
    for (const [spool, error] of unreadable) {
      if (this.#unreadable.get(spool) === error) continue;
      this.#options.logger.error({ spool, error }, 'a spool cannot be read in full, events may reach nobody');
    }
    this.#unreadable = unreadable;
    this.#options.metrics.unreadableSpools(unreadable.size);
  }

  /** Names spools that have turned out to be damaged, and adds no more to them. They stay open: what is in them has got 201. */
  #noteDamage(): void {
    for (const spool of this.#spools) {
      if (spool.damage === undefined) continue;
      if (this.#own === spool) this.#own = undefined;
      this.#damaged.add(spool.path);
      if (this.#unreadable.has(spool.name)) continue;
      this.#nameUnreadable(new Map([...this.#unreadable, [spool.name, String(spool.damage)]]));
    }
  }

  /** Has damaged spools tried again. One that somebody has taken away is closed, once no pass is under way. */
  #retryDamaged(): void {
    for (const spool of this.#spools.filter(({ damage }) => damage !== undefined)) {
      if (spool.isInPlace) spool.retry();
      else if (this.#draining === undefined) {
        this.#spools = this.#spools.filter((other) => other !== spool);
        spool.close();
      }
    }
  }

  /** Moves waiting events into the log until none waits. Only one drain runs at a time; it never rejects. */
  #drain(): Promise<void> {
    const idle = this.#stopping.signal.aborted || this.#spools.every((spool) => spool.size === 0);
    if (idle) return Promise.resolve();
    this.#draining ??= this.#drainAll();
    return this.#draining;
  }

  async #drainAll(): Promise<void> {
    const { signal } = this.#stopping;
    let delay: number = RETRY_MS.first;
    try {
      while (!signal.aborted && this.#spools.some((spool) => spool.size > 0)) {
        const moved = await Promise.all(this.#spools.map((spool) => this.#drainSpool(spool)));
        if (moved.every(Boolean)) {
          delay = RETRY_MS.first;
        } else {
          await clock.sleep(delay, { signal, ref: false });
          delay = Math.min(delay * 2, RETRY_MS.longest);
        }
      }
      this.#drains.tell();
      this.#releaseAdopted();
    } catch {
      // The pause was aborted: the log is being stopped.
    } finally {
      // Runs in the same turn in which nothing was found waiting. An event that is spooled later starts a new drain.
      this.#draining = undefined;
    }
  }

  /** Makes one pass, as `pass` does. Never rejects, so that other spools drain. */
  async #drainSpool(spool: Spool): Promise<boolean> {
    try {
      return await this.#drains.pass(spool);
    } catch (error) {
      this.#options.logger.error(
        { spool: spool.name, error: String(error) },
        'the spool could not be drained',
      );
      return false;
    }
  }

  #releaseAdopted(): void {
    const isDone = (spool: Spool): boolean =>
      spool !== this.#own && spool.size === 0 && !spool.isUntidy && spool.damage === undefined;
    for (const spool of this.#spools.filter(isDone)) spool.leave();
    this.#spools = this.#spools.filter((spool) => !isDone(spool));
  }
}
