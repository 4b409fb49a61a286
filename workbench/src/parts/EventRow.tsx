import type { Described } from '../described.ts';
import type { StreamEvent } from '../stream-store.ts';
import { t } from '../words.ts';
import { timeOf } from './format.ts';

interface Props {
  readonly event: StreamEvent;
  readonly description: Described;
  readonly isOpen: boolean;
  readonly cursorLabel: (cursor: string) => string;
  /** Shows all that came of the payment; undefined where nobody can tell. */
  readonly onPayment: ((transactionId: string) => void) | undefined;
}

/** One event of a stream, which opens to its JSON. */
export function EventRow({ event, description, isOpen, cursorLabel, onPayment }: Props) {
  const { type, says, receipt, transactionId } = description;
  const isError = event.result.errors !== undefined;
  return (
    <li className="wb-event">
      <details open={isOpen}>
        <summary>
          <time>{timeOf(event.at)}</time>
          <span className={isError ? 'wb-badge wb-bad' : 'wb-badge wb-good'}>{type}</span>
          <span className="wb-says">{says}</span>
          {event.wasMissed && <span className="wb-badge">{t('caught up')}</span>}
          {event.cursor !== undefined && (
            <code className="wb-cursor" title={t('Cursor {cursor}', { cursor: event.cursor })}>
              {cursorLabel(event.cursor)}
            </code>
          )}
        </summary>
        <pre>{JSON.stringify(event.result, null, 2)}</pre>
        {transactionId !== undefined && onPayment !== undefined && (
          <button type="button" className="wb-button wb-payment" onClick={() => onPayment(transactionId)}>
            {t('What happened to this payment')}
          </button>
        )}
      </details>
      {receipt !== undefined && (
        <a className="wb-button wb-primary" href={receipt} target="_blank" rel="noopener noreferrer">
          {t('Open the receipt')}
        </a>
      )}
    </li>
  );
}
