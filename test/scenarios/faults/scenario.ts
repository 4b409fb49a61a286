import { type Fault, NAMED_FAULTS } from '../../../packages/sandbox/src/faults.ts';
import type { MoneyMutation } from '../../../src/money/intent.ts';
import { randomFrom } from '../../helpers/random.ts';
import { serviceError } from '../../money/upstream.ts';
import { MUTATIONS } from './payments.ts';

/** A step of the record of payments; and `dispatch`, when the bytes of the payment have left the process. */
type Step = 'claim' | 'markSent' | 'dispatch' | 'renew' | 'answer' | 'release';

/** Where the process ends itself with SIGKILL: at a step of this run's own record. */
export interface Kill {
  readonly step: Step;
  readonly when: 'before' | 'after';
  /** How many such steps pass unharmed. */
  readonly skip: number;
}

/** One call of the app. */
export interface CallPlan {
  readonly transport: 'http' | 'websocket';
  /** How many of the same call leave at once. */
  readonly times: 1 | 2;
  /** After how many ms the app hangs up; undefined when it waits for the answer. */
  readonly hangsUpAfterMs: number | undefined;
}

/** One intent to pay, and what befalls it. */
export interface Run {
  readonly mutation: MoneyMutation;
  /** Whether the upstream's rules, or the gateway's, refuse it even where nothing fails. */
  readonly refusable: boolean;
  /** The faults of its POSTs, one each, in order; then the upstream is healthy. */
  readonly faults: readonly Fault[];
  /** Likewise for the reads of the credit that a refund returns. */
  readonly readFaults: readonly Fault[];
  readonly kill: Kill | undefined;
  /** The calls of the app, in order; from then on it calls over HTTP and waits. */
  readonly calls: readonly CallPlan[];
}

/** The REST call of the gateway gives up after so many ms. */
export const UPSTREAM_TIMEOUT_MS = 400;
const SHORT_DELAY_MS = 100;
/** The movement is made when the gateway has already given up waiting. */
const LONG_DELAY_MS = 600;

/** A refusal in the service's own words. */
const refused = (status: number): Fault => ({ status, body: JSON.parse(serviceError(status)) });

/**
 * Each kind of fault, and each kind of status. Refusals without the service's own words come before the request is performed and after:
 * they are those of somebody on the way.
 */
const KINDS: readonly Fault[] = [
  { delayMs: SHORT_DELAY_MS },
  { delayMs: LONG_DELAY_MS },
  ...NAMED_FAULTS,
  { status: 500 },
  { status: 502, commit: true, body: '<html>Bad Gateway</html>' },
  { status: 503 },
  { status: 504, commit: true },
  { status: 408, commit: true },
  { status: 425 },
  { status: 302, commit: true },
  { status: 200, commit: true, body: { ok: true } },
  { status: 401, commit: true },
  { status: 403, body: '<html>Blocked</html>' },
  { status: 429, commit: true },
  { status: 400, commit: true, body: { code: 9, message: 'API Error' } },
  { status: 404 },
  { status: 409, body: 'in progress' },
  { status: 422, commit: true },
  ...[400, 401, 429].map(refused),
];

/** Each kind; and none, as often as it takes for some runs to go well. An odd number in all, which `drawRun` relies on. */
const FAULTS: readonly (Fault | undefined)[] = [
  ...Array.from({ length: KINDS.length % 2 === 1 ? 6 : 7 }, () => undefined),
  ...KINDS,
];

/** The service contradicts none of its own answers: what it says of a repeat is what it said first. */
const isRefused = (fault: Fault | undefined): boolean =>
  typeof fault === 'object' &&
  'status' in fault &&
  typeof fault.body === 'object' &&
  'details' in Object(fault.body);

const LATER = FAULTS.filter((fault) => !isRefused(fault));

const READ_FAULTS: readonly Fault[] = [
  { status: 503 },
  { status: 500 },
  { status: 404 },
  { delayMs: SHORT_DELAY_MS },
  'reset-before',
  'truncate',
  'hang',
  'garbage',
];

const KILLS: readonly Omit<Kill, 'skip'>[] = [
  { step: 'claim', when: 'before' },
  { step: 'markSent', when: 'after' },
  { step: 'dispatch', when: 'after' },
  { step: 'answer', when: 'before' },
  { step: 'claim', when: 'after' },
  { step: 'renew', when: 'before' },
  { step: 'markSent', when: 'before' },
  { step: 'answer', when: 'after' },
  { step: 'release', when: 'before' },
  { step: 'renew', when: 'after' },
  { step: 'release', when: 'after' },
];

/** In so many consecutive rounds each mutation meets every fault first in line, with the process killed and not killed. */
export const STRATA = 2 * FAULTS.length;

/**
 * The run of a mutation in one round, drawn from the seed: the same arguments give the same run.
 *
 * Chance decides the details. The first fault, and in every other round the kill, take turns instead, so that no
 * combination is left to luck: the number of faults is odd.
 */
export function drawRun(mutation: MoneyMutation, seed: number, round: number): Run {
  const random = randomFrom(seed + round * MUTATIONS.length + MUTATIONS.indexOf(mutation));
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T; // none is empty
  const chance = (probability: number): boolean => random() < probability;

  const turn = round + 5 * MUTATIONS.indexOf(mutation);
  const first = FAULTS[turn % FAULTS.length];
  const later = [0, 1, 2, 3, 4, 5].slice(0, pick([0, 0, 1, 2, 6])).map(() => pick(LATER));
  const faults = (first === undefined ? [] : [first, ...later]).filter((fault) => fault !== undefined);

  const kill = KILLS[((round - 1) / 2 + 3 * MUTATIONS.indexOf(mutation)) % KILLS.length];
  return {
    mutation,
    refusable: chance(0.12),
    faults,
    readFaults: mutation === 'refundTransaction' && chance(0.3) ? [pick(READ_FAULTS), pick(READ_FAULTS)] : [],
    kill: kill && { ...kill, skip: pick([0, 0, 0, 1]) },
    calls: [0, 1, 2].slice(0, pick([0, 1, 2, 3])).map(() => ({
      transport: chance(0.12) ? 'websocket' : 'http',
      times: chance(0.2) ? 2 : 1,
      hangsUpAfterMs: chance(0.4) ? Math.floor(random() * 500) : undefined,
    })),
  };
}
