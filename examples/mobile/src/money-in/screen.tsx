import { isGap, Refused } from '@pasarela/client';
import type { FeedState } from '@pasarela/client/react';
import { FlatList, Text, View } from 'react-native';
import { useSpeech } from '../ui/i18n.tsx';
import { Button, Notice } from '../ui/parts.tsx';
import { useStyles } from '../ui/theme.ts';
import type { Credit } from './documents.ts';

interface MoneyInProps {
  readonly feed: FeedState<Credit>;
  readonly simulateCredit: (() => Promise<void>) | undefined;
}

export function MoneyIn({ feed, simulateCredit }: MoneyInProps) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const { items, gap, problem } = feed;
  const credits = items.filter((item): item is Credit => !isGap(item));
  return (
    <FlatList
      data={credits}
      keyExtractor={({ cursor }) => cursor}
      contentContainerStyle={styles.content}
      aria-label={t.credits.list}
      ListHeaderComponent={
        <View style={{ gap: 12 }}>
          <View style={styles.spread}>
            <Text role="heading" style={styles.title}>
              {t.credits.title}
            </Text>
            <Status feed={feed} />
          </View>
          <Text style={styles.lead}>{t.credits.lead}</Text>
          {gap !== undefined && <Notice>{t.credits.startedOver}</Notice>}
          {problem instanceof Refused && <Notice bad>{problem.message}</Notice>}
          {simulateCredit !== undefined && (
            <Button title={t.credits.simulate} onPress={() => void simulateCredit()} />
          )}
        </View>
      }
      ListEmptyComponent={
        <View style={[styles.card, styles.padded]}>
          <Text style={styles.text}>{t.credits.empty}</Text>
          <Text style={styles.note}>{t.credits.emptyNote}</Text>
        </View>
      }
      renderItem={({ item }) => <CreditRow credit={item} />}
    />
  );
}

function Status({ feed: { status, missing, problem } }: { readonly feed: FeedState<Credit> }) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const text = {
    live: t.credits.live,
    // Nothing has gone wrong yet.
    offline: problem === undefined ? t.credits.connecting : t.credits.offline,
    gap: t.credits.catchingUp,
    'catching up': missing > 0 ? t.credits.catchingUpWith(missing) : t.credits.catchingUp,
  }[status];
  const isLive = status === 'live';
  return (
    <View role="status" testID="status" style={[styles.pill, !isLive && styles.waiting]}>
      <View style={[styles.dot, !isLive && styles.waitingDot]} />
      <Text style={[styles.pillText, !isLive && styles.waitingText]}>{text}</Text>
    </View>
  );
}

function CreditRow({ credit }: { readonly credit: Credit }) {
  const { styles } = useStyles();
  const { t, money, time } = useSpeech();
  const { payer, amount, paymentConcept, receivedAt, decision } = credit;
  const name = payer.name ?? t.credits.anonymous;
  const badge = t.credits.decisions[decision];
  return (
    <View style={[styles.card, styles.item]} testID="credit">
      <View style={styles.avatar} aria-hidden>
        <Text style={styles.avatarText}>{name.slice(0, 1)}</Text>
      </View>
      <View style={styles.grow}>
        <Text style={styles.strong} numberOfLines={1}>
          {name}
        </Text>
        <Text style={styles.note} numberOfLines={1} testID="concept">
          {[paymentConcept, badge].filter(Boolean).join(' · ')}
        </Text>
      </View>
      <View>
        <Text style={styles.amount}>+{money(amount.amount, amount.currency)}</Text>
        <Text style={styles.note}>{time(receivedAt)}</Text>
      </View>
    </View>
  );
}
