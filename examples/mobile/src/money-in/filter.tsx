import { Pressable, Text, TextInput, View } from 'react-native';
import { useSpeech } from '../ui/i18n.tsx';
import { contains } from '../ui/search.ts';
import { useStyles } from '../ui/theme.ts';
import type { Credit } from './documents.ts';

type Day = 'all' | 'today' | 'yesterday';
const DAYS: readonly Day[] = ['all', 'today', 'yesterday'];

export interface Filter {
  readonly text: string;
  /** By the phone's own calendar. */
  readonly day: Day;
}

export const EVERYTHING: Filter = { text: '', day: 'all' };

export const filtered = (credits: readonly Credit[], { text, day }: Filter): readonly Credit[] =>
  credits.filter((credit) => isOf(day, credit.receivedAt) && contains(wordsOf(credit), text));

const wordsOf = ({ payer, beneficiary, paymentConcept, trackingKey, amount }: Credit): string =>
  [
    payer.name,
    payer.account,
    beneficiary.name,
    beneficiary.account,
    paymentConcept,
    trackingKey,
    amount.amount,
  ]
    .filter(Boolean)
    .join(' ');

function isOf(day: Day, dateTime: string): boolean {
  if (day === 'all') return true;
  const date = new Date();
  if (day === 'yesterday') date.setDate(date.getDate() - 1);
  return new Date(dateTime).toDateString() === date.toDateString();
}

interface FilterBarProps {
  readonly filter: Filter;
  readonly onChange: (filter: Filter) => void;
}

export function FilterBar({ filter, onChange }: FilterBarProps) {
  const { styles, colors } = useStyles();
  const { t } = useSpeech();
  return (
    <View style={{ gap: 12 }}>
      <TextInput
        value={filter.text}
        onChangeText={(text) => onChange({ ...filter, text })}
        placeholder={t.credits.search}
        placeholderTextColor={colors.muted}
        aria-label={t.credits.search}
        autoCorrect={false}
        style={[styles.input, { backgroundColor: colors.card }]}
      />
      <View style={styles.languages} role="radiogroup" aria-label={t.credits.day}>
        {DAYS.map((day) => (
          <Pressable
            key={day}
            role="radio"
            aria-checked={filter.day === day}
            onPress={() => onChange({ ...filter, day })}
            style={[styles.tab, filter.day === day && styles.chosen]}
          >
            <Text style={[styles.tabText, filter.day === day && styles.tabTextChosen]}>
              {t.credits.days[day]}
            </Text>
          </Pressable>
        ))}
      </View>
    </View>
  );
}
