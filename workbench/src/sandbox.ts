import { ownUrl } from './addresses.ts';
import { untilReachable } from './session.ts';
import { CUT_MS, cutStreams } from './streams.ts';
import { t } from './words.ts';

export interface Fault {
  readonly id: number;
  readonly fault: unknown;
  readonly used: number;
  readonly inForce: boolean;
}

/** What is armed, and how often each was seen. */
export const readFaults = async (): Promise<readonly Fault[]> =>
  (await control<{ faults: readonly Fault[] }>('GET', 'faults')).faults;

/** A payment with all that came of it: docs/sandbox.md, "Control". */
export const readTransaction = (id: string): Promise<TransactionDetail> =>
  control('GET', `transactions/${encodeURIComponent(id)}`);

export interface TransactionDetail {
  readonly transaction: { readonly id: string; readonly trackingId: string; readonly amount: string };
  readonly trail: readonly { readonly at: string; readonly of: string; readonly status: string }[];
  readonly calls: readonly {
    readonly at: string;
    readonly method: string;
    readonly path: string;
    readonly status: number | null;
  }[];
  readonly deliveries: readonly {
    readonly id: string;
    readonly webhookType: string;
    readonly body: unknown;
    readonly attempts: readonly {
      readonly at: string;
      readonly status: number | null;
      readonly error: string | null;
    }[];
  }[];
  readonly receipt: { readonly status: string; readonly url: string } | null;
}

/** Sends a webhook's message to a handler of one's own. */
export const sendTo =
  (url: string, deliveryId: string): Deed =>
  async () => {
    const { status } = await control<{ status: number }>('POST', `deliveries/${deliveryId}/send`, { url });
    return t('Your handler answered with {status}.', { status });
  };

/** One thing that the bar does, and what it has done, in a sentence. */
export type Deed = () => Promise<string>;

const PAYERS = ['Ana Torres', 'Bruno Salas', 'Carla Reyes', 'Diego Luna', 'Elena Cruz'];

let credits = 0;

/** Asks the sandbox's control (docs/sandbox.md), through the gateway that embeds it. */
async function control<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<T> {
  const response = await fetch(ownUrl(`sandbox/${path}`), {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  }).catch(() => {
    void untilReachable();
    throw new Error(t('The sandbox does not answer.'));
  });
  const answer: unknown = await response.json();
  if (!response.ok)
    throw new Error(
      complaintOf(answer) ?? t('The sandbox refused with status {status}.', { status: response.status }),
    );
  // docs/sandbox.md says what each request is answered with.
  return answer as T;
}

function complaintOf(answer: unknown): string | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  // The service's error body (docs/upstream-api.md, "Errors"), or the gateway's own sentence.
  const { message, details } = answer as {
    message?: unknown;
    details?: readonly { metadata?: { error_detail?: unknown } }[];
  };
  const reason = details?.[0]?.metadata?.error_detail ?? message;
  return typeof reason === 'string' ? inWords(reason) : undefined;
}

/** A reason of the sandbox, in the page's language where it knows it. */
export function inWords(reason: string): string {
  const [, where] = /^connect ECONNREFUSED(.*)$/.exec(reason) ?? [];
  if (where !== undefined) return t('connect ECONNREFUSED') + where;
  const [, host] = /^Webhooks go to this machine, .* and not to (.+)\.$/.exec(reason) ?? [];
  if (host !== undefined)
    return t('Webhooks go to this machine, to PUBLIC_URL and to SANDBOX_WEBHOOK_HOSTS, and not to {host}.', {
      host,
    });
  if (/^other side closed$|ECONNRESET/.test(reason)) return t('the connection was closed without an answer');
  if (/aborted due to timeout/.test(reason)) return t('no answer in time');
  return reason === 'transaction_not_found' ? t('There is no such transaction.') : t(reason);
}

/** @param pesos such as `1250.00` */
export const credit =
  (clabe: string, to: string, pesos: string): Deed =>
  async () => {
    const payerName = PAYERS[credits % PAYERS.length] ?? 'Ana Torres';
    credits += 1;
    const { transaction } = await control<{ transaction: { transactionStatus: string } }>(
      'POST',
      'spei-credits',
      {
        clabe,
        amount: pesos,
        payerName,
        concept: `Factura ${credits}`,
      },
    );
    return t('{amount} MXN from {payer} arrived at {account}: {status}.', {
      amount: pesos,
      payer: payerName,
      account: to,
      status: t(transaction.transactionStatus),
    });
  };

export const passTime: Deed = async () => {
  const { now } = await control<{ now: string }>('POST', 'clock', { advanceSeconds: 300 });
  return t(
    'Five minutes have passed: it is {time} in the sandbox, and everything that fell due has happened.',
    {
      time: now.slice(11, 16),
    },
  );
};

export const loseAnswer: Deed = async () => {
  await control('POST', 'faults', {
    match: { method: 'POST', path: '/v1/transactions/' },
    fault: 'reset-after-commit',
    times: 1,
  });
  return t('The next payment will be made, and its answer lost: press "New key" in step 2, then play.');
};

export const delayAnswer: Deed = async () => {
  await control('POST', 'faults', { match: { path: '/v1/' }, fault: { delayMs: 1_500 }, times: 1 });
  return t('The next REST call takes 1.5 s longer: see the bars below the next result.');
};

export const failAnswer: Deed = async () => {
  await control('POST', 'faults', { match: { path: '/v1/' }, fault: { status: 503 }, times: 1 });
  return t('The next REST call fails with 503; the gateway repeats it where that is safe.');
};

export const heal: Deed = async () => {
  await control('DELETE', 'faults');
  return t('The sandbox is healthy again: no fault is armed.');
};

export const refund: Deed = async () => {
  const { refund: made } = await control<{ refund: { amount: string } }>('POST', 'refunds', {});
  return t('The latest credit was sent back: {amount} MXN.', { amount: made.amount });
};

export const cut: Deed = async () => {
  const count = cutStreams();
  return count === 0
    ? t('No stream is live: play step 4 first.')
    : t(
        count === 1
          ? 'One stream is cut for {seconds} s. Let a credit arrive meanwhile.'
          : '{count} streams are cut for {seconds} s. Let a credit arrive meanwhile.',
        { count, seconds: CUT_MS / 1000 },
      );
};
