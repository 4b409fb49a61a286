import { Refused, typed, watch } from '../../packages/client/src/index.ts';
import { App, type AppWorld } from './apps.ts';
import type { Caller } from './callers.ts';
import type { Chance } from './chance.ts';
import { Broken, type Process } from './core.ts';
import type { Truth } from './truth.ts';

/** What of a transaction somebody watches. */
const KINDS = ['transaction', 'receipt'] as const;
type Watchable = (typeof KINDS)[number];

interface Update {
  readonly kind: 'SNAPSHOT' | 'CHANGE';
  readonly status: string;
}

const STATUS = typed<
  {
    readonly transactionStatus: {
      readonly kind: Update['kind'];
      readonly transaction: { readonly status: string };
    };
  },
  { readonly id: string }
>('subscription ($id: ID!) { transactionStatus(transactionId: $id) { kind transaction { id status } } }');

const RECEIPT = typed<
  { readonly cepStatus: { readonly kind: Update['kind']; readonly cep: { readonly rawStatus: string } } },
  { readonly id: string }
>('subscription ($id: ID!) { cepStatus(transactionId: $id) { kind cep { rawStatus } } }');

/** How far along a state is. The service may show the beginning of a receipt in two ways. */
const RANKS: Readonly<Record<string, number>> = {
  ...{ INITIALIZED: 0, LIQUIDATED: 1, REFUNDED: 2 },
  ...{ PENDING: 0, DELAYED: 1, COMPLETED: 2, FAILED: 2 },
};
const rankOf = (status: string | undefined): number => RANKS[status ?? ''] ?? -1;

/** States behind which nothing comes. */
const ENDS: Readonly<Record<Watchable, readonly string[]>> = {
  transaction: ['LIQUIDATED', 'REFUNDED'],
  receipt: ['COMPLETED', 'FAILED'],
};

/** What one watcher was told of one thing. */
interface Watched {
  readonly id: string;
  readonly of: Watchable;
  status: string | undefined;
  isOver: boolean;
  /** Whether nobody looks at it any more. */
  isLeft: boolean;
}

const MINUTE = 60_000;
/**
 * The most time between two readings where no webhook comes, in milliseconds: by how long a thing has been there (docs/graph.md). What is read
 * takes a while.
 */
const READ_EVERY: Readonly<Record<Watchable, readonly (readonly [untilMs: number, waitMs: number])[]>> = {
  transaction: [
    [MINUTE, 4_000],
    [2 * MINUTE, 20_000],
    [5 * MINUTE, 45_000],
    [10 * MINUTE, 90_000],
    [30 * MINUTE, 3 * MINUTE],
    [180 * MINUTE, 5 * MINUTE],
  ],
  receipt: [
    [4.5 * MINUTE, 1.5 * MINUTE],
    [19.5 * MINUTE, 5 * MINUTE],
  ],
};
const READ_AT_LEAST_EVERY_MS = 15 * MINUTE;
const READING_MS = 10_000;

/** How long somebody looks at one thing at most, in milliseconds. */
const LOOKED_AT_MS = 300_000;

/** Watches by the real client what becomes of transactions and their receipts, on a device that forgets what it was told when its app ends. */
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
    const of = this.#truth.statesOf(id, 'receipt').length > 0 ? this.#chance.pick(KINDS) : 'transaction';
    const key = `${of} ${id}`;
    if (this.#watched.has(key)) return;
    const watched: Watched = { id, of, status: undefined, isOver: false, isLeft: false };
    this.#watched.set(key, watched);
    const { process } = this;
    process?.run(() => this.#watch(watched, process));
  }

  protected live(process: Process): void {
    for (const watched of this.#watched.values()) {
      watched.status = undefined;
      if (!watched.isOver && !watched.isLeft) this.#watch(watched, process);
    }
  }

  #watch(watched: Watched, process: Process): void {
    const { id, of } = watched;
    const there = () => () => {};
    const source = this.source(this.#transport);
    const updates: { close(): void } & AsyncIterable<unknown> =
      of === 'transaction' ? watch(source, STATUS, { id }, there) : watch(source, RECEIPT, { id }, there);
    this.world.sim.after(this.#chance.between(0.05, 1) * LOOKED_AT_MS * this.world.pace, process, () => {
      watched.isLeft = true;
      updates.close();
    });
    const read = async (): Promise<void> => {
      for await (const update of updates) this.#hear(watched, statusIn(update));
      if (watched.isLeft) return;
      watched.isOver = true;
      if (!ENDS[of].includes(watched.status ?? '')) this.#broken(watched, `is over at ${watched.status}`);
    };
    read().catch((error: unknown) => {
      if (process.isAlive)
        this.#broken(watched, `fails: ${String(error)}${error instanceof Refused ? ` (${error.code})` : ''}`);
    });
  }

  /** A stream that begins anew tells the state of that moment, which a reading of a moment before may tell as well. */
  #hear(watched: Watched, { kind, status }: Update): void {
    const { id, of } = watched;
    const states = this.#truth.statesOf(id, of);
    if (!states.includes(status))
      this.#broken(watched, `is told to be ${status}, and has been ${states.join(', ')}`);
    if (kind === 'CHANGE' && rankOf(status) <= rankOf(watched.status))
      this.#broken(watched, `is told to be ${status} after ${watched.status}`);
    watched.status = status;
    this.world.sim.say(`${this.name} hears that ${of} ${id.slice(0, 8)} is ${status}`);
  }

  /** What it does not know yet, though the service has had it for as long as it may take to be told. */
  problems(): readonly string[] {
    return [...this.#watched.values()].flatMap(({ id, of, status, isLeft, isOver }) => {
      if (isLeft || isOver) return [];
      const age = this.#truth.ageOf(id);
      const [, waitMs] = READ_EVERY[of].find(([untilMs]) => age < untilMs) ?? [0, READ_AT_LEAST_EVERY_MS];
      const due = this.#truth.statesOf(id, of, waitMs + READING_MS).at(-1);
      return rankOf(status) >= rankOf(due)
        ? []
        : [`${this.name} was told that the ${of} ${id} is ${status}, and it has been ${due} for long`];
    });
  }

  #broken({ id, of }: Watched, what: string): void {
    this.world.sim.fail(new Broken(`${this.name} watches the ${of} ${id}, which ${what}`));
  }
}

/** The state in an update of either subscription. */
function statusIn(update: unknown): Update {
  const { kind, transaction, cep } = update as {
    readonly kind: Update['kind'];
    readonly transaction?: { readonly status: string };
    readonly cep?: { readonly rawStatus: string };
  };
  return { kind, status: transaction?.status ?? cep?.rawStatus ?? '' };
}
