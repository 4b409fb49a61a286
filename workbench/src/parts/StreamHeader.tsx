import type { Transport } from '../net/stream.ts';
import { type Entry, isEvent, type Stream } from '../stream-store.ts';
import { clearStream, dropStream, pauseStream, setTransport } from '../streams.ts';
import { counted, t } from '../words.ts';
import { CopyButton } from './CopyButton.tsx';

export const statusOf = (status: Stream['status']): string =>
  ({
    connecting: t('Connecting'),
    live: t('Live'),
    cut: t('Cut: reconnecting'),
    waiting: t('Waiting for a token'),
    ended: t('Ended'),
  })[status];

interface Props {
  readonly tab: string | undefined;
  readonly stream: Stream;
  readonly shown: readonly Entry[];
}

/** How a stream stands, and what can be done with it. */
export function StreamHeader({ tab, stream, shown }: Props) {
  const { status, entries, frozen, count, transport } = stream;
  const waiting = frozen === undefined ? 0 : entries.filter(({ key }) => key > (frozen[0]?.key ?? 0)).length;
  return (
    <header>
      <span className={`wb-status wb-${status}`} role="status">
        {statusOf(status)}
      </span>
      <span>{counted(count, '{count} event', '{count} events')}</span>
      {waiting > 0 && <span className="wb-badge">{t('{count} waiting', { count: waiting })}</span>}
      <span className="wb-actions">
        {tab !== undefined && (
          <Steering tab={tab} status={status} transport={transport} isPaused={frozen !== undefined} />
        )}
        <CopyButton
          label={t('Copy')}
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
  );
}

interface SteeringProps {
  readonly tab: string;
  readonly status: Stream['status'];
  readonly transport: Transport;
  readonly isPaused: boolean;
}

function Steering({ tab, status, transport, isPaused }: SteeringProps) {
  return (
    <>
      <label className="wb-transport">
        <span className="wb-hidden">{t('Transport')}</span>
        <select
          value={transport}
          onChange={(event) => setTransport(tab, event.target.value === 'WS' ? 'WS' : 'SSE')}
        >
          <option value="SSE">SSE</option>
          <option value="WS">WebSocket</option>
        </select>
      </label>
      {(isPaused || status !== 'ended') && (
        <button
          type="button"
          className="wb-button"
          aria-pressed={isPaused}
          onClick={() => pauseStream(tab, !isPaused)}
        >
          {isPaused ? t('Go on') : t('Pause')}
        </button>
      )}
      <button
        type="button"
        className="wb-button"
        onClick={() => (status === 'ended' ? dropStream(tab) : clearStream(tab))}
      >
        {status === 'ended' ? t('Close') : t('Clear')}
      </button>
    </>
  );
}
