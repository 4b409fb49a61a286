import { useState } from 'react';
import { ALL, described, matches, toldApart } from '../described.ts';
import { WATCH_MONEY_IN } from '../story.ts';
import { type Entry, isEvent, type Stream } from '../stream-store.ts';
import { counted, t } from '../words.ts';
import { EventFilter } from './EventFilter.tsx';
import { EventRow } from './EventRow.tsx';
import { timeOf } from './format.ts';
import { StreamHeader, statusOf } from './StreamHeader.tsx';

interface Props {
  /** Undefined where it is looked at, and can't be changed. */
  readonly tab: string | undefined;
  readonly title: string;
  readonly stream: Stream;
  readonly onCredit: (() => void) | undefined;
  readonly onPayment: ((transactionId: string) => void) | undefined;
}

/** The events of one subscription, newest first. */
export function StreamView({ tab, title, stream, onCredit, onPayment }: Props) {
  const { status, entries, frozen, count, operation } = stream;
  const [filter, setFilter] = useState(ALL);
  const all = frozen ?? entries;
  const events = all.filter(isEvent);
  const descriptions = new Map(events.map((event) => [event.key, described(event.result, operation)]));
  const isShown = (entry: Entry) => {
    const description = descriptions.get(entry.key);
    return !isEvent(entry) || description === undefined || matches(entry.result, description, filter);
  };
  const isNarrowed = filter.type !== '' || filter.text !== '';
  const shown = isNarrowed ? all.filter((entry) => isEvent(entry) && isShown(entry)) : all;
  const types = [...new Set([...descriptions.values()].map(({ type }) => type))].sort();
  const cursorLabel = toldApart(events.flatMap(({ cursor }) => cursor ?? []));
  const [newest] = shown.filter(isEvent);
  return (
    <section className="wb-stream" aria-label={t('Events')}>
      <StreamHeader tab={tab} stream={stream} shown={shown} />
      {(events.length > 1 || isNarrowed) && (
        <EventFilter
          filter={filter}
          types={types}
          shown={shown.length}
          all={events.length}
          onChange={setFilter}
        />
      )}
      {all.length === 0 ? (
        <div className="wb-empty">
          <p>{status === 'live' ? t('Listening. Nothing has happened yet.') : statusOf(status)}</p>
          {title === WATCH_MONEY_IN && onCredit !== undefined && status === 'live' && (
            <button type="button" className="wb-button wb-primary" onClick={onCredit}>
              {t('Simulate a credit')}
            </button>
          )}
        </div>
      ) : (
        <ol className="wb-events" aria-label={counted(count, '{count} event', '{count} events')}>
          {shown.map((entry) => {
            const description = descriptions.get(entry.key);
            return isEvent(entry) && description !== undefined ? (
              <EventRow
                key={entry.key}
                event={entry}
                description={description}
                isOpen={entry.key === newest?.key && count < 3}
                cursorLabel={cursorLabel}
                onPayment={onPayment}
              />
            ) : (
              <li key={entry.key} className="wb-note">
                <time>{timeOf(entry.at)}</time> {'text' in entry ? entry.text : ''}
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}
