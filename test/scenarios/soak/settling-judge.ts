import { setTimeout as pause } from 'node:timers/promises';
import type { Sandbox } from '#sandbox';
import { control, type sendQuery } from '../../helpers/gateway.ts';

export const KINDS = [
  'createMoneyOut',
  'createInternalTransaction',
  'createPennyValidation',
  'refundTransaction',
] as const;
export type Kind = (typeof KINDS)[number];
/** One payment that its app asks for once, and never again. */
export interface Intent {
  readonly kind: Kind;
  readonly key: string;
  readonly input: object;
  /** What the ledger shows of it: a reference, or the credit that a refund returns. */
  readonly mark: string;
  told: string;
}

/** How often each movement that an intent ordered is in the ledger. */
async function movements(sandbox: Sandbox, intents: readonly Intent[]): Promise<ReadonlyMap<Intent, number>> {
  const ledger = await control(sandbox, 'GET', '/sandbox/ledger');
  const byReference = Map.groupBy(ledger.movements, ({ externalReference }: Record<string, string>) =>
    String(externalReference),
  );
  const moved = new Map<Intent, number>();
  for (const intent of intents) {
    if (intent.kind === 'refundTransaction') {
      const credit = await control(
        sandbox,
        'GET',
        `/v1/clients/${sandbox.clientId}/transactions/${intent.mark}`,
      );
      moved.set(intent, credit.transactionStatus === 'REFUNDED' ? 1 : 0);
    } else moved.set(intent, byReference.get(intent.mark)?.length ?? 0);
  }
  return moved;
}

/** Waits until all are as they must be, for so many milliseconds at most, and says what is not. */
export async function settled(
  intents: readonly Intent[],
  read: (key: string) => ReturnType<typeof sendQuery>,
  sandbox: Sandbox,
  withinMs: number,
): Promise<{ readonly ended: Readonly<Record<string, number>>; readonly lies: readonly string[] }> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const states = new Map<Intent, string>();
    const messages = new Map<Intent, string>();
    for (const intent of intents) {
      const { data } = await read(intent.key);
      states.set(intent, data?.payment?.state ?? 'NONE');
      messages.set(intent, data?.payment?.message ?? '');
    }
    const moved = await movements(sandbox, intents);
    const delivered = await deliveredTo(sandbox);
    const lies = intents.flatMap((intent) =>
      liesOf(intent, states.get(intent) ?? '', moved.get(intent) ?? 0, delivered).map((lie) =>
        `${lie} ${messages.get(intent)}`.trim(),
      ),
    );
    if (lies.length > 0 && performance.now() < giveUpAt) {
      await pause(1_000);
      continue;
    }
    const ended = intents.map((intent) => `${intent.kind} ${states.get(intent)} moved ${moved.get(intent)}`);
    return { ended: counted(ended), lies };
  }
}

/** The texts of the messages that a gateway has answered with 201: what it knows of movements. */
async function deliveredTo(sandbox: Sandbox): Promise<readonly string[]> {
  const { deliveries } = await control(sandbox, 'GET', '/sandbox/deliveries');
  return deliveries
    .filter(({ attempts }: { attempts: { status: number | null }[] }) =>
      attempts.some(({ status }) => status === 201),
    )
    .map(({ body }: { body: unknown }) => JSON.stringify(body));
}

function liesOf(
  { kind, told, key, mark }: Intent,
  state: string,
  moved: number,
  delivered: readonly string[],
): string[] {
  const isShown = kind === 'refundTransaction' || delivered.some((text) => text.includes(`"Pago ${mark}"`));
  const what = `${kind} ${key}, told ${told}, ends ${state}, moved ${moved}`;
  const isDone = told.endsWith('Success');
  const isUnknown = state === 'UNKNOWN' || state === 'IN_FLIGHT';
  return [
    moved > 1 && `${what}: moved more than once`,
    isDone && moved === 0 && `${what}: told as done, and did not move`,
    state === 'DONE' && moved === 0 && `${what}: recorded as done, and did not move`,
    (state === 'REFUSED' || state === 'NONE') && moved > 0 && `${what}: recorded as not done, and moved`,
    told.endsWith('Error') && moved > 0 && `${what}: told as refused, and moved`,
    kind === 'createMoneyOut' && isUnknown && `${what}: money out that is not settled`,
    isUnknown && moved > 0 && isShown && `${what}: not settled, though there is evidence`,
  ].filter((lie) => lie !== false);
}

export function counted(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of [...words].sort()) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
