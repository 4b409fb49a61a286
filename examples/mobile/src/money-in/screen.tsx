import { isGap, Refused } from '@pasarela/client';
import type { FeedState } from '@pasarela/client/react';
import { useEffect, useState } from 'react';
import { FlatList, Text, View } from 'react-native';
import { useSpeech } from '../ui/i18n.tsx';
import { Button, Notice } from '../ui/parts.tsx';
import { explain } from '../ui/problem.ts';
import { useStyles } from '../ui/theme.ts';
import { CreditRow } from './credit.tsx';
import type { Credit } from './documents.ts';
import { EVERYTHING, type Filter, FilterBar, filtered } from './filter.tsx';

interface MoneyInProps {
  readonly feed: FeedState<Credit>;
  readonly simulateCredit: (() => Promise<void>) | undefined;
}

export function MoneyIn({ feed, simulateCredit }: MoneyInProps) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const [filter, setFilter] = useState<Filter>(EVERYTHING);
  const { items, problem } = feed;
  const credits = onceEach(items.filter((item): item is Credit => !isGap(item)));
  // The list keeps its gap, so that the next start says so too.
  const isPartial = items.some(isGap);
  return (
    <FlatList
      data={filtered(credits, filter)}
      keyExtractor={({ cursor }) => cursor}
      contentContainerStyle={styles.content}
      aria-label={t.credits.list}
      ListHeaderComponent={
        <View style={{ gap: 12 }}>
          <View style={styles.spread}>
            <Text role="heading" aria-level={1} style={styles.title}>
              {t.credits.title}
            </Text>
            <Status feed={feed} />
          </View>
          <Text style={styles.lead}>{t.credits.lead}</Text>
          {isPartial && <Notice>{t.credits.startedOver}</Notice>}
          {problem instanceof Refused && <Notice bad>{explain(problem, t)}</Notice>}
          {simulateCredit !== undefined && (
            <Simulate simulateCredit={simulateCredit} isLive={feed.status === 'live'} />
          )}
          {credits.length > 0 && <FilterBar filter={filter} onChange={setFilter} />}
        </View>
      }
      ListEmptyComponent={
        <View style={[styles.card, styles.padded]}>
          <Text style={styles.text}>{credits.length === 0 ? t.credits.empty : t.credits.none}</Text>
          {credits.length === 0 && <Text style={styles.note}>{t.credits.emptyNote}</Text>}
        </View>
      }
      renderItem={({ item }) => <CreditRow credit={item} />}
    />
  );
}

/** Of the events of one transaction the oldest alone: a message that is delivered again after a lost log makes a second one. */
function onceEach(credits: readonly Credit[]): readonly Credit[] {
  const idOf = ({ transactionId, cursor }: Credit) => transactionId?.toLowerCase() ?? cursor;
  const oldest = new Map(credits.map((credit) => [idOf(credit), credit]));
  return credits.filter((credit) => oldest.get(idOf(credit)) === credit);
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
    <>
      <Button title={t.credits.simulate} onPress={press} />
      {problem !== undefined && <Notice bad>{explain(problem, t)}</Notice>}
    </>
  );
}

function Status({ feed: { status, missing, problem } }: { readonly feed: FeedState<Credit> }) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const text = {
    // A phone that is out of room holds credits back.
    live: problem === undefined ? t.credits.live : t.credits.catchingUp,
    ended: t.credits.ended,
    // Nothing has gone wrong yet.
    offline: problem === undefined ? t.credits.connecting : t.credits.offline,
    gap: t.credits.catchingUp,
    'catching up': missing > 0 ? t.credits.catchingUpWith(missing) : t.credits.catchingUp,
  }[status];
  const isLive = status === 'live';
  return (
    <View role="status" aria-live="polite" testID="status" style={[styles.pill, !isLive && styles.waiting]}>
      <View style={[styles.dot, !isLive && styles.waitingDot]} />
      <Text style={[styles.pillText, !isLive && styles.waitingText]}>{text}</Text>
    </View>
  );
}
