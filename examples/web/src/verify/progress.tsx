import { Refused, type Source } from '@pasarela/client';
import { useCepStatus } from '@pasarela/client/react';
import { useEffect, useRef } from 'react';
import { useQuery } from 'urql';
import type { VerificationQuery, WatchReceiptSubscription } from '../gql/graphql.ts';
import { Failure, Loading } from '../ui/feedback.tsx';
import { useSpeech } from '../ui/i18n.tsx';
import type { Messages } from '../ui/messages.ts';
import { VERIFY } from '../ui/route.ts';
import { VERIFICATION, WATCH_RECEIPT } from './documents.ts';

type Cep = WatchReceiptSubscription['cepStatus']['cep'];
type Destination = NonNullable<VerificationQuery['transaction']>['destination'];

interface ProgressProps {
  readonly source: Source;
  readonly transactionId: string;
}

/** One verification, from its cent to its receipt. The address names it, so that it can be left and come back to. */
export function Progress({ source, transactionId }: ProgressProps) {
  const { t } = useSpeech();
  const [{ data, error: readError }, again] = useQuery({ query: VERIFICATION, variables: { transactionId } });
  const { update, problem } = useCepStatus(source, transactionId, WATCH_RECEIPT);
  const heading = useRef<HTMLHeadingElement>(null);
  const isRead = data !== undefined;
  useEffect(() => {
    // The page has changed beneath the person who pressed the button.
    if (isRead) heading.current?.focus();
  }, [isRead]);

  if (readError !== undefined) {
    return <Failure error={readError} onRetry={() => again({ requestPolicy: 'network-only' })} />;
  }
  if (data === undefined) return <Loading />;
  const cep = update?.cep;
  const destination = data.transaction?.destination ?? null;
  return (
    <div className="narrow">
      <h1 ref={heading} tabIndex={-1}>
        {titleOf(cep, t.progress)}
      </h1>
      {data.transaction === null || problem !== undefined ? (
        <p role="alert" className="notice bad">
          {problem instanceof Refused ? problem.message : t.progress.notFound}
        </p>
      ) : (
        <div className="card">
          <Steps cep={cep} destination={destination} sentAt={data.transaction.audit.createdAt} />
          {cep?.status === 'COMPLETED' && <Holder cep={cep} destination={destination} />}
        </div>
      )}
      <p>
        <a className="button" href={VERIFY}>
          {t.progress.another}
        </a>
      </p>
    </div>
  );
}

function titleOf(cep: Cep | undefined, t: Messages['progress']): string {
  if (cep?.status === 'COMPLETED') return t.done;
  return cep?.status === 'FAILED' ? t.failed : t.title;
}

interface StepsProps {
  readonly cep: Cep | undefined;
  readonly destination: Destination;
  readonly sentAt: string | null;
}

function Steps({ cep, destination, sentAt }: StepsProps) {
  const { t, time } = useSpeech();
  const status = cep?.status ?? 'PENDING';
  const waiting = {
    COMPLETED: undefined,
    FAILED: t.progress.failedNote,
    DELAYED: t.progress.delayedNote,
    PENDING: t.progress.waitingNote,
    OTHER: t.progress.waitingNote,
  }[status];
  const ended = status === 'COMPLETED' ? 'done' : status === 'FAILED' ? 'failed' : 'current';
  return (
    <ol className="steps" aria-label={t.progress.steps} aria-live="polite" data-status={status}>
      <li className="done">
        <strong>{t.progress.sent}</strong>
        <span className="note">
          {[destination?.alias && t.progress.sentNote(destination.alias), sentAt && time(sentAt)]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </li>
      <li className={ended} aria-current={ended === 'current' ? 'step' : undefined}>
        <strong>{status === 'FAILED' ? t.progress.failed : t.progress.requested}</strong>
        {waiting !== undefined && <span className="note">{waiting}</span>}
      </li>
      <li className={status === 'COMPLETED' ? 'done' : 'later'}>
        <strong>{t.progress.received}</strong>
        {cep?.processedAt && <span className="note">{time(cep.processedAt)}</span>}
      </li>
    </ol>
  );
}

function Holder({ cep, destination }: { readonly cep: Cep; readonly destination: Destination }) {
  const { t } = useSpeech();
  const { detail } = destination ?? {};
  const registered = detail && 'holderName' in detail ? detail.holderName : null;
  const isSame = registered !== null && same(registered, cep.beneficiaryName ?? '');
  return (
    <div className="holder">
      <dl>
        <div>
          <dt>{t.progress.holder}</dt>
          <dd className="name">{cep.beneficiaryName}</dd>
        </div>
        <div>
          <dt>{t.progress.rfc}</dt>
          <dd>{cep.beneficiaryRfc ?? '—'}</dd>
        </div>
      </dl>
      {registered !== null && (
        <p className={isSame ? 'match good' : 'match bad'}>
          {isSame ? t.progress.matches : `${t.progress.differs}: ${registered}`}
        </p>
      )}
      {cep.url !== null && (
        <a className="button primary" href={cep.url} target="_blank" rel="noreferrer">
          {t.progress.receipt}
        </a>
      )}
    </div>
  );
}

/** Receipts are written in capitals, and often without accents. */
function same(one: string, other: string): boolean {
  return one.localeCompare(other, 'es', { sensitivity: 'base', ignorePunctuation: true }) === 0;
}
