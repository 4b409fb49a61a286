import type { RefusedKeys } from '../auth/refused-keys.ts';
import type { AlarmClock } from '../common/alarms.ts';
import type { Logger } from '../common/logger.ts';
import type { Requester } from '../common/party.ts';
import type { EventType } from '../events/log.ts';
import type { Later } from '../money/call.ts';
import type { Money } from '../money/execute.ts';
import type { Polls } from '../upstream/session/polls.ts';
import type { ReceiptPatience } from '../upstream/session/receipt-patience.ts';
import type { Identity } from './identity.ts';

/** What all operations of a process have in common. */
export interface Services {
  readonly logger: Logger;
  readonly money: Money;
  readonly ingress: IngressAddresses;
  /** Finds out whose receipts events are. */
  readonly receiptOwner: ReceiptOwner;
  /** Settles payments under their callers' own credentials; undefined where the gateway has one for all. */
  readonly settleLater: SettleLater | undefined;
  /** The readings of transactions that are made again, of all operations. */
  readonly polls: Polls;
  /** What was refused of the API keys that came before. */
  readonly refusedKeys: RefusedKeys;
  /** Offset of upstream timestamps that carry none, also where nobody is identified. */
  readonly utcOffset: string;
  /** What long waits are measured by. */
  readonly clock: AlarmClock;
}

export type SettleLater = (
  caller: Pick<Identity, 'caller' | 'requester' | 'authorize' | 'requestedBy'>,
) => Later;

/** An event that tells of a receipt (CEP). */
interface ReceiptEvent {
  readonly id: string;
  /** RFC 3339. */
  readonly receivedAt: string;
  /** The `id` of the message's body. */
  readonly bodyId: string | null;
}

/** Who wants to know whose receipts are. */
export interface ReceiptReader {
  readonly patience: ReceiptPatience;
  /** For whom it has the REST service asked. */
  readonly requester: Requester;
  /** Whether it may have the REST service asked once more: called before each such reading. Without it, it may. */
  readonly mayAsk?: (() => boolean) | undefined;
}

/**
 * Finds the owner of what paid for a receipt; null where that is nobody, or could not be found out in time.
 *
 * @throws an error with a public code where it may not.
 */
export type ReceiptOwner = (
  clientId: string,
  event: ReceiptEvent,
  reader: ReceiptReader,
) => Promise<string | null>;

/** The gateway's own receiver of webhooks, as the graph needs to know it. */
export interface IngressAddresses {
  /** Where the provider reaches it for this client and type; undefined when `PUBLIC_URL` is not set. */
  url(clientId: string, type: EventType): string | undefined;
  /** The token that a webhook feeding it is registered with. */
  token(clientId: string, type: EventType): string;
  /** Whose deliveries, and of which type, it takes in at this address; undefined if it takes none there. */
  target(url: string): { readonly clientId: string; readonly type: EventType } | undefined;
  /** Whether an address leads to it, where it may refuse what comes. */
  isOwn(url: string): boolean;
  /** The address with its signature masked; any other address as it is. */
  mask(url: string): string;
  /** Whether an address is one that was masked so. */
  isMasked(url: string): boolean;
}
