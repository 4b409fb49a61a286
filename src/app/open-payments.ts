import { clock } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import type { Requester } from '../common/party.ts';
import { requesterOfGateway } from '../operation/caller-keys.ts';
import type { SettleLater } from '../operation/services.ts';
import { createSettlingCalls } from '../resolvers/payments/settling-calls.ts';
import { shareSightings } from '../resolvers/payments/shared-sightings.ts';
import { Sightings } from '../resolvers/payments/sightings.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import { createRest } from '../upstream/call/rest.ts';
import type { Base } from './base.ts';
import type { Stores } from './stores.ts';

/**
 * How long all calls of one look at a payment may take together, in ms, however little each of them may: less than the lease under which the
 * payment is taken.
 */
const MOST_MS = 10_000;
/** How long a token that does not name its end is used, in ms. */
const UNTOLD_MS = 15 * 60_000;
const UNAUTHORIZED = 401;

/**
 * Settles the open payments of the clients of which the gateway has credentials, from now on. Without credentials it does
 * nothing.
 *
 * @param onSent called with the client of a payment that has been sent again.
 */
export function serveOpenPayments(
  base: Base,
  { events, money, auth }: Stores,
  onSent: (clientId: string) => void,
): void {
  const { service } = base.config;
  if (service === undefined) return;
  for (const { clientId } of service.clients) {
    money.serve(
      clientId,
      callsOf(
        base,
        new Sightings(events, clientId),
        clientId,
        requesterOfGateway('settling', clientId),
        auth.authorize('', clientId),
        () => onSent(clientId),
      ),
    );
  }
}

/**
 * Returns how payments are settled under their callers' own credentials; undefined if the gateway settles them under its own.
 */
export function settleLaterOf(base: Base, { events }: Stores): SettleLater | undefined {
  if (base.config.service !== undefined) return undefined;
  const sightingsOf = shareSightings(events);
  return ({ caller: { clientId, expiresAt }, requester, authorize, requestedBy }) => ({
    until: expiresAt ?? clock.now() + UNTOLD_MS,
    // In passthrough a digest of the token.
    credential: requestedBy,
    // A caller's own credential has no answers that are kept.
    calls: () => callsOf(base, sightingsOf(clientId), clientId, requester, authorize, () => undefined),
  });
}

function callsOf(
  base: Base,
  sightings: Sightings,
  clientId: string,
  requester: Requester,
  authorize: Authorize,
  onSent: () => void,
) {
  const { config, metrics, restService } = base;
  const timeoutMs = Math.min(config.upstreamTimeoutMs, MOST_MS);
  let isOver = false;
  const rest = () =>
    createRest({
      http: restService.http,
      clientId,
      requester,
      authorize,
      // Less urgent than calls that somebody waits for.
      urgency: 'streams',
      headers: { 'x-request-id': entropy.uuid(), accept: 'application/json' },
      timeoutMs,
      deadline: clock.now() + MOST_MS,
      onCall(call) {
        isOver ||= call.status === UNAUTHORIZED;
        metrics.upstreamCall(call);
      },
    });
  const utcOffset = config.upstreamUtcOffset;
  return createSettlingCalls({
    clientId,
    sightings,
    utcOffset,
    rest,
    now: () => clock.now(),
    onSent,
    isOver: () => isOver,
  });
}
