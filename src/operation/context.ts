import type { Turns, Urgency } from '../common/turns.ts';
import { Budget, type BudgetOptions } from './budget.ts';
import { Calls, type CallsOptions } from './calls.ts';
import { Identity, type IdentityOptions } from './identity.ts';
import type { Incoming } from './incoming.ts';
import { Reads, type ReadsOptions } from './reads.ts';
import { Report } from './report.ts';
import type { Services } from './services.ts';

/** What one GraphQL operation carries. A subscription has one context, whose session is replaced for every event. */
export interface Context {
  readonly requestId: string;
  /** Who is calling. */
  readonly identity: Identity;
  /** What the caller may read, and what the operation has read. */
  readonly reads: Reads;
  /** What the operation is allowed to cost. */
  readonly budget: Budget;
  /** What is reported of it. */
  readonly report: Report;
  /** What all operations have in common. */
  readonly services: Services;
  /** The cursor that a stream continues from, whatever its `after` says: what the client itself saw last. */
  readonly lastEventId: string | undefined;
  /** Whether a stream begins with what comes, whatever its `after` says. */
  readonly startsNow: boolean;
}

export interface ContextOptions extends IdentityOptions, ReadsOptions, BudgetOptions, CallsOptions {
  readonly services: Services;
  /** When a batch of work begins, of all callers. */
  readonly turns: Pick<Turns, 'turn'>;
}

/** @param urgency how pressing it is to go on with each answer of the REST service. */
export type ContextFactory = (incoming: Incoming, urgency?: Urgency) => Context;

/** Makes the contexts of a server's operations. */
export const createContextFactory =
  (options: ContextOptions): ContextFactory =>
  (incoming, urgency = 'operations') => {
    const { requestId, lastEventId, startsNow = false } = incoming;
    const budget = new Budget(options, incoming, () => options.turns.turn(urgency, identity.turnKey));
    const report = new Report();
    const calls = new Calls(options, requestId, urgency, budget, report);
    const identity = new Identity(options, incoming, urgency, budget, calls);
    const reads = new Reads(options, identity, budget, report, calls);
    return { requestId, lastEventId, startsNow, services: options.services, identity, reads, budget, report };
  };
