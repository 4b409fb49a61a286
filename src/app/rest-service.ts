import { clock } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import type { Logger } from '../common/logger.ts';
import type { Requester } from '../common/party.ts';
import type { Turns } from '../common/turns.ts';
import type { Metrics } from '../observability/metrics.ts';
import { toldOfGroup } from '../operation/caller-keys.ts';
import { type CircuitBreaker, createBreaker, type SuspensionWatcher } from '../upstream/call/breaker.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import type { CallKind } from '../upstream/call/exchange.ts';
import { createHttp, type UpstreamHttp } from '../upstream/call/http.ts';
import { createRest, type Rest } from '../upstream/call/rest.ts';
import type { ServerConfig } from './server-config.ts';

/**
 * Returns the requester of REST calls that the gateway makes for itself, unless they are shared: those count for who waits for
 * them. Each client has its own, so that failures of one do not count for another.
 */
const ownCalls = (clientId: string): Requester => ({ caller: 'gateway', group: `gateway ${clientId}` });

/** Returns the watcher that logs which calls are suspended, and whose. */
function toldBy(logger: Logger): SuspensionWatcher {
  return ({ kind, caller, isSuspended }) => {
    const fields = { kind, ...(caller === undefined ? { of: 'everybody' } : toldOfGroup(caller)) };
    if (isSuspended) logger.warn(fields, 'REST calls are suspended, as the service keeps failing');
    else logger.info(fields, 'REST calls are suspended no longer');
  };
}

/** The connections of this process to the REST service. */
export interface RestService {
  readonly http: UpstreamHttp;
  readonly breaker: CircuitBreaker;
  /** Returns REST calls that belong to no operation. */
  rest(clientId: string, authorize: Authorize, over: CallKind): Rest;
}

/** The parts of the process that it tells of its calls, and that give them their turns. */
interface RestServiceParts {
  readonly metrics: Metrics;
  readonly turns: Turns;
  readonly logger: Logger;
}

export function openRestService(
  config: ServerConfig,
  { metrics, turns, logger }: RestServiceParts,
): RestService {
  const breaker = createBreaker(() => clock.monotonic(), toldBy(logger));
  const http = createHttp(config.upstreamUrl, breaker, {
    connectTimeoutMs: Math.min(5_000, config.upstreamTimeoutMs / 2),
    maxAnswerBytes: config.upstreamAnswerBytes,
    callsPerCaller: config.upstreamCallsPerCaller,
    onWaiting: metrics.callsWaiting,
    turns,
  });
  return {
    http,
    breaker,
    rest: (clientId, authorize, over) =>
      createRest({
        http,
        clientId,
        requester: ownCalls(clientId),
        over,
        authorize,
        headers: { 'x-request-id': entropy.uuid(), accept: 'application/json' },
        timeoutMs: config.upstreamTimeoutMs,
        deadline: clock.now() + config.upstreamTimeoutMs,
        onCall: metrics.upstreamCall,
      }),
  };
}
