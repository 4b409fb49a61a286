import type { Authenticator } from '../auth/authenticator.ts';
import { lastKnown } from '../common/last-known.ts';
import type { EventLog } from '../events/log.ts';
import { openEventLog } from '../events/open.ts';
import type { Money } from '../money/execute.ts';
import type { openMoney } from '../money/open-money.ts';
import type { Hold } from '../money/record.ts';
import type { ReceiptOwner } from '../operation/services.ts';
import { eventNames } from '../resolvers/events/event-names.ts';
import { createReceiptOwner } from '../resolvers/events/receipt-owner.ts';
import { createEventTopics } from '../resolvers/events/topics.ts';
import { createUnattributed } from '../resolvers/events/unattributed.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import { createSourceOwners } from '../upstream/session/source-owners.ts';
import { createAuthenticator } from './authenticator.ts';
import type { Base } from './base.ts';

/** How long one look at the stores serves for `/readyz` (docs/monitoring.md, "Health"), in milliseconds. */
const LOOKED_AT_MS = 1_000;
/** How long `/readyz` waits for a look under way, in milliseconds. A probe wants an answer within a second. */
const WAIT_FOR_LOOK_MS = 300;

/** What is opened before anything is served: the event log, the record of payments, and the authenticator. */
export interface Stores {
  readonly events: EventLog;
  readonly money: Money;
  readonly auth: Authenticator;
  readonly receiptOwner: ReceiptOwner;
  /**
   * Returns the state of the stores, as far as it is known within a moment. A look writes as much as an event may take, to
   * find out if a store can be written.
   *
   * @returns undefined if no look has ended yet.
   */
  condition(): Promise<StoresCondition | undefined>;
}

interface StoresCondition {
  readonly events: Awaited<ReturnType<EventLog['health']>>;
  readonly paymentsAvailable: boolean;
  /** See `MoneyRecords.problem`. */
  readonly paymentsProblem: string | undefined;
  /** Why payments are held; empty while they are not. */
  readonly paymentsHeld: readonly Hold['why'][];
  /** The age of this knowledge, in milliseconds. */
  readonly ageMs: number;
  /** For how long the stores have been asked in vain since, in milliseconds. */
  readonly silentMs: number;
}

/** @param open opens the part that moves money. */
export async function openStores(base: Base, open: typeof openMoney): Promise<Stores> {
  const { config, logger, metrics, restService } = base;
  const { dataDir, journalMs, arePaymentsOff: isOff, tracing } = config;
  const redisUrl = config.redisUrl?.reveal();
  const receiptOwner = createReceiptOwners(base, () => auth);
  const log = await openEventLog({
    redisUrl,
    dataDir,
    retention: config.eventsRetention,
    retentionBytes: config.eventsRetentionBytes,
    metrics: metrics.events,
    topics: createEventTopics(receiptOwner),
    names: eventNames,
    logger,
  });
  const events = tracing?.log(log) ?? log;
  const money = await open({ redisUrl, dataDir, journalMs, isOff, logger, metrics: metrics.money });
  metrics.money.watch(money);
  // Over connections that neither reads nor payments take, which in service mode nothing else uses: reads and payments that hang, or that
  // fail, keep nobody from the gateway's token.
  const tokenRest = (clientId: string, authorize: Authorize) =>
    restService.rest(clientId, authorize, 'probes');
  const auth = await createAuthenticator(config, tokenRest, logger, metrics.serving.tokens);
  let problem: string | undefined;
  const isAvailable = async (): Promise<boolean> => {
    const isSo = await money.isAvailable();
    const now = money.problem();
    if (now !== problem) {
      if (now === undefined) logger.info({}, 'The record of payments can be written again');
      else logger.warn({}, `No payment is sent: ${now}`);
    }
    problem = now;
    return isSo;
  };
  const find = async () => {
    try {
      const held = money.held().catch(() => []);
      return await Promise.all([events.health(), isAvailable(), held]);
    } catch (err) {
      // None of them fails because a store is away, so this is unexpected.
      logger.error({ err }, 'The stores could not be looked at');
      throw err;
    }
  };
  const look = lastKnown(find, { freshMs: LOOKED_AT_MS, waitMs: WAIT_FOR_LOOK_MS });
  return {
    events,
    money,
    auth,
    receiptOwner,
    async condition() {
      const known = await look();
      if (known === undefined) return undefined;
      const [health, paymentsAvailable, holds] = known.found;
      const paymentsHeld = holds.map(({ why }) => why);
      return {
        events: health,
        paymentsAvailable,
        paymentsProblem: problem,
        paymentsHeld,
        ageMs: known.ageMs,
        silentMs: known.silentMs,
      };
    },
  };
}

/**
 * Makes the look-ups of receipts' owners. They are needed in service mode alone, where callers are narrowed and the gateway
 * has a credential of its own.
 */
function createReceiptOwners({ config, logger, metrics, restService }: Base, auth: () => Authenticator) {
  const sourceOwners = createSourceOwners();
  return createReceiptOwner(
    {
      known: sourceOwners.known,
      find: (party, clientId, transactionId, isSettled) => {
        const rest = restService
          .rest(clientId, auth().authorize('', clientId), 'reads')
          .sharedBy(party, true);
        return sourceOwners.find(rest, transactionId, isSettled);
      },
    },
    config.upstreamTimeoutMs,
    createUnattributed(logger, metrics.events.unattributed),
  );
}
