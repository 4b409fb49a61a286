import { isGap, Refused } from '@pasarela/client';
import type { FeedState } from '@pasarela/client/react';
import { useEffect, useState } from 'react';
import { useSpeech } from '../ui/i18n.tsx';
import { explain } from '../ui/problem.ts';
import { CreditRow } from './credit.tsx';
import type { Credit } from './documents.ts';
import { EVERYTHING, type Filter, FilterBar, filtered } from './filter.tsx';

interface MoneyInProps {
  readonly feed: FeedState<Credit>;
  readonly simulateCredit: (() => Promise<void>) | undefined;
}

export function MoneyIn({ feed, simulateCredit }: MoneyInProps) {
  const { t } = useSpeech();
  const { items, gap, problem } = feed;
  return (
    <div className="narrow">
      <div className="title-row">
        <h1>{t.credits.title}</h1>
        <Status feed={feed} />
      </div>
      <p className="lead">{t.credits.lead}</p>
      {gap !== undefined && (
        <p role="status" className="notice">
          {t.credits.startedOver}
        </p>
      )}
      {problem instanceof Refused && (
        <p role="alert" className="notice bad">
          {explain(problem, t)}
        </p>
      )}
      {simulateCredit !== undefined && (
        <Simulate simulateCredit={simulateCredit} isLive={feed.status === 'live'} />
      )}
      <Credits credits={items.filter((item): item is Credit => !isGap(item))} />
    </div>
  );
}

function Credits({ credits }: { readonly credits: readonly Credit[] }) {
  const { t } = useSpeech();
  const [filter, setFilter] = useState<Filter>(EVERYTHING);
  if (credits.length === 0) {
    return (
      <div className="card empty">
        <p>{t.credits.empty}</p>
        <p className="note">{t.credits.emptyNote}</p>
      </div>
    );
  }
  const shown = filtered(credits, filter);
  return (
    <>
      <FilterBar filter={filter} onChange={setFilter} shown={shown.length} total={credits.length} />
      {shown.length === 0 ? (
        <p className="card empty note">{t.credits.none}</p>
      ) : (
        <ol className="card credits" aria-label={t.credits.list}>
          {shown.map((credit) => (
            <CreditRow key={credit.cursor} credit={credit} />
          ))}
        </ol>
      )}
    </>
  );
}

function Status({ feed: { status, missing, problem } }: { readonly feed: FeedState<Credit> }) {
  const { t } = useSpeech();
  const text = {
    // A browser that is out of room holds credits back.
    live: problem === undefined ? t.credits.live : t.credits.catchingUp,
    ended: t.credits.ended,
    // Nothing has gone wrong yet.
    offline: problem === undefined ? t.credits.connecting : t.credits.offline,
    gap: t.credits.catchingUp,
    'catching up': missing > 0 ? t.credits.catchingUpWith(missing) : t.credits.catchingUp,
  }[status];
  return (
    <span role="status" className={`status ${status.replace(' ', '-')}`}>
      {text}
    </span>
  );
}

interface SimulateProps {
  readonly simulateCredit: () => Promise<void>;
  /** What failed while the gateway was away is over once it is back. */
  readonly isLive: boolean;
}

function Simulate({ simulateCredit, isLive }: SimulateProps) {
  const { t } = useSpeech();
  const [problem, setProblem] = useState<unknown>();
  useEffect(() => {
    if (isLive) setProblem(undefined);
  }, [isLive]);
  const press = () => {
    setProblem(undefined);
    simulateCredit().catch(setProblem);
  };
  return (
    <div className="simulate">
      <button type="button" onClick={press}>
        {t.credits.simulate}
      </button>
      <span className="note">{t.credits.simulated}</span>
      {problem !== undefined && (
        <span role="alert" className="bad-text">
          {explain(problem, t)}
        </span>
      )}
    </div>
  );
}
