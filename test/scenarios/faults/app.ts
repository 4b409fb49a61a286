import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type GraphQLAnswer, sendQuery } from '../../helpers/gateway.ts';
import { subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import type { Cell } from './cell.ts';
import { documentOf, movementsOf, type Payable } from './payments.ts';
import type { CallPlan } from './scenario.ts';

/** What one call was told. */
export type Told =
  | { readonly kind: 'done'; readonly transactionId: string; readonly replayed: boolean }
  /** The upstream refused, for good. */
  | { readonly kind: 'refused'; readonly code: string }
  /** A top-level error, or a refusal by the gateway itself, which is final: this call says that nothing moved. */
  | { readonly kind: 'nothing-moved'; readonly code: string; readonly isFinal: boolean }
  | { readonly kind: 'unknown'; readonly safeToRetry: boolean }
  | { readonly kind: 'in-progress' }
  /** The gateway could not find out who was calling: the payment was not looked at. */
  | { readonly kind: 'not-identified' }
  /** No answer came: the app hung up, or the gateway died. */
  | { readonly kind: 'lost' };

/** One time of asking, perhaps in several calls at once. */
export interface Asked {
  readonly told: readonly Told[];
  /** Movements of the payment that the ledger showed afterwards. */
  readonly movedAfter: number;
}

/** No call may be answered later than this, deadlines of a few seconds being configured: a machine may be busy. */
const PATIENCE_MS = 60_000;
/**
 * An app that has been told nothing final by so many answers gives up, and the test with it. Answers are counted, not time: a gateway
 * that died is started again, which takes as long as the machine takes, once for each payment of the round.
 */
const MOST_ANSWERS = 60;

/**
 * A mobile app on a bad network: it asks with the same key again and again until it knows, and once more after that.
 *
 * @returns every time of asking, in order.
 */
export async function payStubbornly(
  cell: Cell,
  payment: Payable,
  plans: readonly CallPlan[],
): Promise<Asked[]> {
  const { sandbox } = cell;
  const asked: Asked[] = [];
  let inconclusive = 0;
  const patient: CallPlan = { transport: 'http', times: 1, hangsUpAfterMs: undefined };
  for (let settled = 0; settled < 2; ) {
    const plan = plans[asked.length] ?? patient;
    const { graphql } = await cell.serving();
    const call = plan.transport === 'http' ? overHttp : overWebSocket;
    const patience = AbortSignal.timeout(plan.hangsUpAfterMs ?? PATIENCE_MS);
    const calls = Array.from({ length: plan.times }, () =>
      call(graphql, sandbox.accessToken, payment, patience),
    );
    const told = await Promise.all(calls);
    if (patience.aborted && plan.hangsUpAfterMs === undefined) throw new Error('a call was not answered');
    asked.push({ told, movedAfter: (await movementsOf(sandbox, payment.tag)).length });
    if (told.some(isFinal)) {
      settled += 1;
      continue;
    }
    if (told.some(({ kind }) => kind !== 'lost')) inconclusive += 1;
    if (inconclusive > MOST_ANSWERS) throw new Error(`never settled: ${JSON.stringify({ payment, asked })}`);
    // An app that is refused a connection does not spin.
    await pause(20);
  }
  return asked;
}

const isFinal = (told: Told): boolean =>
  told.kind === 'done' ||
  told.kind === 'refused' ||
  (told.kind === 'nothing-moved' && told.isFinal) ||
  (told.kind === 'unknown' && !told.safeToRetry);

async function overHttp(
  graphql: string,
  token: string,
  { mutation, input }: Payable,
  patience: AbortSignal,
): Promise<Told> {
  try {
    const headers = { authorization: `Bearer ${token}` };
    return read(await sendQuery(graphql, documentOf(mutation), { input }, headers, patience));
  } catch {
    return { kind: 'lost' };
  }
}

async function overWebSocket(
  graphql: string,
  token: string,
  { mutation, input }: Payable,
  patience: AbortSignal,
): Promise<Told> {
  const subscriber = subscribeOverWebSocket(graphql, token, {
    query: documentOf(mutation),
    variables: { input },
  });
  await Promise.race([subscriber.ended, once(patience, 'abort')]);
  // Leaving throws what broke the connection, where it never was one.
  await subscriber.leave().catch(() => {});
  const [result] = subscriber.results;
  return result === undefined ? { kind: 'lost' } : read(result);
}

const PROBE = 'GET /v1/clients/{clientId}/instruments';

/** An answer as either transport carries it. */
interface Answer extends Pick<GraphQLAnswer, 'data' | 'extensions'> {
  readonly errors?: readonly { readonly extensions?: Readonly<Record<string, unknown>> }[];
}

/** Puts an answer into the words of {@link Told}. */
function read({ data, errors, extensions }: Answer): Told {
  const result = data?.result;
  if (result == null) {
    // The gateway's own report of its calls (extensions.upstream), which names them by route.
    const calls = (extensions?.['upstream'] ?? []) as readonly {
      method: string;
      route: string;
      status: number;
    }[];
    const probe = calls.find(({ method, route }) => `${method} ${route}` === PROBE);
    if (probe !== undefined && probe.status !== 200) return { kind: 'not-identified' };
    return { kind: 'nothing-moved', code: String(errors?.[0]?.extensions?.['code']), isFinal: false };
  }
  if (result.__typename === 'OutcomeUnknown') return { kind: 'unknown', safeToRetry: result.safeToRetry };
  if (result.moved !== undefined) {
    return { kind: 'done', transactionId: result.moved.id, replayed: result.replayed };
  }
  if (result.code === 'IDEMPOTENCY_IN_PROGRESS') return { kind: 'in-progress' };
  return result.upstream === null
    ? { kind: 'nothing-moved', code: result.code, isFinal: true }
    : { kind: 'refused', code: result.code };
}
