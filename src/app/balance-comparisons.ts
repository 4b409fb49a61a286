import { clock } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import { leaverOf } from '../common/waiters.ts';
import { systemAmbient } from '../money/ambient.ts';
import { requesterOfGateway } from '../operation/caller-keys.ts';
import { createReconcilingCalls } from '../resolvers/payments/reconciling-calls.ts';
import { createRest } from '../upstream/call/rest.ts';
import type { Base } from './base.ts';
import type { Stores } from './stores.ts';

/** Each of the two readings of a comparison, that of the balances and that of the movements, has so long for its REST calls, in ms. */
const MOST_MS = 4 * 60_000;

/** Compares the balances of the clients that the gateway has credentials of, from now on, where that is asked for. */
export function serveComparisons(base: Base, { events, money, auth }: Stores): void {
  const { config, metrics, restService, turns } = base;
  const { service, reconciling, upstreamUtcOffset: utcOffset, upstreamTimeoutMs: timeoutMs } = config;
  if (service === undefined || reconciling === undefined) return;
  const { marginMs } = reconciling;
  const clients = service.clients.map(({ clientId }) => {
    const requester = requesterOfGateway('reconciling', clientId);
    const rest = (signal: AbortSignal) =>
      createRest({
        http: restService.http,
        clientId,
        requester,
        authorize: auth.authorize('', clientId),
        // Less pressing than what somebody waits for.
        urgency: 'streams',
        headers: { 'x-request-id': entropy.uuid(), accept: 'application/json' },
        timeoutMs,
        deadline: clock.now() + MOST_MS,
        leaver: leaverOf(signal),
        onCall: metrics.upstreamCall,
      });
    const turn = () => turns.turn('streams', requester.caller);
    const now = () => clock.now();
    const { sleep } = systemAmbient;
    const parts = { clientId, log: events, utcOffset, marginMs, rest, turn, now, sleep };
    return [clientId, createReconcilingCalls(parts)] as const;
  });
  money.reconcile(new Map(clients), reconciling);
}
