import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { Chance } from './chance.ts';

/** Real timers, taken before anything else could be put in their place. */
const { setImmediate: turn } = globalThis;

/** Something that is to happen. */
export interface Alarm {
  cancel(): void;
}

interface Entry extends Alarm {
  readonly at: number;
  readonly number: number;
  run: (() => void) | undefined;
}

/** A simulated process: what it has begun goes on as long as it lives, and does nothing after. */
export class Process {
  readonly name: string;
  readonly sim: Simulation;
  /** By how much its clock is wrong, in milliseconds. */
  skewMs: number;
  /** What it runs on: processes of one device share its Web Locks. */
  readonly device: string;
  isAlive = true;
  readonly #atEnd: (() => void)[] = [];

  constructor(sim: Simulation, name: string, skewMs = 0, device = name) {
    this.sim = sim;
    this.name = name;
    this.skewMs = skewMs;
    this.device = device;
  }

  /** Runs something as this process. */
  run<Result>(work: () => Result): Result {
    return processes.run(this, work);
  }

  /** What the operating system does once the process has ended. */
  atEnd(work: () => void): void {
    if (this.isAlive) this.#atEnd.push(work);
    else work();
  }

  kill(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    for (const work of this.#atEnd.splice(0)) work();
  }
}

const processes = new AsyncLocalStorage<Process>();

/** The process that runs now. */
export const currentProcess = (): Process | undefined => processes.getStore();

/** A rule of the simulation was broken, or the simulated code threw. */
export class Broken extends Error {}

/** More than this at one moment is an endless loop. */
const MOST_AT_ONCE = 20_000;
/** How many steps one turn of the event loop takes: Node runs every promise and every tick that is due between two of its immediates. */
const STEPS_OF_A_TURN = 64;
/** How many turns of the event loop the ends of connections and of files take, some times over. */
const TURNS_OF_AN_END = 20;
/** The beginning of simulated time. */
const EPOCH = Date.UTC(2027, 0, 4, 12);

/** Time as one queue. What is due at one time happens in the order in which it was asked for; the seed decides at the ports when that is. */
export class Simulation {
  readonly seed: string;
  #now = EPOCH;
  #entries: Entry[] = [];
  #number = 0;
  readonly #hash = createHash('sha256');
  /** Of all times at which something happened, and of how much was asked for by then. */
  #trace = 0;
  readonly #lines: string[] = [];
  steps = 0;
  #sameTime = 0;
  failure: unknown;
  /** Whether every line is kept. */
  readonly isLong: boolean;

  constructor(seed: string, isLong = false) {
    this.seed = seed;
    this.isLong = isLong;
  }

  get now(): number {
    return this.#now;
  }

  /** Milliseconds since the beginning. */
  get elapsed(): number {
    return this.#now - EPOCH;
  }

  /** Chance of its own for each purpose, so that one more draw here changes nothing there. */
  chance(purpose: string): Chance {
    return new Chance(`${this.seed}:${purpose}`);
  }

  /** Notes what happens, in words. */
  say(text: string): void {
    const line = `${(this.elapsed / 1000).toFixed(3).padStart(9)} ${text}`;
    this.#hash.update(line);
    this.#lines.push(line);
    if (!this.isLong && this.#lines.length > 400) this.#lines.splice(0, 200);
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Of all that has been said, and of each step: two runs of one seed have the same. */
  digest(): string {
    return this.#hash.copy().update(`${this.#trace}`).digest('hex').slice(0, 16);
  }

  fail(reason: unknown): void {
    this.failure ??= reason;
  }

  /** Lets something happen after so many milliseconds, as the process given; never once that has ended. */
  after(ms: number, process: Process | undefined, work: () => void): Alarm {
    const entry: Entry = {
      at: this.#now + Math.max(0, Number.isFinite(ms) ? ms : 2 ** 31),
      number: this.#number,
      run: process === undefined ? work : () => process.isAlive && process.run(work),
      cancel: () => {
        entry.run = undefined;
      },
    };
    this.#number += 1;
    if (process?.isAlive !== false) this.#push(entry);
    return entry;
  }

  /** Lets time run until a moment, or until nothing is left to happen, or something is broken. */
  async runUntil(elapsed: number, isOver: () => boolean = () => false): Promise<void> {
    const end = EPOCH + elapsed;
    let goesOn = true;
    await settled();
    while (goesOn) {
      await new Promise<void>((resolve) => {
        for (let left = STEPS_OF_A_TURN; left > 0; left -= 1)
          turn(() => {
            // What the machine does beside ends in a turn of its own.
            if (goesOn && besides === 0) goesOn = this.#step(end, isOver);
            if (left === 1) resolve();
          });
      });
      while (besides > 0) await settled();
    }
  }

  /** Lets the next thing happen that is due by then. @returns whether there was one */
  #step(end: number, isOver: () => boolean): boolean {
    if (this.failure !== undefined || isOver()) return false;
    for (;;) {
      const [next] = this.#entries;
      if (next === undefined || next.at > end) {
        this.#now = Math.max(this.#now, end);
        return false;
      }
      this.#pop();
      const { run } = next;
      if (run === undefined) continue;
      this.#sameTime = next.at > this.#now ? 0 : this.#sameTime + 1;
      if (this.#sameTime > MOST_AT_ONCE)
        this.fail(new Broken('time stands still: something is asked for again and again at once'));
      this.#now = Math.max(this.#now, next.at);
      this.steps += 1;
      this.#trace = Math.imul(this.#trace ^ Math.trunc(this.elapsed * 1e6) ^ this.#number, 0x01000193);
      try {
        run();
      } catch (error) {
        this.fail(error);
      }
      return true;
    }
  }

  /** Lets what has been ended come to its end, and forgets what was to happen: nothing of this run reaches into the next. */
  async end(): Promise<void> {
    for (let turns = 0; turns < TURNS_OF_AN_END; turns += 1) await settled();
    this.#entries = [];
  }

  #push(entry: Entry): void {
    const heap = this.#entries;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, entry)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#entries;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) child += 1;
      const below = heap[child];
      if (below === undefined || isBefore(last, below)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (one: Entry, other: Entry): boolean =>
  one.at !== other.at ? one.at < other.at : one.number < other.number;

/** Work that the machine does beside: no time passes meanwhile, and one piece follows the other. */
let besides = 0;
let last: Promise<unknown> = Promise.resolve();

/** Runs what the machine does beside this thread, as its cryptography, so that its end comes at one place of the run. */
export function beside<Result>(work: () => Promise<Result>): Promise<Result> {
  besides += 1;
  const done = last.then(work, work).finally(() => {
    besides -= 1;
  });
  last = done.catch(() => undefined);
  return done;
}

/** Resolves once every promise that can settle by itself has, and every callback of this turn has run. */
async function settled(): Promise<void> {
  do await new Promise<void>((resolve) => turn(resolve));
  while (besides > 0);
}
