import type { SettlingCalls } from '../../money/settling/open-payment.ts';
import type { OpenPayment } from '../../money/settling/open-records.ts';
import { isDocumentedError } from '../../upstream/call/documented-error.ts';
import type { Rest } from '../../upstream/call/rest.ts';
import { sendMoneyOut } from '../../upstream/transactions.ts';
import { Evidence, lookForRefund } from './evidence.ts';
import { codeBy, renewal } from './paying.ts';
import { compare } from './payment-answer.ts';
import { TRANSFER_RULES } from './service-refusals.ts';
import type { Sightings } from './sightings.ts';

interface SettlingOptions {
  readonly clientId: string;
  /** What events of the client name. */
  readonly sightings: Sightings;
  /** Offset of the service's timestamps that carry none. */
  readonly utcOffset: string;
  /** REST calls for one payment, whose time is bounded. */
  readonly rest: () => Rest;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called once a payment has been sent again, whatever was answered: it may have moved money. */
  readonly onSent: () => void;
  /** As in {@link SettlingCalls}. */
  readonly isOver: () => boolean;
}

/** The number of a repeat, as {@link renewal} knows it. */
const REPEAT = 2;

/** How the open payments of a client are settled over REST and by the log of its events. */
export function createSettlingCalls(options: SettlingOptions): SettlingCalls {
  const { clientId, sightings, utcOffset, rest, now, onSent, isOver } = options;
  const evidence = new Evidence(sightings, utcOffset);
  return {
    async repeat({ body }, upstreamKey) {
      const attempt = await sendMoneyOut(rest(), body, upstreamKey, renewal('createMoneyOut', REPEAT));
      onSent();
      return attempt;
    },
    reading: ({ asked }: OpenPayment) => ({
      compare: (answer) =>
        compare(
          {
            mutation: asked.operation,
            clientId,
            amount: asked.amount ?? undefined,
            ...(asked.source === null ? {} : { sourceInstrumentId: asked.source }),
            ...(asked.destination === null ? {} : { destinationInstrumentId: asked.destination }),
          },
          answer,
        ),
      isServiceError: isDocumentedError,
    }),
    codeOf: codeBy(TRANSFER_RULES),
    look: (payment, book) =>
      payment.asked.operation === 'refundTransaction'
        ? lookForRefund(payment, rest(), book)
        : evidence.look(payment, rest(), book, now()),
    isOver,
  };
}
