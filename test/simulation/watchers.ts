import { typed, watch } from '../../packages/client/src/index.ts';
import { App, type AppWorld } from './apps.ts';
import type { Caller } from './callers.ts';
import type { Chance } from './chance.ts';
import { Broken, type Process } from './core.ts';
import type { Truth } from './truth.ts';

const STATUS = typed<
  { readonly transactionStatus: { readonly transaction: { readonly status: string } } },
  { readonly id: string }
>('subscription ($id: ID!) { transactionStatus(transactionId: $id) { kind transaction { id status } } }');
/** The states of a transaction, in the order in which it takes them. */
const STATES = ['INITIALIZED', 'LIQUIDATED', 'REFUNDED'];

/** What was told of one transaction. */
interface Watched {
  status: string | undefined;
  isOver: boolean;
  /** Whether nobody looks at it any more. */
  isLeft: boolean;
}

/** How long somebody looks at one transaction at most, in milliseconds: for so long it is read again within less than a minute. */
const LOOKED_AT_MS = 300_000;

/** Watches by the real client what becomes of transactions, on a device that forgets what it was told when its app ends. */
export class Watcher extends App {
  readonly #transport: 'socket' | 'fetch';
  readonly #truth: Truth;
  readonly #chance: Chance;
  readonly #watched = new Map<string, Watched>();

  constructor(world: AppWorld, name: string, caller: Caller, transport: 'socket' | 'fetch', truth: Truth) {
    super(world, name, caller);
    this.#transport = transport;
    this.#truth = truth;
    this.#chance = world.sim.chance(name);
  }

  /** Watches one more from now on. */
  add(id: string): void {
    if (this.#watched.has(id)) return;
    const watched: Watched = { status: undefined, isOver: false, isLeft: false };
    this.#watched.set(id, watched);
    const { process } = this;
    process?.run(() => this.#watch(id, watched, process));
  }

  protected live(process: Process): void {
    for (const [id, watched] of this.#watched) {
      watched.status = undefined;
      if (!watched.isOver && !watched.isLeft) this.#watch(id, watched, process);
    }
  }

  #watch(id: string, watched: Watched, process: Process): void {
    const updates = watch(this.source(this.#transport), STATUS, { id }, () => () => {});
    this.world.sim.after(this.#chance.between(0.02, 1) * LOOKED_AT_MS, process, () => {
      watched.isLeft = true;
      updates.close();
    });
    const read = async (): Promise<void> => {
      for await (const { transaction } of updates) this.#hear(id, watched, transaction.status);
      if (watched.isLeft) return;
      watched.isOver = true;
      if (watched.status !== 'LIQUIDATED' && watched.status !== 'REFUNDED')
        this.#broken(id, `is over at ${watched.status}`);
    };
    read().catch((error: unknown) => {
      if (process.isAlive) this.#broken(id, `fails: ${String(error)}`);
    });
  }

  #hear(id: string, watched: Watched, status: string): void {
    const states = this.#truth.statesOf(id);
    if (!states.includes(status))
      this.#broken(id, `is told to be ${status}, and has been ${states.join(', ')}`);
    if (watched.status !== undefined && STATES.indexOf(status) <= STATES.indexOf(watched.status))
      this.#broken(id, `is told to be ${status} after ${watched.status}`);
    watched.status = status;
  }

  /** What it does not know yet, though nothing has gone wrong for long. */
  problems(): readonly string[] {
    return [...this.#watched].flatMap(([id, { status, isLeft }]) => {
      const now = this.#truth.statesOf(id).at(-1);
      return isLeft || status === now
        ? []
        : [`${this.name} was told that ${id} is ${status}, and it is ${now}`];
    });
  }

  #broken(id: string, what: string): void {
    this.world.sim.fail(new Broken(`${this.name} watches ${id}, which ${what}`));
  }
}
