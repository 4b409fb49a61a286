import { Refused, type Source } from '@pasarela/client';
import { useCepStatus } from '@pasarela/client/react';
import { useEffect, useMemo } from 'react';
import { Linking, ScrollView, Text, View } from 'react-native';
import type { VerificationQuery, WatchReceiptSubscription } from '../gql/graphql.ts';
import { presence } from '../graph/presence.ts';
import { useQuery } from '../graph/use-query.ts';
import { useSpeech } from '../ui/i18n.tsx';
import { Button, Failure, Loading, Notice } from '../ui/parts.tsx';
import { explain } from '../ui/problem.ts';
import { useStyles } from '../ui/theme.ts';
import { VERIFICATION, WATCH_RECEIPT } from './documents.ts';
import type { Leaving } from './payments.ts';
import { type Verdict, verdictOf } from './verdict.ts';

type Cep = WatchReceiptSubscription['cepStatus']['cep'];
type Transaction = NonNullable<VerificationQuery['transaction']>;
type Destination = Transaction['destination'];

interface ProgressProps {
  readonly source: Source;
  readonly transactionId: string;
  readonly onAnother: (how: Leaving) => void;
}

/** How long to wait before a transaction that the service does not show yet is read again, in milliseconds. */
const AGAIN_MS = 2_000;

/** One verification, from its cent to its receipt. */
export function Progress({ source, transactionId, onAnother }: ProgressProps) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const variables = useMemo(() => ({ transactionId }), [transactionId]);
  const { data, problem: unread, again } = useQuery(source, VERIFICATION, variables);
  const { update, status, problem } = useCepStatus(source, transactionId, WATCH_RECEIPT, presence);
  // A new transaction may be read before the service shows it. Where there is none, the watch of its receipt ends.
  useEffect(() => {
    if (data?.transaction !== null || status === 'ended') return;
    const timer = setTimeout(again, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [data, status, again]);
  const transaction = data?.transaction ?? null;
  if (unread !== undefined && transaction === null) return <Failure problem={unread} onRetry={again} />;
  if (transaction === null && status !== 'ended') return <Loading />;
  const isTold = problem !== undefined && (status === 'offline' || status === 'ended');
  const cep = update?.cep;
  const destination = transaction?.destination ?? null;
  const verdict = verdictOf(cep, registeredHolder(destination));
  const title = {
    pending: t.progress.title,
    failed: t.progress.failed,
    matches: t.progress.done,
    differs: t.progress.differs,
    'not registered': t.progress.told,
  }[verdict];
  return (
    <ScrollView contentContainerStyle={styles.content}>
      <Text role="heading" aria-level={1} style={[styles.title, verdict === 'differs' && styles.mismatch]}>
        {title}
      </Text>
      {transaction === null || isRefused(problem) ? (
        <Notice bad>
          {problem instanceof Refused && problem.code !== 'BAD_USER_INPUT'
            ? explain(problem, t)
            : t.progress.notFound}
        </Notice>
      ) : (
        <View style={styles.card}>
          {isTold && <Notice>{explain(problem, t)}</Notice>}
          <Steps cep={cep} verdict={verdict} transaction={transaction} />
          {cep?.status === 'COMPLETED' && <Result cep={cep} verdict={verdict} transaction={transaction} />}
        </View>
      )}
      <Button
        title={t.progress.another}
        onPress={() => onAnother(status === 'final' ? 'seen' : status === 'ended' ? 'untold' : 'early')}
      />
    </ScrollView>
  );
}

/** True if the gateway will never tell the state. What is lost or fails for a while is tried again, and what is known stays. */
const isRefused = (problem: unknown): problem is Refused =>
  problem instanceof Refused && ['BAD_USER_INPUT', 'FORBIDDEN'].includes(problem.code);

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
  const { styles } = useStyles();
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
  const sent = [destination?.alias && t.progress.sentNote(destination.alias), sentAt && time(sentAt)];
  return (
    <View style={styles.padded} aria-live="polite" aria-label={t.progress.steps}>
      <Step state="done" title={t.progress.sent} note={sent.filter(Boolean).join(' · ')} />
      <Step
        state={status === 'COMPLETED' ? 'done' : status === 'FAILED' ? 'failed' : 'current'}
        title={status === 'FAILED' ? t.progress.failed : t.progress.requested}
        note={waiting}
      />
      <Step
        state={status === 'COMPLETED' ? (verdict === 'differs' ? 'failed' : 'done') : 'later'}
        title={status === 'COMPLETED' ? t.progress.received : t.progress.toReceive}
        note={cep?.processedAt ? time(cep.processedAt) : undefined}
      />
    </View>
  );
}

interface StepProps {
  readonly state: 'done' | 'current' | 'failed' | 'later';
  readonly title: string;
  readonly note: string | undefined;
}

function Step({ state, title, note }: StepProps) {
  const { styles } = useStyles();
  const mark = {
    done: styles.markDone,
    current: styles.markCurrent,
    failed: styles.markFailed,
    later: undefined,
  };
  return (
    <View style={styles.step}>
      <View style={[styles.mark, mark[state]]} aria-hidden>
        <Text style={styles.markText}>{{ done: '✓', failed: '×', current: '', later: '' }[state]}</Text>
      </View>
      <View style={styles.grow}>
        <Text style={[styles.strong, state === 'later' && styles.later]}>{title}</Text>
        {note !== undefined && <Text style={styles.note}>{note}</Text>}
      </View>
    </View>
  );
}

interface ResultProps {
  readonly cep: Cep;
  readonly verdict: Verdict;
  readonly transaction: Transaction;
}

/** The holder that the receipt names beside the one that was registered, and where the cent went. */
function Result({ cep, verdict, transaction: { destination, trackingId } }: ResultProps) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const detail = destination?.detail;
  const registered = registeredHolder(destination);
  const name = [styles.holder, verdict === 'differs' && styles.mismatch];
  const { url } = cep;
  return (
    <View style={[styles.padded, styles.divided]}>
      {verdict === 'differs' && <Notice bad>{t.progress.differsNote}</Notice>}
      {verdict === 'matches' && <Text style={styles.match}>✓ {t.progress.matches}</Text>}
      <View>
        <Text style={styles.note}>{t.progress.holder}</Text>
        <Text style={name} testID="holder">
          {cep.beneficiaryName}
        </Text>
      </View>
      {registered !== null && (
        <View>
          <Text style={styles.note}>{t.progress.registered}</Text>
          <Text style={name} testID="registered">
            {registered}
          </Text>
        </View>
      )}
      <Fact name={t.progress.rfc} value={cep.beneficiaryRfc} />
      <Fact name={t.progress.bank} value={destination?.bank?.name} />
      <Fact name={t.progress.clabe} value={detail && 'clabe' in detail ? detail.clabe : null} />
      <Fact name={t.progress.trackingKey} value={trackingId} />
      {url !== null && (
        <Button primary role="link" title={t.progress.receipt} onPress={() => void Linking.openURL(url)} />
      )}
    </View>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string | null | undefined }) {
  const { styles } = useStyles();
  return (
    <View>
      <Text style={styles.note}>{name}</Text>
      <Text style={styles.text} selectable>
        {value ?? '—'}
      </Text>
    </View>
  );
}
