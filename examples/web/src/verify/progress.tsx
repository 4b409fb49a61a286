import { Refused, type Source } from '@pasarela/client';
import { useCepStatus } from '@pasarela/client/react';
import { useEffect, useRef } from 'react';
import { useQuery } from 'urql';
import type { VerificationQuery, WatchReceiptSubscription } from '../gql/graphql.ts';
import { Failure, Loading } from '../ui/feedback.tsx';
import { useSpeech } from '../ui/i18n.tsx';
import type { Messages } from '../ui/messages.ts';
import { explain } from '../ui/problem.ts';
import { VERIFY } from '../ui/route.ts';
import { VERIFICATION, WATCH_RECEIPT } from './documents.ts';
import { type Verdict, verdictOf } from './verdict.ts';

type Cep = WatchReceiptSubscription['cepStatus']['cep'];
type Transaction = NonNullable<VerificationQuery['transaction']>;
type Destination = Transaction['destination'];

interface ProgressProps {
  readonly source: Source;
  readonly transactionId: string;
  /** Called once somebody has seen all that can be shown of it. */
  readonly onSeen: (transactionId: string) => Promise<void>;
  /** Called where its receipt is told no more, and no end of it was shown: that is none. */
  readonly onUntold: (transactionId: string) => Promise<void>;
}

/** How long to wait before a transaction that the service does not show yet is read again, in milliseconds. */
const AGAIN_MS = 2_000;

/** One verification, from its cent to its receipt. The address names it, so that it can be left and come back to. */
export function Progress({ source, transactionId, onSeen, onUntold }: ProgressProps) {
  const { t } = useSpeech();
  const [{ data, error: readError }, again] = useQuery({ query: VERIFICATION, variables: { transactionId } });
  const { update, status, problem } = useCepStatus(source, transactionId, WATCH_RECEIPT);
  const heading = useRef<HTMLHeadingElement>(null);
  // A new transaction may be read before the service shows it. Where there is none, the watch of its receipt ends.
  useEffect(() => {
    if (data?.transaction !== null || status === 'ended') return;
    const timer = setTimeout(() => again({ requestPolicy: 'network-only' }), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [data, status, again]);
  const transaction = data?.transaction ?? null;
  const isRead = transaction !== null || status === 'ended';
  useEffect(() => {
    // The page has changed beneath the person who pressed the button.
    if (isRead) heading.current?.focus();
  }, [isRead]);
  const isShown = isRead && status === 'final';
  useEffect(() => {
    if (!isShown) return;
    // If the browser cannot keep that it was seen, it is listed once more.
    const see = () => void (document.hidden || onSeen(transactionId).catch(() => {}));
    see();
    document.addEventListener('visibilitychange', see);
    return () => document.removeEventListener('visibilitychange', see);
  }, [isShown, transactionId, onSeen]);
  useEffect(() => {
    if (status === 'ended') void onUntold(transactionId).catch(() => {});
  }, [status, transactionId, onUntold]);

  if (readError !== undefined && transaction === null) {
    return <Failure error={readError} onRetry={() => again({ requestPolicy: 'network-only' })} />;
  }
  if (!isRead) return <Loading />;
  const isTold = problem !== undefined && (status === 'offline' || status === 'ended');
  const cep = update?.cep;
  const destination = transaction?.destination ?? null;
  const verdict = verdictOf(cep, registeredHolder(destination));
  return (
    <div className="narrow">
      <h1 ref={heading} tabIndex={-1} className={verdict === 'differs' ? 'bad-text' : undefined}>
        {titleOf(verdict, t.progress)}
      </h1>
      {transaction === null || isRefused(problem) ? (
        <p role="alert" className="notice bad">
          {problem instanceof Refused && problem.code !== 'BAD_USER_INPUT'
            ? explain(problem, t)
            : t.progress.notFound}
        </p>
      ) : (
        <div className="card">
          {isTold && (
            <p role="status" className="notice">
              {explain(problem, t)}
            </p>
          )}
          <Steps cep={cep} verdict={verdict} transaction={transaction} />
          {cep?.status === 'COMPLETED' && <Result cep={cep} verdict={verdict} transaction={transaction} />}
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

/** True if the gateway will never tell the state. What is lost or fails for a while is tried again, and what is known stays. */
const isRefused = (problem: unknown): problem is Refused =>
  problem instanceof Refused && ['BAD_USER_INPUT', 'FORBIDDEN'].includes(problem.code);

const titleOf = (verdict: Verdict, t: Messages['progress']): string =>
  ({ pending: t.title, failed: t.failed, matches: t.done, differs: t.differs, 'not registered': t.told })[
    verdict
  ];

function registeredHolder(destination: Destination): string | null {
  const detail = destination?.detail;
  return detail && 'holderName' in detail ? detail.holderName : null;
}

interface StepsProps {
  readonly cep: Cep | undefined;
  readonly verdict: Verdict;
  readonly transaction: Transaction;
}

function Steps({ cep, verdict, transaction: { destination, audit } }: StepsProps) {
  const { t, time } = useSpeech();
  const sentAt = audit.createdAt;
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
      <li className={status === 'COMPLETED' ? (verdict === 'differs' ? 'failed' : 'done') : 'later'}>
        <strong>{status === 'COMPLETED' ? t.progress.received : t.progress.toReceive}</strong>
        {cep?.processedAt && <span className="note">{time(cep.processedAt)}</span>}
      </li>
    </ol>
  );
}

interface ResultProps {
  readonly cep: Cep;
  readonly verdict: Verdict;
  readonly transaction: Transaction;
}

/** The holder that the receipt names beside the one that was registered, and where the cent went. */
function Result({ cep, verdict, transaction: { destination, trackingId } }: ResultProps) {
  const { t } = useSpeech();
  const detail = destination?.detail;
  const registered = registeredHolder(destination);
  return (
    <div className="holder">
      {verdict === 'differs' && (
        <p role="alert" className="notice bad">
          {t.progress.differsNote}
        </p>
      )}
      {verdict === 'matches' && <p className="match good">{t.progress.matches}</p>}
      <dl className={verdict === 'differs' ? 'names differ' : 'names'}>
        <div>
          <dt>{t.progress.holder}</dt>
          <dd className="name">{cep.beneficiaryName}</dd>
        </div>
        {registered !== null && (
          <div>
            <dt>{t.progress.registered}</dt>
            <dd className="registered">{registered}</dd>
          </div>
        )}
      </dl>
      <dl className="facts">
        <Fact name={t.progress.rfc} value={cep.beneficiaryRfc} />
        <Fact name={t.progress.bank} value={destination?.bank?.name} />
        <Fact name={t.progress.clabe} value={detail && 'clabe' in detail ? detail.clabe : null} />
        <Fact name={t.progress.trackingKey} value={trackingId} />
      </dl>
      {cep.url !== null && (
        <a className="button primary" href={cep.url} target="_blank" rel="noreferrer">
          {t.progress.receipt}
        </a>
      )}
    </div>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string | null | undefined }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value ?? '—'}</dd>
    </div>
  );
}
