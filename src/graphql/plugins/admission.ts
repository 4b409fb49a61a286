import { type ExecutionArgs, GraphQLError, OperationTypeNode } from 'graphql';
import { isPromise, type Plugin } from 'graphql-yoga';
import { clock } from '../../common/clock.ts';
import { FairQueue, SHARE_OF_GROUP } from '../../common/fair-queue.ts';
import { Party, type Requester, type Waiter } from '../../common/party.ts';
import { type Full, noteRefusal } from '../../common/refusals.ts';
import type { Budget } from '../../operation/budget.ts';
import type { Identity } from '../../operation/identity.ts';
import type { Report } from '../../operation/report.ts';
import { preparedOperation } from '../documents/prepared-operation.ts';

/** What this plugin needs of an operation's context. */
interface AdmittedContext {
  /** Whose operation it is: each has its share of what can be under way at once. Over a socket there is no status of HTTP. */
  readonly identity: Pick<
    Identity,
    'requester' | 'credential' | 'isStranger' | 'onceIdentified' | 'isOverSocket'
  >;
  readonly budget: Pick<Budget, 'waiters' | 'deadline'>;
  readonly report: Pick<Report, 'refusedFor' | 'waitedForSeat'>;
}

export interface AdmissionOptions {
  /**
   * How many queries of one caller may be under way: as many as REST calls (`UPSTREAM_CALLS_PER_CALLER`), since more of
   * them would only wait for each other's.
   */
  readonly perCaller: number;
  /** How many queries of one caller may wait, and how many mutations (`OPERATIONS_QUEUE`). */
  readonly queue: number;
  /** Told of how many operations wait, when that changes. */
  readonly onWaiting: (count: number) => void;
  /** Told how long an operation waited that had to, in milliseconds: until it had its seat, was refused, or its callers left. */
  readonly onWaited: (milliseconds: number) => void;
  /** Told of each operation that is refused, whose group it is, and what was full. */
  readonly onRefused: (group: string, full: Full) => void;
}

const MESSAGES: Readonly<Record<Full, string>> = {
  queue: 'Too many operations of this caller are waiting; ask again later.',
  caller:
    'No seat became free in time: this caller has as many operations under way as it may. Ask again later.',
  group:
    'No seat became free in time: the callers of this client, customer or address together have as many operations under way as they may. Ask again later.',
  process:
    'No seat became free in time: all callers together have as many operations under way as they may. Ask again later.',
};

/** Queries and mutations that may be under way at once, of all callers together. */
const UNDER_WAY = 256;
/** Of all callers of one group. */
const PER_GROUP = UNDER_WAY * SHARE_OF_GROUP;
/** Mutations of one caller. Its queries are not in their way, and those that share a key wait for each other anyway. */
const MUTATIONS_PER_CALLER = 64;
/**
 * What an operation needs to have left of its time when it begins, in milliseconds; half of its time where that is less. A
 * payment that begins too late is sent, and nobody hears what has become of it.
 */
const NEEDED_MS = 1_000;
/** What a refused caller is told to wait, in milliseconds. */
const SHORTEST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** Weight of the latest operation in the mean duration of all. */
const SMOOTHING = 0.05;

/**
 * Admits queries and mutations fairly between callers: one that has many under way waits for its own, behind a caller that
 * has none. What waits beyond the queue, or for too long to be served in what is left of its time, is refused as
 * `RATE_LIMITED`, with `retryAfterMs`; over HTTP with status 429.
 */
export function useAdmission(options: AdmissionOptions): Plugin<AdmittedContext> {
  const admission = new Admission(options);
  return {
    onExecute({ args, executeFn, setExecuteFn }) {
      const { contextValue } = args;
      const queue = admission.queueOf(preparedOperation(args)?.type);
      setExecuteFn((args) => admission.enter({ queue, context: contextValue, executeFn, args }));
    },
  };
}

/** An operation that is to be executed, and the queue that it stands in. */
interface Admitted {
  readonly queue: FairQueue;
  readonly context: AdmittedContext;
  readonly executeFn: (args: ExecutionArgs) => unknown;
  readonly args: ExecutionArgs;
}

class Admission {
  readonly #options: AdmissionOptions;
  readonly #queries: FairQueue;
  readonly #mutations: FairQueue;
  /** What waits with a credential that nobody has verified, by that credential: has it stand in the queue of its caller, who is known now. */
  readonly #strangers = new Map<string, Set<() => void>>();
  /** Mean duration of an operation, in milliseconds. */
  #meanMs = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    const onWaiting = (): void => options.onWaiting(this.#queries.waiting + this.#mutations.waiting);
    const all = { total: UNDER_WAY, perGroup: PER_GROUP, onWaiting };
    this.#queries = new FairQueue({ ...all, perCaller: options.perCaller });
    this.#mutations = new FairQueue({ ...all, perCaller: MUTATIONS_PER_CALLER });
  }

  queueOf(type: OperationTypeNode | undefined): FairQueue {
    return type === OperationTypeNode.MUTATION ? this.#mutations : this.#queries;
  }

  /** Executes an operation at once, once there is a seat, or not at all. */
  enter(operation: Admitted): unknown {
    const { queue, context } = operation;
    const { requester } = context.identity;
    if (queue.tryEnter(requester)) return this.#run(operation, requester);
    return queue.waitingOf(requester) < this.#options.queue
      ? this.#wait(operation)
      : this.#refuse(operation, 'queue');
  }

  /** @param requester whose seat it has. */
  #run({ queue, context: { identity }, executeFn, args }: Admitted, requester: Requester): unknown {
    const start = clock.monotonic();
    let holder: Requester | undefined = requester;
    const leave = (): void => {
      if (holder !== undefined) queue.leave(holder);
      holder = undefined;
    };
    // Once its caller is known, it keeps no seat from others who come from its address. What waits there with the same credential goes
    // first, or it would take that seat, and each that follows, beyond what its caller may have.
    const move = (): void => {
      for (const know of [...(this.#strangers.get(identity.credential) ?? [])]) know();
      if (holder === undefined) return;
      queue.move(holder, identity.requester);
      holder = identity.requester;
    };
    if (identity.isStranger) identity.onceIdentified(move);
    let result: unknown;
    try {
      result = executeFn(args);
    } catch (error) {
      leave();
      throw error;
    }
    if (!isPromise(result)) {
      leave();
      return result;
    }
    return result.finally(() => {
      this.#meanMs += SMOOTHING * (clock.monotonic() - start - this.#meanMs);
      leave();
    });
  }

  async #wait(operation: Admitted): Promise<unknown> {
    const { queue, context } = operation;
    const { identity, budget } = context;
    const leftMs = budget.deadline - clock.now();
    const deadline = clock.now() + leftMs - Math.min(NEEDED_MS, leftMs / 2);
    const start = clock.monotonic();
    for (;;) {
      const requester = await this.#enter(operation, deadline);
      if (requester !== undefined && !isSame(requester, identity.requester)) {
        // It has become known by another way. A seat of its address is none of its caller's.
        queue.leave(requester);
        continue;
      }
      const waitedMs = clock.monotonic() - start;
      context.report.waitedForSeat(waitedMs);
      this.#options.onWaited(waitedMs);
      return requester === undefined
        ? this.#refuse(operation, queue.fullFor(identity.requester))
        : this.#run(operation, requester);
    }
  }

  /** Waits for a seat. Returns whose it is; undefined when the wait has ended without. */
  #enter({ queue, context }: Admitted, deadline: number): Promise<Requester | undefined> {
    const { identity, budget } = context;
    if (budget.waiters?.isGone === true) return Promise.resolve(undefined);
    const stand = (): Waiter => ({ requester: identity.requester, urgency: 'operations', deadline });
    const party = new Party();
    let own = party.join(stand());
    // The leaver lasts as long as this operation: once there is a seat, nobody listens to the party any more.
    budget.waiters?.whenGone(() => party.leave(own));
    if (!identity.isStranger) return queue.enter(party);
    const know = (): void => {
      const before = own;
      own = party.join(stand());
      party.leave(before);
    };
    const { credential } = identity;
    const alike = this.#strangers.get(credential) ?? new Set();
    this.#strangers.set(credential, alike.add(know));
    return queue.enter(party).finally(() => {
      alike.delete(know);
      if (alike.size === 0) this.#strangers.delete(credential);
    });
  }

  #refuse({ queue, context }: Admitted, full: Full) {
    const { requester, isOverSocket } = context.identity;
    // One who has left is refused nothing.
    if (context.budget.waiters?.isGone !== true) {
      noteRefusal('operations');
      context.report.refusedFor(full);
      this.#options.onRefused(requester.group, full);
    }
    const atOnce = queue === this.#mutations ? MUTATIONS_PER_CALLER : this.#options.perCaller;
    const turns = Math.ceil((queue.waitingOf(requester) + 1) / atOnce);
    const retryAfterMs = Math.round(
      Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, turns * this.#meanMs)),
    );
    const http = { status: 429, headers: { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) } };
    return {
      errors: [
        new GraphQLError(MESSAGES[full], {
          extensions: { code: 'RATE_LIMITED', retryAfterMs, ...(isOverSocket ? {} : { http }) },
        }),
      ],
    };
  }
}

const isSame = (one: Requester, other: Requester): boolean =>
  one.group === other.group && one.caller === other.caller;
