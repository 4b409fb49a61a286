import { setTimeout as delay } from 'node:timers/promises';
import { type Attempt, GivenUpError, type UpstreamAnswer } from '../../src/common/attempt.ts';
import { type Ambient, systemAmbient } from '../../src/money/ambient.ts';
import type { MoneyOrder, MoneyResult } from '../../src/money/call.ts';
import { upstreamIdempotencyKey } from '../../src/money/idempotency-key.ts';
import { inputHash, type MoneyMutation } from '../../src/money/intent.ts';
import type { Comparison } from '../../src/money/outcome.ts';
import { isDocumentedError } from '../../src/upstream/call/documented-error.ts';

export const MUTATIONS: readonly MoneyMutation[] = [
  'createMoneyOut',
  'createInternalTransaction',
  'createPennyValidation',
  'refundTransaction',
];

const CLIENT = '0b0e6f0a-8a38-4a43-9b39-3a2e2f6f9d01';

/** How long one request of a test's order may take, in ms: enough for a busy machine. Tests of silence ask for less. */
const REQUEST_TIMEOUT_MS = 60_000;

/** What a test's order says of itself to people. */
export const SHOWN = { amount: '10.00', source: null, destination: null, requestedBy: 'somebody' };

/** For a claim of a key that has no owner of its own. */
export const NOBODYS = {
  keyOwner: '',
  twin: 'twin',
  isCustomers: false,
  other: { hash: 'other', isFirst: false },
  asked: { operation: 'createMoneyOut', customerId: null, ...SHOWN },
} as const;

interface OrderOptions {
  readonly amount?: string;
  /** Of each POST; asked before it where it is a function. {@link REQUEST_TIMEOUT_MS} where it is undefined. */
  readonly timeoutMs?: number | (() => number | undefined);
  readonly keyOwner?: string | undefined;
}

/** An order as a resolver would make it, over real HTTP to a test's upstream. The key doubles as reference. */
export function order(
  upstreamUrl: string,
  mutation: MoneyMutation,
  key: string,
  { amount = '10.00', timeoutMs, keyOwner }: OrderOptions = {},
): MoneyOrder {
  const longestMs = () => (typeof timeoutMs === 'function' ? timeoutMs() : timeoutMs) ?? REQUEST_TIMEOUT_MS;
  const intent = {
    clientId: CLIENT,
    customerId: undefined,
    keyOwner,
    key,
    inputHash: inputHash(mutation, { amount }),
    // The moment makes each call's own bytes differ, so that a repeat that made its bytes anew would be seen.
    shown: SHOWN,
    body: JSON.stringify({ reference: key, amount, madeAt: performance.now() }),
  };
  const calls = {
    send(body: string, _attempt: number, signal: AbortSignal, ownerDigest?: string): Promise<Attempt> {
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (mutation === 'createMoneyOut')
        headers['idempotency-key'] = upstreamIdempotencyKey(intent, ownerDigest);
      return exchange(`${upstreamUrl}/${mutation}`, { method: 'POST', headers, body }, signal, longestMs());
    },
    compare: ({ body }: UpstreamAnswer): Comparison => {
      if (!isTransaction(body)) return { kind: 'unreadable' };
      return Reflect.get(body, 'amount') === amount
        ? { kind: 'same' }
        : { kind: 'differs', fields: ['amount'] };
    },
    isServiceError: isDocumentedError,
    codeOf: () => 'A_CODE',
    codeUnmoved: () => 'A_CODE',
  };
  if (mutation !== 'refundTransaction') return { ...intent, mutation, calls };
  return {
    ...intent,
    mutation,
    calls: {
      ...calls,
      originalId: `original-${key}-${keyOwner ?? ''}`,
      readOriginal: (signal) => exchange(`${upstreamUrl}/original/${key}`, {}, signal, REQUEST_TIMEOUT_MS),
      isTransaction: ({ body }) => isTransaction(body),
      checkAgain: async () => undefined,
      isRefunded: ({ text }) => text.includes('REFUNDED'),
    },
  };
}

/** The same order, of a payment that the gateway may send again by itself, as it does money out. */
export function repeatable(made: MoneyOrder): MoneyOrder {
  if (made.mutation !== 'createMoneyOut') return made;
  return { ...made, calls: { ...made.calls, upstreamKey: (after) => upstreamIdempotencyKey(made, after) } };
}

const isTransaction = (body: unknown): body is object =>
  typeof body === 'object' && body !== null && 'id' in body;

async function exchange(
  url: string,
  init: RequestInit,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<Attempt> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(url, { ...init, signal: limit });
    const text = await response.text();
    return {
      kind: 'answered',
      status: response.status,
      text,
      body: parsed(text),
      retryAfterMs: undefined,
    };
  } catch (cause) {
    const refused = cause instanceof Error && JSON.stringify(cause.cause ?? '').includes('ECONNREFUSED');
    const message = refused ? 'connection refused' : 'no answer';
    return { kind: 'failed', error: new GivenUpError(message, { dispatched: !refused, cause }) };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A clock on which everything waits `factor` times shorter, so that minutes of backoff and leases pass in a test. */
export function fastAmbient(factor: number): Ambient {
  const start = Date.now();
  return {
    ...systemAmbient,
    now: () => start + (Date.now() - start) * factor,
    sleep: (ms, signal) => delay(Math.max(0, ms) / factor, undefined, { signal }).catch(() => undefined),
  };
}

/** A result in one word and its details, for comparing. */
export function told(result: MoneyResult): string {
  switch (result.kind) {
    case 'done':
    case 'refused':
      return `${result.kind} ${result.answer.text}`;
    case 'conflict':
      return result.code;
    default:
      return result.kind;
  }
}
