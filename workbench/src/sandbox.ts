import { ownUrl } from './addresses.ts';
import { untilReachable } from './session.ts';
import { CUT_MS, cutStreams } from './streams.ts';

/** One thing that the bar does, and what it has done, in a sentence. */
export type Deed = () => Promise<string>;

const PAYERS = ['Ana Torres', 'Bruno Salas', 'Carla Reyes', 'Diego Luna', 'Elena Cruz'];

let credits = 0;

/** Asks the sandbox's control (docs/sandbox.md), through the gateway that embeds it. */
async function control<T>(method: 'POST' | 'DELETE', path: string, body?: object): Promise<T> {
  const response = await fetch(ownUrl(`sandbox/${path}`), {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  }).catch(() => {
    void untilReachable();
    throw new Error('The sandbox does not answer.');
  });
  const answer: unknown = await response.json();
  if (!response.ok)
    throw new Error(complaintOf(answer) ?? `The sandbox refused with status ${response.status}.`);
  // docs/sandbox.md says what each request is answered with.
  return answer as T;
}

function complaintOf(answer: unknown): string | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const { message, errors } = answer as { message?: unknown; errors?: readonly { detail?: unknown }[] };
  const detail = errors?.[0]?.detail ?? message;
  return typeof detail === 'string' ? detail : undefined;
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
    return `${pesos} MXN from ${payerName} arrived at ${to}: ${transaction.transactionStatus}.`;
  };

export const passTime: Deed = async () => {
  const { now } = await control<{ now: string }>('POST', 'clock', { advanceSeconds: 300 });
  return `Five minutes have passed: it is ${now.slice(11, 16)} in the sandbox, and all that fell due is done.`;
};

export const loseAnswer: Deed = async () => {
  await control('POST', 'faults', {
    match: { method: 'POST', path: '/v1/transactions/' },
    fault: 'reset-after-commit',
    times: 1,
  });
  return 'The next payment is made, and its answer lost: play step 2, with another key.';
};

export const delayAnswer: Deed = async () => {
  await control('POST', 'faults', { match: { path: '/v1/' }, fault: { delayMs: 1_500 }, times: 1 });
  return 'The next REST call takes 1.5 s longer: see it in the bars below the next result.';
};

export const failAnswer: Deed = async () => {
  await control('POST', 'faults', { match: { path: '/v1/' }, fault: { status: 503 }, times: 1 });
  return 'The next REST call fails with 503; the gateway repeats it where that is safe.';
};

export const heal: Deed = async () => {
  await control('DELETE', 'faults');
  return 'The sandbox is healthy: what was to go wrong is forgotten.';
};

export const refund: Deed = async () => {
  const { refund: made } = await control<{ refund: { amount: unknown; description: string } }>(
    'POST',
    'refunds',
    {},
  );
  return `The latest credit was sent back: ${JSON.stringify(made.amount).replaceAll('"', '')} MXN.`;
};

export const cut: Deed = async () => {
  const count = cutStreams();
  return count === 0
    ? 'No stream is live: play step 4 first.'
    : `${count === 1 ? 'One stream is' : `${count} streams are`} cut for ${CUT_MS / 1000} s. Let a credit arrive meanwhile.`;
};
