import type { Source } from '@pasarela/client';
import { useEffect, useState } from 'react';
import { Pressable, ScrollView, Text, TextInput, View } from 'react-native';
import { useSpeech } from '../ui/i18n.tsx';
import { Button, Failure, Loading, Notice } from '../ui/parts.tsx';
import { contains } from '../ui/search.ts';
import { useStyles } from '../ui/theme.ts';
import type { PayingAccount, Receiver } from './documents.ts';
import type { OpenVerification, Payments } from './payments.ts';
import { type Receivers, useReceivers } from './use-receivers.ts';

interface ChooseProps {
  readonly source: Source;
  readonly open: readonly OpenVerification[];
  readonly payments: Payments;
}

export function Choose({ source, ...rest }: ChooseProps) {
  const { found, problem, again, more } = useReceivers(source);
  if (problem !== undefined) return <Failure problem={problem} onRetry={again} />;
  if (found === undefined) return <Loading />;
  return <ChooseForm found={found} more={more} {...rest} />;
}

/** As many as a thumb goes through: a search finds the others. */
const SHOWN = 6;

type ChooseFormProps = Omit<ChooseProps, 'source'> & {
  readonly found: Receivers;
  readonly more: (() => void) | undefined;
};

function ChooseForm({ found, more, open, payments: { sending, problem, send } }: ChooseFormProps) {
  const { styles, colors } = useStyles();
  const { t } = useSpeech();
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState<string>();
  const { receivers, payer, isLooking, read, total, hasMore } = found;
  const matching = receivers.filter((receiver) => contains(wordsOf(receiver), search));
  const isSearching = search.trim() !== '' && matching.length < SHOWN;
  useEffect(() => {
    if (isSearching) more?.();
  }, [isSearching, more]);

  const submit = () => {
    if (chosen === undefined || !payer?.instrument) return;
    void send({ sourceInstrumentId: payer.instrument.id, destinationInstrumentId: chosen });
  };
  return (
    <>
      <ScrollView
        style={styles.grow}
        contentContainerStyle={styles.content}
        keyboardShouldPersistTaps="handled"
      >
        <Text role="heading" aria-level={1} style={styles.title}>
          {t.choose.title}
        </Text>
        <Text style={styles.lead}>{t.choose.lead}</Text>
        {open.map((each) => (
          <Open
            key={each.key}
            verification={each}
            receiver={receivers.find(({ id }) => id === each.input.destinationInstrumentId)}
            disabled={sending}
            onAsk={each.ask}
          />
        ))}
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
        {isSearching && hasMore && <Text style={styles.note}>{t.choose.read(read, total)}</Text>}
      </ScrollView>
      <View style={styles.footer}>
        {problem !== undefined && <Notice bad>{problem}</Notice>}
        {!isLooking && <Payer payer={payer} />}
        <Button
          primary
          title={sending ? t.choose.sending : t.choose.submit}
          disabled={chosen === undefined || sending || payer === undefined}
          onPress={submit}
        />
      </View>
    </>
  );
}

interface OpenProps {
  readonly verification: OpenVerification;
  readonly receiver: Receiver | undefined;
  readonly disabled: boolean;
  readonly onAsk: () => void;
}

/** A verification whose end nobody has seen. Before one is let go of, a person is asked: the next one moves money again. */
function Open({ verification: { input, isSent, forget }, receiver, disabled, onAsk }: OpenProps) {
  const { t } = useSpeech();
  const [isDoubted, setDoubted] = useState(false);
  const alias = receiver?.alias ?? input.destinationInstrumentId;
  const { open, sent, ask, show, forget: learned, sure, yes, no } = t.unknown;
  return (
    <View style={{ gap: 8 }} role="group" aria-label={alias}>
      <Notice>{isDoubted ? sure(alias) : isSent ? sent(alias) : open(alias)}</Notice>
      {isDoubted ? (
        <>
          <Button title={yes} disabled={disabled} onPress={() => forget?.()} />
          <Button title={no} onPress={() => setDoubted(false)} />
        </>
      ) : (
        <>
          <Button title={isSent ? show : ask} disabled={disabled} onPress={onAsk} />
          {forget !== undefined && <Button title={learned} onPress={() => setDoubted(true)} />}
        </>
      )}
    </View>
  );
}

function Payer({ payer }: { readonly payer: PayingAccount | undefined }) {
  const { styles } = useStyles();
  const { t, money } = useSpeech();
  if (payer === undefined) return <Notice bad>{t.choose.noPayer}</Notice>;
  const { amount, currency } = payer.availableBalance;
  return (
    <Text style={styles.note}>
      {t.choose.source} {payer.instrument?.alias}: {t.choose.available(money(amount, currency))}
    </Text>
  );
}

interface ReceiverOptionProps {
  readonly receiver: Receiver;
  readonly isFirst: boolean;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function ReceiverOption({ receiver, isFirst, isChosen, onChoose }: ReceiverOptionProps) {
  const { styles } = useStyles();
  const { id, alias, bank, detail } = receiver;
  return (
    <Pressable
      role="radio"
      aria-checked={isChosen}
      aria-label={alias ?? id}
      onPress={onChoose}
      style={[styles.item, !isFirst && styles.divided, isChosen && styles.chosen]}
    >
      <View style={styles.radio}>{isChosen && <View style={styles.radioDot} />}</View>
      <View style={styles.grow}>
        <Text style={styles.strong} numberOfLines={1}>
          {alias}
        </Text>
        <Text style={styles.clabe} numberOfLines={1}>
          {[bank?.name, detail !== null && 'clabe' in detail && detail.clabe].filter(Boolean).join(' · ')}
        </Text>
      </View>
    </Pressable>
  );
}

function wordsOf({ alias, detail }: Receiver): string {
  if (detail === null || !('clabe' in detail)) return alias ?? '';
  return `${alias ?? ''} ${detail.holderName ?? ''} ${detail.clabe}`;
}
