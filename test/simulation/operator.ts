import { silentLogger } from '../../src/common/logger.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { Broken, Process } from './core.ts';
import { tagIn } from './orders.ts';
import { PutBack } from './put-back.ts';
import { isOfPayments } from './records.ts';
import { Keyspace } from './redis/keyspace.ts';
import type { LeftBefore } from './service.ts';
import type { World } from './world.ts';

/** A time in which no payment may leave. */
interface Hold {
  readonly why: 'stopped' | 'put-back';
  /** From when on it holds for every process, in simulated ms. */
  readonly from: number;
  /** Texts of the payments that the record had as sent then: a process that had is on its way with it. */
  readonly mayLeave: ReadonlySet<string>;
}

/** How long a process takes at most from asking whether payments are stopped to sending one again, in ms. */
const ON_ITS_WAY_MS = 3_000;
/** How long until every process has noticed that the record was put back, in ms: each looks every ten seconds. */
const NOTICED_MS = 12_000;
/** How long a call repeats a payment at most, in ms: as long as an operation lasts without `OPERATION_TIMEOUT_MS`. */
const CALL_MS = 30_000;
/** How long after its copy a record that is to be put back to one in which payments are held is first put back at the latest, in ms. */
const HELD_AFTER_MS = 6_000;
/** How often an operator tries again what has failed, and looks whether something keeps processes from the record, in ms. */
const AGAIN_MS = 1_000;
const LOOK_MS = 250;

/** Somebody with the command line of the gateway: stops payments and lets them go on, and puts their record back. */
export class Operator {
  readonly #world: World;
  #hold: Hold | undefined;
  #isStopping = false;
  /** What was last done, unless the record was put back since. */
  #done: 'stop' | 'resume' | undefined;
  #turn: Promise<void> = Promise.resolve();
  /** When something has last kept a process from its record. */
  #troubledAt = Number.NEGATIVE_INFINITY;
  readonly #putBack: PutBack;
  /** When the record was last put back, up to when every process has noticed that before an operator lets payments go on; undefined after. */
  #mayBeHeldSince: number | undefined;
  /** Puts the record back as the next payment leaves. */
  #putBackAsOneLeaves: (() => void) | undefined;
  /** When a payment last left that had not left before, in ms since the beginning. */
  lastNewAt = Number.NEGATIVE_INFINITY;
  /** When each payment last left, by the description of its transaction, in ms since the beginning. */
  readonly #leftAt = new Map<string, number>();
  /** When each process first sent each payment, by its text, in simulated ms. */
  readonly #firstSentAt = new WeakMap<Process, Map<string, number>>();

  constructor(world: World) {
    this.#world = world;
    this.#putBack = new PutBack(world);
    world.service.onPayment = (process, body, before) => this.#onPayment(process, body, before);
  }

  /** Whether the record was put back, and no operator has let payments go on since every process has noticed: one may hold them still. */
  get mayBeHeld(): boolean {
    return this.#mayBeHeldSince !== undefined;
  }

  /** Stops payments, and tries until they are certain to be. */
  stopPayments(): void {
    this.#isStopping = true;
    this.#inTurn(async () => {
      if (!this.#isStopping || !(await this.#does('stop', (records) => records.holdPayments()))) return;
      if (!this.#isStopping) return;
      this.#done = 'stop';
      this.#hold = {
        why: 'stopped',
        from: this.#world.sim.elapsed,
        mayLeave: this.#world.recordedAsSent(),
      };
      this.#world.sim.say('payments are stopped');
      this.#look();
    });
  }

  /** Lets payments go on, whyever they are held, and tries until they do. */
  resume(): void {
    this.#isStopping = false;
    this.#inTurn(async () => {
      this.#hold = undefined;
      this.#putBack.end();
      const since = this.#mayBeHeldSince;
      const isNoticed = this.#world.sim.elapsed - Math.max(since ?? 0, this.#troubledAt) > NOTICED_MS;
      if (!(await this.#does('resume', (records) => records.resume(true)))) return;
      this.#done = 'resume';
      if (isNoticed && this.#mayBeHeldSince === since) this.#mayBeHeldSince = undefined;
      this.#world.sim.say('payments go on');
    });
  }

  /** Does again what was done last: the command line knows of no replica that was there before it, and a failover may have forgotten it. */
  repeat(): void {
    if (this.#done === 'stop' && this.#isStopping) this.stopPayments();
    if (this.#done === 'resume' && !this.#isStopping) this.resume();
  }

  /**
   * Takes a copy of the record.
   *
   * @param asOneLeaves whether it is put back as soon as a payment leaves, and no later
   * @returns puts it back if that has not been done, and lets payments go on some time after
   */
  copyRecord(asOneLeaves: boolean): () => void {
    const { sim } = this.#world;
    const putBack = this.#copy();
    let isDone = false;
    const once = (): void => {
      if (isDone) return;
      isDone = true;
      if (this.#putBackAsOneLeaves === once) this.#putBackAsOneLeaves = undefined;
      putBack();
      sim.after(NOTICED_MS + 10_000, undefined, () => this.resume());
    };
    if (asOneLeaves) this.#putBackAsOneLeaves = once;
    return once;
  }

  /**
   * Puts the record back, copies it once that was noticed, lets payments go on, and puts that copy back as soon as one has left: a record
   * in which payments were held.
   *
   * @returns does what of this is left
   */
  copyHeldRecord(): () => void {
    const { sim } = this.#world;
    let left = this.copyRecord(true);
    let isOver = false;
    sim.after(HELD_AFTER_MS, undefined, () => {
      left();
      sim.after(NOTICED_MS + AGAIN_MS, undefined, () => {
        if (isOver) return;
        left = this.copyRecord(true);
        this.resume();
      });
    });
    return () => {
      isOver = true;
      left();
    };
  }

  #copy(): () => void {
    const { sim, redis, service } = this.#world;
    const copy = new Keyspace(() => Math.floor(sim.now), redis.primary.keyspace);
    const copiedAt = sim.elapsed;
    return () => {
      const sentBefore = this.#world.recordedAsSent();
      redis.putBack(copy, isOfPayments);
      // What was recorded as sent after the copy may be on its way to the service yet.
      const onTheirWay = new Set([...sentBefore.difference(this.#world.recordedAsSent())].map(tagIn));
      this.#done = undefined;
      this.#mayBeHeldSince = sim.elapsed;
      service.told.clear();
      this.#hold = undefined;
      for (const order of this.#world.orders) {
        // A call that its caller has left may pay after the copy.
        const usedAt = Math.max(order.touchedAt, this.#leftAt.get(order.tag) ?? 0);
        if (usedAt >= copiedAt || onTheirWay.has(order.tag)) order.isForgotten = true;
        else order.isOfBefore = true;
      }
      this.#putBack.begin();
      sim.say(`the record of payments is what it was at ${copiedAt / 1000} s`);
      this.#look();
    };
  }

  #inTurn(work: () => Promise<void>): void {
    this.#turn = this.#turn.then(work).catch((error: unknown) => this.#world.sim.fail(error));
  }

  /** Does it as a process of its own, until it is done. @returns false if nobody wants it any more */
  async #does(what: 'stop' | 'resume', work: (records: MoneyRecords) => Promise<void>): Promise<boolean> {
    const { sim } = this.#world;
    for (;;) {
      const isDone = await this.as(work).then(
        () => true,
        (error: Error) => {
          const { cause } = error;
          if (cause instanceof TypeError) throw cause;
          sim.say(`operator: ${what} failed: ${String(error)} ${String(cause)}`);
          return false;
        },
      );
      if (isDone) return true;
      await new Promise<void>((resolve) => void sim.after(AGAIN_MS, undefined, resolve));
      if (this.#isStopping !== (what === 'stop')) return false;
    }
  }

  /** Opens the record as the command line does, beside gateways that run. */
  async as<Result>(work: (records: MoneyRecords) => Promise<Result>): Promise<Result> {
    const { sim, gateways, isEmbedded } = this.#world;
    const process = new Process(sim, 'operator');
    const options = {
      redisUrl: isEmbedded ? undefined : 'redis://redis.sim:6379',
      dataDir: gateways[0]?.dataDir ?? '',
      logger: silentLogger,
      isCommand: true,
    };
    try {
      return await process.run(async () => {
        const records = await openMoneyRecords(options);
        return work(records).finally(() => records.stop());
      });
    } finally {
      process.kill();
    }
  }

  /** Looks, while payments are held, what keeps processes from the record, and whether they have noticed that it was put back. */
  #look(): void {
    const { sim, redis, gateways } = this.#world;
    if (this.#hold === undefined && this.#putBack.at === undefined && !this.mayBeHeld) return;
    if (gateways.some(({ name, isUp }) => !isUp || redis.isTroubled(name))) this.#troubledAt = sim.elapsed;
    if (this.#hold === undefined) this.#putBack.look();
    if (this.#hold === undefined && this.#putBack.at !== undefined) {
      const since = sim.elapsed - Math.max(this.#putBack.at, this.#troubledAt);
      if (since > NOTICED_MS)
        this.#hold = { why: 'put-back', from: sim.elapsed, mayLeave: this.#world.recordedAsSent() };
    }
    sim.after(LOOK_MS, undefined, () => this.#look());
  }

  /** True if a call of this process that has sent the payment before then may still repeat it. */
  #isRepeated(process: Process, body: string, before: number): boolean {
    const { elapsed } = this.#world.sim;
    const sentAt = this.#firstSentAt.get(process) ?? new Map<string, number>();
    this.#firstSentAt.set(process, sentAt);
    const first = sentAt.get(body) ?? elapsed;
    sentAt.set(body, first);
    return first < before && elapsed - first < CALL_MS;
  }

  /** How many orders have a payment of this text. */
  #alike(body: string): number {
    const tag = tagIn(body);
    return this.#world.orders.find((order) => order.tag === tag)?.alike.length ?? 1;
  }

  #onPayment(process: Process, body: string, { withText, withKey }: LeftBefore): void {
    const { name } = process;
    // Payments without a key may have one text, and each of them leaves once.
    const isAgain = withKey === undefined ? withText >= this.#alike(body) : withKey > 0;
    this.#leftAt.set(tagIn(body), this.#world.sim.elapsed);
    if (withText === 0) {
      this.lastNewAt = this.#world.sim.elapsed;
      this.#putBack.check(process, body);
    }
    const putBack = this.#putBackAsOneLeaves;
    if (putBack !== undefined) this.#world.sim.after(0, undefined, putBack);
    // A call that had noted the payment before the record was put back may have sent it a moment later.
    const isOfBefore = this.#isRepeated(process, body, (this.#putBack.at ?? 0) + ON_ITS_WAY_MS);
    if (this.#hold === undefined || (this.#hold.why === 'put-back' && isOfBefore)) return;
    const { why, from, mayLeave } = this.#hold;
    const { sim, redis } = this.#world;
    const mayBeUnaware =
      redis.isTroubled(name) || sim.elapsed - Math.max(from, this.#troubledAt) < ON_ITS_WAY_MS;
    // Another process may have stored its answer meanwhile. The one that began it does not know that either.
    const isOwn = mayBeUnaware && this.#isRepeated(process, body, from);
    const isOnItsWay = isOwn || (mayLeave.has(body) && (!isAgain || mayBeUnaware || why === 'put-back'));
    if (!isOnItsWay)
      sim.fail(
        new Broken(
          `${name} sends ${isAgain ? 'again ' : ''}${body} though payments are held (${why}) since ${from / 1000} s`,
        ),
      );
  }
}
