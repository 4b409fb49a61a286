import { clock } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import type { Requester } from '../common/party.ts';
import type { Turns } from '../common/turns.ts';
import type { Metrics } from '../observability/metrics.ts';
import { type CircuitBreaker, createBreaker } from '../upstream/call/breaker.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import type { CallKind } from '../upstream/call/exchange.ts';
import { createHttp, type UpstreamHttp } from '../upstream/call/http.ts';
import { createRest, type Rest } from '../upstream/call/rest.ts';
import type { ServerConfig } from './server-config.ts';

/**
 * Returns the requester of REST calls that the gateway makes for itself. Each client has its own, so that failures of one do
 * not count for another.
 */
const ownCalls = (clientId: string): Requester => ({ caller: 'gateway', group: `gateway ${clientId}` });

/** The connections of this process to the REST service. */
export interface RestService {
  readonly http: UpstreamHttp;
  readonly breaker: CircuitBreaker;
  /** Returns REST calls that belong to no operation. */
  rest(clientId: string, authorize: Authorize, over: CallKind): Rest;
}

export function openRestService(config: ServerConfig, metrics: Metrics, turns: Turns): RestService {
  const breaker = createBreaker(() => clock.monotonic());
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
