import type { Agent } from 'undici';
import type { Stage } from './stage.ts';

/** What users have seen since the numbers were taken last. */
export interface Seen {
  credits: number;
  repeated: number;
  late: number;
  gaps: number;
  reconnections: number;
  failedReconnections: number;
  /** By how much a timer of the phones' processes was late at most: so long a phone could do nothing. */
  phonesLateMs: number;
  paymentsDone: number;
  /** Attempts that were refused, such as while the record cannot be kept, and were repeated. */
  paymentsRefused: number;
  /** Attempts that had no answer, or one of a proxy without a gateway, and were repeated. */
  paymentsUnanswered: number;
  paymentsUnknown: number;
  queriesFailed: number;
  /** Of payments and queries that were answered with data; each is a trace. */
  readonly traces: string[];
  /** How many attempts failed for each reason: who tried, through which proxy, and what it was told. */
  readonly whys: Map<string, number>;
  readonly queryMs: number[];
}

const nothing = (): Seen => ({
  credits: 0,
  repeated: 0,
  late: 0,
  gaps: 0,
  reconnections: 0,
  failedReconnections: 0,
  phonesLateMs: 0,
  paymentsDone: 0,
  paymentsRefused: 0,
  paymentsUnanswered: 0,
  paymentsUnknown: 0,
  queriesFailed: 0,
  traces: [],
  whys: new Map(),
  queryMs: [],
});

/** Counts an attempt that failed for a reason. */
export function noteWhy({ whys }: Seen, why: string): void {
  whys.set(why, (whys.get(why) ?? 0) + 1);
}

/** What all that goes on in the night writes down. */
export interface Tally {
  /** Since it was taken last. */
  seen: Seen;
  /** Credits that were acknowledged and have not reached their phone: when, in ms since the epoch, by transaction. */
  readonly acknowledged: Map<string, number>;
  /** Transactions whose credit has reached a phone. */
  readonly arrived: Set<string>;
  /** Credits and payments that were begun and have not come to their end. */
  open: number;
  /** Whether no credit and no payment is begun for now. */
  isHeld: boolean;
}

export const newTally = (): Tally => ({
  seen: nothing(),
  acknowledged: new Map(),
  arrived: new Set(),
  open: 0,
  isHeld: false,
});

/** What was seen since it was asked last. */
export function takeSeen(tally: Tally): Seen {
  const taken = tally.seen;
  tally.seen = nothing();
  return taken;
}

/** What the parts of the traffic share. */
export interface Night {
  readonly stage: Stage;
  /** Trusts the certificates of both proxies. */
  readonly agent: Agent;
  readonly tally: Tally;
  /** Aborted once the traffic is to end. */
  readonly ended: AbortSignal;
}
