import { useState } from 'react';
import type { Answer } from '../net/execute.ts';
import type { UpstreamCall } from '../net/result.ts';
import { counted, t } from '../words.ts';
import { bytes, milliseconds } from './format.ts';
import { Path } from './Path.tsx';

/** The REST calls beneath a result, on the time that the answer took. */
export function Waterfall({ answer }: { readonly answer: Answer }) {
  const [isRaw, showRaw] = useState(false);
  const upstream = answer.upstream?.toSorted((a, b) => a.began - b.began);
  const total = answer.milliseconds;
  return (
    <section className="wb-waterfall" aria-label={t('REST calls')}>
      <header>
        <Summary upstream={upstream} />
        <span>{milliseconds(total)}</span>
        <span>{bytes(answer.bytes)}</span>
        {answer.status !== 200 && <span className="wb-badge wb-bad">HTTP {answer.status}</span>}
        {upstream !== undefined && upstream.length > 0 && (
          <button type="button" className="wb-button wb-plain" onClick={() => showRaw(!isRaw)}>
            {isRaw ? t('Show bars') : t('Show JSON')}
          </button>
        )}
      </header>
      {isRaw ? (
        <pre>{JSON.stringify({ upstream, way: answer.result.extensions?.['way'] }, null, 2)}</pre>
      ) : (
        <ol>
          {upstream?.map((call, index) => (
            // The report is a list that never changes: a call is known by its place.
            // biome-ignore lint/suspicious/noArrayIndexKey: see above
            <Call key={index} call={call} total={total} />
          ))}
        </ol>
      )}
    </section>
  );
}

function Call({ call, total }: { readonly call: UpstreamCall; readonly total: number }) {
  const { method, path, status, began, milliseconds: took, batched, coalesced, cached, identifies } = call;
  const start = Math.min(Math.max(0, began), total);
  const left = total === 0 ? 0 : (start / total) * 100;
  const width = total === 0 ? 0 : (Math.min(took, total - start) / total) * 100;
  const isBad = status === null ? !cached : status >= 400;
  return (
    <li data-began={began} data-milliseconds={took}>
      <span className="wb-call">
        <b>{method}</b> <Path path={path} />
      </span>
      <span className="wb-badges">
        {cached ? (
          <span className="wb-badge" title={t('Answered from the gateway’s memory')}>
            {t('cached')}
          </span>
        ) : (
          <span className={`wb-badge ${isBad ? 'wb-bad' : 'wb-good'}`}>{status ?? t('no answer')}</span>
        )}
        {identifies === true && (
          <span className="wb-badge" title={t('Asks the service whose the token is: once a minute at most')}>
            {t('token')}
          </span>
        )}
        {batched > 1 && (
          <span className="wb-badge" title={t('The list answers {count} look-ups', { count: batched })}>
            {t('batched ×{count}', { count: batched })}
          </span>
        )}
        {coalesced && (
          <span className="wb-badge" title={t('Another operation made this call')}>
            {t('shared')}
          </span>
        )}
      </span>
      <span className="wb-lane" aria-hidden="true">
        {!cached && (
          <span
            className={isBad ? 'wb-bar wb-bad' : 'wb-bar'}
            style={{ left: `${left}%`, width: `max(3px, ${width}%)` }}
          />
        )}
      </span>
      <span className="wb-time">{cached ? '' : milliseconds(took)}</span>
    </li>
  );
}

/**
 * What a result took: `1 request, 4 REST calls, 1.1 round trips`. What was answered from memory counts as a call, and is named. What
 * asks whose the token is belongs to no operation, and is named apart.
 */
function Summary({ upstream }: { readonly upstream: readonly UpstreamCall[] | undefined }) {
  const [isExplained, explain] = useState(false);
  if (upstream === undefined) return <strong>{t('1 request')}</strong>;
  if (upstream.length === 0) return <strong>{t('1 request, no REST call')}</strong>;
  const asked = upstream.filter(({ identifies }) => identifies !== true);
  const cached = asked.filter((call) => call.cached).length;
  const calls = counted(asked.length, '{count} REST call', '{count} REST calls');
  const known = cached === 0 ? '' : ` (${t('{count} from memory', { count: cached })})`;
  const trips = tripsOf(asked);
  const isIdentified = asked.length < upstream.length;
  const explained = t(
    'That many calls, one after another, would have taken as long. The gateway sends what it can at the same time.',
  );
  return (
    <strong>
      {t('1 request')}, {calls}
      {known}
      {trips !== undefined && (
        <>
          ,{' '}
          <button
            type="button"
            className="wb-term"
            title={explained}
            aria-expanded={isExplained}
            onClick={() => explain(!isExplained)}
          >
            {trips}
          </button>
        </>
      )}
      {isIdentified && <span className="wb-aside"> {t('+ 1 to check the token')}</span>}
      {isExplained && <span className="wb-explained">{explained}</span>}
    </strong>
  );
}

function tripsOf(upstream: readonly UpstreamCall[]): string | undefined {
  const made = upstream.filter(({ cached }) => !cached);
  if (made.length === 0) return undefined;
  const start = Math.min(...made.map(({ began }) => began));
  const end = Math.max(...made.map(({ began, milliseconds: took }) => began + took));
  const longest = Math.max(...made.map(({ milliseconds: took }) => took));
  const trips = longest === 0 ? 1 : Math.max(1, (end - start) / longest);
  return counted(Number(trips.toFixed(1)), '{count} round trip', '{count} round trips');
}
