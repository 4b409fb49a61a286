import { z } from 'zod';
import { defaultChoices } from './choices.ts';
import type { ClockView, Completed, Control, RequestsView } from './control.ts';
import {
  completionOrder,
  creditOrder,
  type ReceiptWish,
  receiptOrder,
  refundOrder,
} from './control-orders.ts';
import { loss, step } from './control-routes.ts';
import type { AccountView, ClientView, DeliveryView, LedgerView } from './control-views.ts';
import type { Endpoint } from './endpoints.ts';
import { type FaultView, faultRule, NAMED_FAULTS, type NamedFault } from './faults.ts';
import { given } from './given.ts';
import { check } from './http.ts';
import { webhookOrder } from './operations/webhooks.ts';
import type { Outcome } from './pending.ts';
import type { RestNewTransaction, RestTransaction, RestWebhookType } from './rest.ts';
import { type Sandbox, type SandboxOptions, startWithControl } from './start.ts';

export interface CreateOptions extends Partial<Omit<SandboxOptions, 'speed'>> {
  /** Default 1. */
  seed?: number;
  /** Default any free port of loopback. */
  port?: number;
  /** `stepped`, the default: time moves when `advance` moves it. Otherwise it also runs, so many times faster than real time. */
  clock?: 'stepped' | { speed: number };
}

const createOptions = z.strictObject({
  seed: z.int(),
  port: z.int(),
  host: z.string(),
  clock: z.literal('stepped').or(z.strictObject({ speed: z.number().min(0) })),
  run: z.string(),
  hosts: z.array(z.string()),
  webhookHosts: z.array(z.string()),
  customers: z.int().min(0),
  choices: z.partialRecord(z.enum(Object.keys(defaultChoices)), z.unknown()),
  logger: z.unknown(),
} satisfies Record<keyof CreateOptions, z.ZodType>);

export interface CreditOrder {
  /** One of the sandbox's own accounts, such as `sandbox.accounts[0].clabe`. */
  clabe: string;
  /** Pesos with two decimals, `1250.00`. */
  amount: string;
  payerName?: string;
  concept?: string;
}

export interface RefundOrder {
  /** Default the demo client's latest credit that can be refunded. */
  transactionId?: string;
  reason?: string;
}

/** A span of simulated time; its parts add up. */
export interface Span {
  days?: number;
  hours?: number;
  minutes?: number;
  seconds?: number;
}

const part = z.number().default(0);
const parts = z.strictObject({ days: part, hours: part, minutes: part, seconds: part });

/**
 * What goes wrong with the requests to an endpoint, `times` times or until `heal`:
 *
 * - `lose: 'request'` resets the connection before the request is performed, `lose: 'answer'` after it;
 * - `answer: 'truncate'` ends the answer in the middle of its body, `'hang'` never answers, `'garbage'` answers 200 with bytes
 *   that are no JSON; the request has been performed;
 * - `delayMs` performs the request so many real ms later;
 * - `status` answers with this status and body; the request is performed with `commit: true` alone.
 *
 * `account`, an id of `accountIds`, spares the requests that neither pay from this account nor name a transaction of it.
 */
export type Failure = (
  | { lose: 'request' | 'answer' }
  | { answer: Exclude<NamedFault, `reset-${string}`> }
  | { delayMs: number }
  | { status: number; body?: unknown; commit?: boolean }
) & { times?: number; account?: string };

/** A sandbox with its control in hand. What is known of the demo client stands beside it, under the names of `GET /sandbox`. */
export interface TestSandbox extends Sandbox, Omit<ClientView, 'accounts' | 'clabeInstrumentIds'> {
  /** The demo client's accounts, with their balances of this moment. */
  readonly accounts: readonly [AccountView, ...AccountView[]];
  /** Clients that have nothing to do with the demo client. */
  readonly otherClients: readonly ClientView[];
  /** The endpoints of the service. */
  readonly endpoints: readonly Endpoint[];
  /** An SPEI credit arrives from outside; resolves once each active MONEY_IN webhook has been tried once. */
  credit(order: CreditOrder): Promise<{ transaction: RestTransaction; deliveries: DeliveryView[] }>;
  /** Sends a received SPEI credit back. */
  refund(order?: RefundOrder): Promise<{ refund: RestNewTransaction }>;
  /** Moves simulated time on; resolves when everything that fell due has been done and delivered, in order. */
  advance(span: Span): Promise<ClockView>;
  /** Ends at once what is pending: a transfer, a receipt, a held credit or a customer's validation. */
  complete(id: string, outcome?: Outcome): Promise<Completed>;
  /**
   * Says what becomes of the receipt of a penny validation: `now`, `late`, `never` and `other-holder`. `{ status }` is shown, and told
   * by a CEP message, in place of PENDING and DELAYED, until the receipt ends: a state that the service does not document.
   */
  receipt(transactionId: string, receipt: ReceiptWish): Promise<{ transaction: RestTransaction }>;
  /** Has the requests to an endpoint go wrong from now on. */
  fail(endpoint: Endpoint, failure: Failure): Promise<void>;
  /** The next `times` webhook messages of a type, or all of them, are sent to nobody. */
  loseMessages(type: RestWebhookType, times?: number): Promise<void>;
  /** No fault applies, no message is lost and no receiver of webhooks is unreachable any more, whoever wanted it so. */
  heal(): Promise<void>;
  /** The faults that were added, by `fail` or over HTTP, and not taken away since, with how often each was used. */
  faults(): Promise<FaultView[]>;
  ledger(): Promise<LedgerView>;
  /** Every webhook sent, with each attempt and its reply. */
  deliveries(): Promise<DeliveryView[]>;
  /** Sends the same message again, once. */
  resend(deliveryId: string): Promise<DeliveryView>;
  /** How often each endpoint was called. */
  requests(): Promise<RequestsView>;
  clock(): Promise<ClockView>;
  /** Ends it at once: connections, timers, deliveries under way. */
  close(): Promise<void>;
}

/** Starts a sandbox for a test or a program. Rejects when the port is taken, and for an option that there is not. */
export async function createSandbox(options: CreateOptions = {}): Promise<TestSandbox> {
  check(createOptions.partial(), options, 'createSandbox');
  const { clock = 'stepped', ...others } = given(options);
  const speed = clock === 'stepped' ? 0 : clock.speed;
  const started = await startWithControl({ seed: 1, port: 0, ...others, speed });
  const { sandbox, control } = started;
  const [demo, ...otherClients] = await control.clients();
  if (demo === undefined) throw new Error('the seed data holds no client');
  const { accounts: _atTheStart, ...client } = demo;
  // Its keys are the routes of the service, which a test compares with the type.
  const endpoints = [...started.endpoints] as Endpoint[];
  return {
    ...client,
    ...sandbox,
    otherClients,
    endpoints,
    get accounts() {
      return someAccounts(control);
    },
    registerWebhook: async (order) => sandbox.registerWebhook(check(webhookOrder, order, 'registerWebhook')),
    credit: async (order) => control.credit(check(creditOrder, order, 'credit')),
    refund: async (order = {}) => control.refund(check(refundOrder, order, 'refund')),
    async advance(span) {
      const seconds = secondsOf(check(parts, span, 'advance'));
      const { advanceSeconds } = check(step, { advanceSeconds: seconds }, 'advance');
      return control.advance(advanceSeconds);
    },
    complete: async (id, outcome = 'done') =>
      control.complete(check(completionOrder, { id, outcome }, 'complete')),
    receipt: async (transactionId, receipt) =>
      control.receipt(check(receiptOrder, { transactionId, receipt }, 'receipt')),
    async fail(endpoint, failure) {
      if (!started.endpoints.has(endpoint)) {
        throw new TypeError(`An endpoint is needed such as "${endpoints[0]}", got "${endpoint}".`);
      }
      control.faults.add(check(faultRule, ruleOf(endpoint, failure), 'fail'));
    },
    async loseMessages(type, times) {
      const lost = check(loss, { type, ...(times === undefined ? {} : { times }) }, 'loseMessages');
      control.loseMessages(lost.type, lost.times);
    },
    heal: async () => control.heal(),
    faults: async () => control.faults.all(),
    ledger: async () => control.ledger(),
    deliveries: async () => control.deliveries(),
    resend: async (id) => control.resend(id),
    requests: async () => control.requests(),
    clock: async () => control.time(),
    close: sandbox.stop,
  };
}

function someAccounts(control: Control): readonly [AccountView, ...AccountView[]] {
  const [first, ...rest] = control.accounts();
  if (first === undefined) throw new Error('the demo client has no account');
  return [first, ...rest];
}

const secondsOf = ({ days, hours, minutes, seconds }: Required<Span>): number =>
  ((days * 24 + hours) * 60 + minutes) * 60 + seconds;

function ruleOf(endpoint: Endpoint, { times, account, ...failure }: Failure): unknown {
  const [method, path = ''] = endpoint.split(' ');
  const match = {
    method,
    path: path.replaceAll(/\{\w+\}/g, '*'),
    ...(account === undefined ? {} : { account }),
  };
  return { match, fault: faultOf(failure), ...(times === undefined ? {} : { times }) };
}

const LOSSES: ReadonlyMap<string, NamedFault> = new Map([
  ['request', 'reset-before'],
  ['answer', 'reset-after-commit'],
]);
const ANSWERS = NAMED_FAULTS.filter((name) => !name.startsWith('reset-'));

function faultOf(failure: Failure): unknown {
  // Two failures at once are no fault, nor is a word that there is not: the check refuses them.
  if (Object.keys(failure).length > 1) return failure;
  if ('lose' in failure) return LOSSES.get(failure.lose) ?? failure;
  if ('answer' in failure) return ANSWERS.find((name) => name === failure.answer) ?? failure;
  return failure;
}
