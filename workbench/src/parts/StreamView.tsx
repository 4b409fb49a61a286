import { isObject, type Result } from '../net/result.ts';
import type { Transport } from '../net/stream.ts';
import { WATCH_MONEY_IN } from '../story.ts';
import {
  clearStream,
  dropStream,
  pauseStream,
  type Stream,
  type StreamEvent,
  type StreamNote,
  setTransport,
} from '../streams.ts';
import { CopyButton } from './CopyButton.tsx';
import { plural, timeOf } from './format.ts';

const STATUS: Readonly<Record<Stream['status'], string>> = {
  connecting: 'Connecting',
  live: 'Live',
  cut: 'Cut: reconnecting',
  ended: 'Ended',
};

interface Props {
  readonly tab: string;
  readonly title: string;
  readonly stream: Stream;
  readonly onCredit: (() => void) | undefined;
}

/** The events of one subscription, newest first. */
export function StreamView({ tab, title, stream, onCredit }: Props) {
  const { status, entries, frozen, count, transport } = stream;
  const shown = frozen ?? entries;
  const waiting = frozen === undefined ? 0 : entries.filter(({ key }) => key > (frozen[0]?.key ?? 0)).length;
  const isPaused = frozen !== undefined;
  return (
    <section className="wb-stream" aria-label="Events">
      <header>
        <span className={`wb-status wb-${status}`} role="status">
          {STATUS[status]}
        </span>
        <span>{plural(count, 'event')}</span>
        {waiting > 0 && <span className="wb-badge">{waiting} waiting</span>}
        <span className="wb-actions">
          <label className="wb-transport">
            <span className="wb-hidden">Transport</span>
            <select
              value={transport}
              onChange={(event) => setTransport(tab, event.target.value as Transport)}
            >
              <option value="SSE">SSE</option>
              <option value="WS">WebSocket</option>
            </select>
          </label>
          <button
            type="button"
            className="wb-button"
            aria-pressed={isPaused}
            onClick={() => pauseStream(tab, !isPaused)}
          >
            {isPaused ? 'Go on' : 'Pause'}
          </button>
          <button
            type="button"
            className="wb-button"
            onClick={() => (status === 'ended' ? dropStream(tab) : clearStream(tab))}
          >
            {status === 'ended' ? 'Close' : 'Clear'}
          </button>
          <CopyButton
            label="Copy"
            text={() =>
              JSON.stringify(
                shown.filter(isEvent).map(({ result }) => result),
                null,
                2,
              )
            }
          />
        </span>
      </header>
      {shown.length === 0 ? (
        <div className="wb-empty">
          <p>{status === 'live' ? 'Listening. Nothing has happened yet.' : STATUS[status]}</p>
          {title === WATCH_MONEY_IN && onCredit !== undefined && status === 'live' && (
            <button type="button" className="wb-button wb-primary" onClick={onCredit}>
              Simulate a credit
            </button>
          )}
        </div>
      ) : (
        <ol className="wb-events">
          {shown.map((entry) =>
            isEvent(entry) ? (
              <Event
                key={entry.key}
                event={entry}
                isOpen={entry.key === shown.find(isEvent)?.key && count < 3}
              />
            ) : (
              <li key={entry.key} className="wb-note">
                <time>{timeOf(entry.at)}</time> {entry.text}
              </li>
            ),
          )}
        </ol>
      )}
    </section>
  );
}

const isEvent = (entry: StreamEvent | StreamNote): entry is StreamEvent => 'result' in entry;

function Event({ event, isOpen }: { readonly event: StreamEvent; readonly isOpen: boolean }) {
  const { type, says, receipt } = described(event.result);
  const isError = event.result.errors !== undefined;
  return (
    <li className="wb-event">
      <details open={isOpen}>
        <summary>
          <time>{timeOf(event.at)}</time>
          <span className={isError ? 'wb-badge wb-bad' : 'wb-badge wb-good'}>{type}</span>
          <span className="wb-says">{says}</span>
          {event.wasMissed && <span className="wb-badge">caught up</span>}
          {event.cursor !== undefined && (
            <code className="wb-cursor" title={`Cursor ${event.cursor}`}>
              {event.cursor}
            </code>
          )}
        </summary>
        <pre>{JSON.stringify(event.result, null, 2)}</pre>
      </details>
      {receipt !== undefined && (
        <a className="wb-button wb-primary" href={receipt} target="_blank" rel="noopener noreferrer">
          Open the receipt
        </a>
      )}
    </li>
  );
}

/** What a line says of an event, whatever was selected of it. */
function described({ data, errors }: Result): { type: string; says: string; receipt?: string | undefined } {
  const [error] = errors ?? [];
  if (error !== undefined) {
    return { type: String(error.extensions?.['code'] ?? 'ERROR'), says: error.message };
  }
  const [[field, payload] = ['event', undefined]] = Object.entries(data ?? {});
  if (!isObject(payload)) return { type: field, says: '' };
  const { cep, amount, payer, type, kind, rawStatus } = payload;
  const parts: unknown[] = [
    isObject(amount) ? `${String(amount['amount'])} ${String(amount['currency'] ?? '')}` : undefined,
    isObject(payer) && typeof payer['name'] === 'string' ? `from ${payer['name']}` : undefined,
    isObject(cep) ? cep['beneficiaryName'] : undefined,
    isObject(cep) ? undefined : rawStatus,
  ];
  const status = isObject(cep) ? cep['status'] : undefined;
  const isDone = status === 'COMPLETED';
  return {
    type: String(status ?? type ?? kind ?? field),
    says: parts.filter((part) => typeof part === 'string' && part !== '').join(' '),
    receipt: isDone && isObject(cep) && typeof cep['url'] === 'string' ? webAddress(cep['url']) : undefined,
  };
}

/** Only what a browser may open as a page: an address is text that came over the wire. */
const webAddress = (text: string): string | undefined =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : undefined;
