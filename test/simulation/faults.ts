import type { Chance } from './chance.ts';
import type { Simulation } from './core.ts';

/** A fault of one moment: what it does, and how it ends. */
export interface Fault {
  readonly kind: string;
  /** How likely it is, beside others, in a run that knows it. */
  readonly weight: number;
  /** Lets it strike. @returns in words what it did, and ends it; undefined where there was nothing to strike. */
  strike(chance: Chance): { readonly words: string; readonly ms: number; end(): void } | undefined;
}

/** Counts all faults of a run, and stops them after so many: so the smallest number is found that still fails. */
export class Nemesis {
  readonly #sim: Simulation;
  readonly #most: number;
  readonly #chance: Chance;
  readonly counts: Record<string, number> = {};
  struck = 0;
  #isOver = false;
  readonly #open = new Set<() => void>();

  constructor(sim: Simulation, most: number) {
    this.#sim = sim;
    this.#most = most;
    this.#chance = sim.chance('nemesis');
  }

  /** Whether one more fault may strike; it is counted. */
  strikes(kind: string, words: string): boolean {
    if (this.#isOver || this.struck >= this.#most) return false;
    this.struck += 1;
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    this.#sim.say(`FAULT ${this.struck}: ${kind} ${words}`);
    return true;
  }

  /** Lets faults strike until `stop`, every so many milliseconds. */
  begin(faults: readonly Fault[], everyMs: number): void {
    if (faults.length === 0) return;
    const next = (): void => {
      this.#sim.after(this.#chance.between(0.2, 1.8) * everyMs, undefined, () => {
        if (this.#isOver) return;
        const fault = this.#drawn(faults);
        if (this.struck < this.#most) this.#strike(fault);
        next();
      });
    };
    next();
  }

  #strike(fault: Fault): void {
    const struck = fault.strike(this.#chance);
    if (struck === undefined) return;
    this.strikes(fault.kind, struck.words);
    const end = (): void => {
      if (!this.#open.delete(end)) return;
      this.#sim.say(`over: ${fault.kind} ${struck.words}`);
      struck.end();
    };
    this.#open.add(end);
    this.#sim.after(struck.ms, undefined, end);
  }

  #drawn(faults: readonly Fault[]): Fault {
    let left = this.#chance.number() * faults.reduce((sum, { weight }) => sum + weight, 0);
    for (const fault of faults) {
      left -= fault.weight;
      if (left < 0) return fault;
    }
    return this.#chance.pick(faults);
  }

  /** From now on nothing goes wrong any more. */
  stop(): void {
    this.#isOver = true;
    for (const end of [...this.#open]) end();
  }
}
