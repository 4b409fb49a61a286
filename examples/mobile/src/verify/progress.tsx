import { Refused, type Source } from '@pasarela/client';
import { useCepStatus } from '@pasarela/client/react';
import { useMemo } from 'react';
import { Linking, ScrollView, Text, View } from 'react-native';
import type { VerificationQuery, WatchReceiptSubscription } from '../gql/graphql.ts';
import { presence } from '../graph/presence.ts';
import { useQuery } from '../graph/use-query.ts';
import { useSpeech } from '../ui/i18n.tsx';
import { Button, Failure, Loading, Notice } from '../ui/parts.tsx';
import { useStyles } from '../ui/theme.ts';
import { VERIFICATION, WATCH_RECEIPT } from './documents.ts';

type Cep = WatchReceiptSubscription['cepStatus']['cep'];
type Destination = NonNullable<VerificationQuery['transaction']>['destination'];

interface ProgressProps {
  readonly source: Source;
  readonly transactionId: string;
  readonly onAnother: () => void;
}

/** One verification, from its cent to its receipt. */
export function Progress({ source, transactionId, onAnother }: ProgressProps) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const variables = useMemo(() => ({ transactionId }), [transactionId]);
  const { data, problem: unread, again } = useQuery(source, VERIFICATION, variables);
  const { update, problem } = useCepStatus(source, transactionId, WATCH_RECEIPT, presence);
  if (unread !== undefined) return <Failure problem={unread} onRetry={again} />;
  if (data === undefined) return <Loading />;
  const cep = update?.cep;
  const destination = data.transaction?.destination ?? null;
  const title =
    cep?.status === 'COMPLETED'
      ? t.progress.done
      : cep?.status === 'FAILED'
        ? t.progress.failed
        : t.progress.title;
  return (
    <ScrollView contentContainerStyle={styles.content}>
      <Text role="heading" style={styles.title}>
        {title}
      </Text>
      {data.transaction === null || problem !== undefined ? (
        <Notice bad>{problem instanceof Refused ? problem.message : t.progress.notFound}</Notice>
      ) : (
        <View style={styles.card}>
          <Steps cep={cep} destination={destination} sentAt={data.transaction.audit.createdAt} />
          {cep?.status === 'COMPLETED' && <Holder cep={cep} destination={destination} />}
        </View>
      )}
      <Button title={t.progress.another} onPress={onAnother} />
    </ScrollView>
  );
}

interface StepsProps {
  readonly cep: Cep | undefined;
  readonly destination: Destination;
  readonly sentAt: string | null;
}

function Steps({ cep, destination, sentAt }: StepsProps) {
  const { styles } = useStyles();
  const { t, time } = useSpeech();
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
        state={status === 'COMPLETED' ? 'done' : 'later'}
        title={t.progress.received}
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

function Holder({ cep, destination }: { readonly cep: Cep; readonly destination: Destination }) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const { detail } = destination ?? {};
  const registered = detail && 'holderName' in detail ? detail.holderName : null;
  const isSame = registered !== null && same(registered, cep.beneficiaryName ?? '');
  const { url } = cep;
  return (
    <View style={[styles.padded, styles.divided]}>
      <View>
        <Text style={styles.note}>{t.progress.holder}</Text>
        <Text style={styles.holder} testID="holder">
          {cep.beneficiaryName}
        </Text>
      </View>
      <View>
        <Text style={styles.note}>{t.progress.rfc}</Text>
        <Text style={styles.strong}>{cep.beneficiaryRfc ?? '—'}</Text>
      </View>
      {registered !== null && (
        <Text style={isSame ? styles.match : styles.mismatch}>
          {isSame ? `✓ ${t.progress.matches}` : `${t.progress.differs}: ${registered}`}
        </Text>
      )}
      {url !== null && (
        <Button primary role="link" title={t.progress.receipt} onPress={() => void Linking.openURL(url)} />
      )}
    </View>
  );
}

/** Letters and digits alone: receipts are written in capitals, and often without accents. */
const bare = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/[^\p{L}\p{N}]/gu, '')
    .toLowerCase();

const same = (one: string, other: string): boolean => bare(one) === bare(other);
