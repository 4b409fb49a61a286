import { isGap, Refused } from '@pasarela/client';
import type { FeedState } from '@pasarela/client/react';
import { useState } from 'react';
import { useSpeech } from '../ui/i18n.tsx';
import type { Credit } from './documents.ts';

interface MoneyInProps {
  readonly feed: FeedState<Credit>;
  readonly simulateCredit: (() => Promise<void>) | undefined;
}

export function MoneyIn({ feed, simulateCredit }: MoneyInProps) {
  const { t } = useSpeech();
  const { items, gap, problem } = feed;
  const credits = items.filter((item): item is Credit => !isGap(item));
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
          {problem.message}
        </p>
      )}
      {simulateCredit !== undefined && <Simulate simulateCredit={simulateCredit} />}
      {credits.length === 0 ? (
        <div className="card empty">
          <p>{t.credits.empty}</p>
          <p className="note">{t.credits.emptyNote}</p>
        </div>
      ) : (
        <ol className="card credits" aria-label={t.credits.list}>
          {credits.map((credit) => (
            <CreditRow key={credit.cursor} credit={credit} />
          ))}
        </ol>
      )}
    </div>
  );
}

function Status({ feed: { status, missing, problem } }: { readonly feed: FeedState<Credit> }) {
  const { t } = useSpeech();
  const text = {
    live: t.credits.live,
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

function Simulate({ simulateCredit }: { readonly simulateCredit: () => Promise<void> }) {
  const { t } = useSpeech();
  const [problem, setProblem] = useState<string>();
  const press = () => {
    setProblem(undefined);
    simulateCredit().catch((error: unknown) => setProblem(String(error)));
  };
  return (
    <div className="simulate">
      <button type="button" onClick={press}>
        {t.credits.simulate}
      </button>
      <span className="note">{t.credits.simulated}</span>
      {problem !== undefined && <span role="alert">{problem}</span>}
    </div>
  );
}

function CreditRow({ credit }: { readonly credit: Credit }) {
  const { t, money, time } = useSpeech();
  const { payer, beneficiary, amount, paymentConcept, receivedAt, decision } = credit;
  const name = payer.name ?? t.credits.anonymous;
  const badge = t.credits.decisions[decision];
  const to = beneficiary.name ?? beneficiary.account;
  return (
    <li>
      <span className="avatar" aria-hidden="true">
        {name.slice(0, 1)}
      </span>
      <span className="who">
        <span>
          <strong>{name}</strong>
          {badge !== undefined && <span className={`badge ${decision.toLowerCase()}`}>{badge}</span>}
        </span>
        <span className="note">{[paymentConcept, to && t.credits.to(to)].filter(Boolean).join(' · ')}</span>
      </span>
      <span className="amount">
        <strong>+{money(amount.amount, amount.currency)}</strong>
        <time className="note" dateTime={receivedAt}>
          {time(receivedAt)}
        </time>
      </span>
    </li>
  );
}
