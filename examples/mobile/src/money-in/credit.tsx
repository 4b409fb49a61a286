import { useState } from 'react';
import { Pressable, Text, View } from 'react-native';
import { useSpeech } from '../ui/i18n.tsx';
import { useStyles } from '../ui/theme.ts';
import type { Credit } from './documents.ts';

/** One credit; a tap opens it to all that is known of it. */
export function CreditRow({ credit }: { readonly credit: Credit }) {
  const { styles } = useStyles();
  const { t, money, time } = useSpeech();
  const [open, setOpen] = useState(false);
  const { payer, amount, paymentConcept, receivedAt, decision, subCategory } = credit;
  const name = payer.name ?? t.credits.anonymous;
  // INFORMED is also said of a credit whose kind the gateway does not know.
  const isUnclear = decision === 'INFORMED' && subCategory !== 'INT_CREDIT';
  const badge = isUnclear ? t.credits.unclear : t.credits.decisions[decision];
  return (
    <View style={styles.card} testID="credit">
      <Pressable
        role="button"
        aria-expanded={open}
        onPress={() => setOpen((before) => !before)}
        style={styles.item}
      >
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
      </Pressable>
      {open && <Detail credit={credit} />}
    </View>
  );
}

function Detail({ credit }: { readonly credit: Credit }) {
  const { styles } = useStyles();
  const { t, time } = useSpeech();
  const { payer, beneficiary, transactionDate } = credit;
  const words = t.credits.detail;
  const rows: readonly (readonly [string, string | null | undefined])[] = [
    [words.trackingKey, credit.trackingKey],
    [words.payer, payer.name],
    [words.payerRfc, payer.rfc],
    [words.payerAccount, payer.account],
    [words.payerInstitution, credit.payerInstitution],
    [words.beneficiary, beneficiary.name],
    [words.beneficiaryAccount, beneficiary.account],
    [words.concept, credit.paymentConcept],
    [words.reference, credit.numericReference],
    [words.date, transactionDate && time(transactionDate)],
    [words.refundReason, credit.refundReason],
  ];
  return (
    <View style={[styles.padded, styles.divided]} testID="detail">
      {rows.map(
        ([name, value]) =>
          value && (
            <View key={name}>
              <Text style={styles.note}>{name}</Text>
              <Text style={styles.text} selectable>
                {value}
              </Text>
            </View>
          ),
      )}
    </View>
  );
}
