import type { Authenticator } from '../auth/authenticator.ts';
import { createExpiryWatch, type ExpiryWatch } from '../auth/expiry-watch.ts';
import { Guesses, KEY_GUESSES } from '../auth/guesses.ts';
import { createRefusedKeys } from '../auth/refused-keys.ts';
import { clock as time } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import { DocumentCache } from '../graphql/documents/document-cache.ts';
import { createQueryDeduplication, type QueryDeduplication } from '../graphql/plugins/query-deduplication.ts';
import { createIngress, type Ingress } from '../ingress/ingress.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Tracing } from '../observability/tracing.ts';
import { CallerKeys } from '../operation/caller-keys.ts';
import { type ContextFactory, createContextFactory } from '../operation/context.ts';
import type { Incoming } from '../operation/incoming.ts';
import { ACCOUNTS } from '../upstream/accounts.ts';
import { createCoalescer } from '../upstream/call/coalesce.ts';
import { CUSTOMERS } from '../upstream/customers.ts';
import { type ClientLists, createClientLists } from '../upstream/lists/client-lists.ts';
import { Polls } from '../upstream/session/polls.ts';
import { createBankCache } from '../upstream/session/session.ts';
import type { Base } from './base.ts';
import { settleLaterOf } from './open-payments.ts';
import type { Stores } from './stores.ts';

/** Bytes of documents of identified callers that are kept, with all that is derived from them. */
const KEPT_DOCUMENTS_BYTES = 32 * 1024 * 1024;
/** How long a bank catalog serves all callers after its reading began, in milliseconds. */
const BANKS_TTL_MS = 300_000;

/** What operations are made from, and what deliveries tell them. */
export interface Operations {
  readonly createContext: ContextFactory;
  readonly callerKeys: CallerKeys;
  readonly expiries: ExpiryWatch;
  readonly shared: QueryDeduplication;
  readonly documents: DocumentCache;
  /** Called before a caller is told of an event. From then on, what it asks must be read afresh. */
  onTold(authorization: string, clientId: string): void;
  /** To be called after something was sent for a client, in no operation, that may have changed what its lists show. */
  readonly onSent: (clientId: string) => void;
  readonly ingress: Ingress;
}

export function createOperations(base: Base, stores: Stores): Operations {
  const { config, logger } = base;
  const { auth } = stores;
  const now = () => time.monotonic();
  const reads = createCoalescer(now);
  const shared = createQueryDeduplication(now, (upstreamIdentity) => reads.noteChange(upstreamIdentity));
  // Where each credential has its own reads, no answer is kept.
  const dropKeptAnswers = (clientId: string) => {
    if (auth.sharesIdentity) reads.forget(auth.upstreamIdentity('', clientId));
  };
  const noteChange = (clientId: string) => {
    if (auth.sharesIdentity) reads.noteChange(auth.upstreamIdentity('', clientId));
  };
  const lists = createClientLists({
    maxAgeMs: config.listsMaxAgeMs,
    now,
    logger,
    onOutdated: dropKeptAnswers,
    onWalked: base.metrics.listWalked,
  });
  const callerKeys = new CallerKeys();
  const expiries = createExpiryWatch({
    clock: base.clock,
    againMs: auth.verifiedAgainMs,
    identify: async (authorization) =>
      createContext(questionAbout(authorization), 'streams').identity.identify(true),
  });
  const createContext = createContextFactory({
    http: base.restService.http,
    auth,
    banks: createBankCache(config.bankFieldNames, BANKS_TTL_MS, now),
    lists,
    listsMaxAgeMs: config.listsMaxAgeMs,
    utcOffset: config.upstreamUtcOffset,
    maxItems: config.limits.cost,
    turns: base.turns,
    events: stores.events,
    services: {
      logger,
      money: stores.money,
      ingress: base.addresses.ingress,
      receiptOwner: stores.receiptOwner,
      settleLater: settleLaterOf(base, stores),
      polls: pollsOf(base),
      refusedKeys: createRefusedKeys(),
      utcOffset: config.upstreamUtcOffset,
      clock: base.clock,
    },
    upstreamTimeoutMs: config.upstreamTimeoutMs,
    operationTimeoutMs: config.operationTimeoutMs,
    reads: config.layersOff.has('shared-reads') ? undefined : reads,
    keyGuesses: new Guesses(KEY_GUESSES),
    callerKeys,
    expiries,
    onInvalidate: shared.forget,
    clock: base.clock,
    onCall: countedAndTraced(base.metrics, config.tracing),
  });
  return {
    createContext,
    callerKeys,
    expiries,
    shared,
    documents: new DocumentCache(KEPT_DOCUMENTS_BYTES),
    onTold: onToldOf(shared, callerKeys, auth),
    onSent: noteChange,
    ingress: ingressOf(base, stores, lists, noteChange),
  };
}

/** Queries over HTTP may write the told caller's token otherwise, or bring an API key with it. */
const onToldOf =
  (shared: QueryDeduplication, callerKeys: CallerKeys, auth: Authenticator): Operations['onTold'] =>
  (authorization, clientId) => {
    const credential = callerKeys.tokenOf(authorization) ?? authorization;
    shared.forget(credential, auth.upstreamIdentity(credential, clientId));
  };

function pollsOf({ clock, config, metrics }: Base): Polls {
  const polls = new Polls(clock, config.pollsPerSecond);
  metrics.watchPolls(() => polls.waiting);
  return polls;
}

/** A question of the gateway itself about a credential, which no request brings. */
const questionAbout = (authorization: string | undefined): Incoming => ({
  requestId: entropy.uuid(),
  authorization,
  apiKey: undefined,
  lastEventId: undefined,
  waiters: undefined,
  closeSockets: undefined,
});

/**
 * Makes the ingress, which keeps deliveries in the log. If a delivery shows that a list has changed, the lists are told.
 *
 * @param noteChange drops the answers of lists that are kept for a client's callers.
 */
function ingressOf(
  { config, logger, metrics, addresses }: Base,
  { events, money }: Stores,
  lists: ClientLists,
  noteChange: (clientId: string) => void,
): Ingress {
  return createIngress({
    log: events,
    secrets: addresses.secrets,
    tokenHeader: config.webhookTokenHeader,
    decisionUrl: config.moneyInDecisionUrl,
    dataDir: config.dataDir,
    metrics: metrics.events,
    logger,
    refundOf: money.payments.refundOf,
    onStored: (clientId, { credited }) => {
      // Any message may tell of money that has moved, such as a transfer that comes back.
      noteChange(clientId);
      if (credited === undefined) return;
      // An owner or an account that the lists lack is new.
      lists.noteItem(clientId, ACCOUNTS, 'clabeNumber', credited.account);
      const { ownerId } = credited;
      if (ownerId.toLowerCase() !== clientId.toLowerCase())
        lists.noteItem(clientId, CUSTOMERS, 'id', ownerId);
    },
  });
}

function countedAndTraced(metrics: Metrics, tracing: Tracing | undefined): Metrics['upstreamCall'] {
  if (tracing === undefined) return metrics.upstreamCall;
  return (call) => {
    metrics.upstreamCall(call);
    tracing.call(call);
  };
}
