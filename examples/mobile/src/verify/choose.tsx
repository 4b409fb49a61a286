import type { Source } from '@pasarela/client';
import { useState } from 'react';
import { Pressable, ScrollView, Text, TextInput, View } from 'react-native';
import type { AccountsToVerifyQuery } from '../gql/graphql.ts';
import { useQuery } from '../graph/use-query.ts';
import { useSpeech } from '../ui/i18n.tsx';
import { Button, Failure, Loading, Notice } from '../ui/parts.tsx';
import { useStyles } from '../ui/theme.ts';
import { ACCOUNTS_TO_VERIFY, type Receiver } from './documents.ts';
import type { Verification } from './payments.ts';

interface ChooseProps {
  readonly source: Source;
  readonly sending: boolean;
  readonly problem: string | undefined;
  readonly onSend: (verification: Verification) => void;
}

const NOTHING = {};

export function Choose({ source, ...rest }: ChooseProps) {
  const { data, problem, again } = useQuery(source, ACCOUNTS_TO_VERIFY, NOTHING);
  if (data !== undefined) return <ChooseForm client={data.client} {...rest} />;
  return problem === undefined ? <Loading /> : <Failure problem={problem} onRetry={again} />;
}

type ChooseFormProps = Omit<ChooseProps, 'source'> & { readonly client: AccountsToVerifyQuery['client'] };

function ChooseForm({ client, sending, problem, onSend }: ChooseFormProps) {
  const { styles, colors } = useStyles();
  const { t, money } = useSpeech();
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState<string>();

  const receivers = (client.instruments?.nodes ?? []).filter(
    ({ account, detail }) => account === null && 'clabe' in detail,
  );
  const matching = receivers.filter((receiver) => matches(receiver, search));
  const from = (client.accounts?.nodes ?? []).find(
    ({ ownerId, instrument }) => ownerId === client.id && instrument !== null,
  );
  const send = () => {
    if (chosen === undefined || !from?.instrument) return;
    onSend({ sourceInstrumentId: from.instrument.id, destinationInstrumentId: chosen });
  };

  return (
    <ScrollView contentContainerStyle={styles.content} keyboardShouldPersistTaps="handled">
      <Text role="heading" style={styles.title}>
        {t.choose.title}
      </Text>
      <Text style={styles.lead}>{t.choose.lead}</Text>
      <TextInput
        value={search}
        onChangeText={setSearch}
        placeholder={t.choose.search}
        placeholderTextColor={colors.muted}
        aria-label={t.choose.search}
        autoCorrect={false}
        style={[styles.input, { backgroundColor: colors.card }]}
      />
      <View style={styles.card} role="radiogroup" aria-label={t.choose.instruments}>
        {matching.slice(0, SHOWN).map((receiver, index) => (
          <ReceiverOption
            key={receiver.id}
            receiver={receiver}
            isFirst={index === 0}
            isChosen={chosen === receiver.id}
            onChoose={() => setChosen(receiver.id)}
          />
        ))}
        {matching.length === 0 && (
          <Text style={[styles.note, styles.padded]}>
            {receivers.length === 0 ? t.choose.empty : t.choose.none}
          </Text>
        )}
      </View>
      {problem !== undefined && <Notice bad>{problem}</Notice>}
      {from !== undefined && (
        <Text style={styles.note}>
          {t.choose.source} {from.instrument?.alias}:{' '}
          {t.choose.available(money(from.availableBalance.amount, from.availableBalance.currency))}
        </Text>
      )}
      <Button
        primary
        title={sending ? t.choose.sending : t.choose.submit}
        disabled={chosen === undefined || sending}
        onPress={send}
      />
    </ScrollView>
  );
}

/** As many as a thumb goes through: a search finds the others. */
const SHOWN = 6;

interface ReceiverOptionProps {
  readonly receiver: Receiver;
  readonly isFirst: boolean;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function ReceiverOption({ receiver, isFirst, isChosen, onChoose }: ReceiverOptionProps) {
  const { styles } = useStyles();
  const { alias, bank, detail } = receiver;
  const bankName = bank?.attributes['name'];
  return (
    <Pressable
      role="radio"
      aria-checked={isChosen}
      aria-label={alias}
      onPress={onChoose}
      style={[styles.item, !isFirst && styles.divided, isChosen && styles.chosen]}
    >
      <View style={styles.radio}>{isChosen && <View style={styles.radioDot} />}</View>
      <View style={styles.grow}>
        <Text style={styles.strong} numberOfLines={1}>
          {alias}
        </Text>
        <Text style={styles.clabe} numberOfLines={1}>
          {[typeof bankName === 'string' && bankName, 'clabe' in detail && detail.clabe]
            .filter(Boolean)
            .join(' · ')}
        </Text>
      </View>
    </Pressable>
  );
}

/** Letters without accents and case. */
const plain = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

function matches({ alias, detail }: Receiver, search: string): boolean {
  const text = 'clabe' in detail ? `${alias} ${detail.holderName ?? ''} ${detail.clabe}` : alias;
  return plain(text).includes(plain(search.trim()));
}
