import type { Source } from '@pasarela/client';
import { useEffect, useState } from 'react';
import { Pressable, ScrollView, Text, TextInput, View } from 'react-native';
import { useSpeech } from '../ui/i18n.tsx';
import type { Messages } from '../ui/messages.ts';
import { Button, Failure, Loading, Notice } from '../ui/parts.tsx';
import { contains } from '../ui/search.ts';
import { useStyles } from '../ui/theme.ts';
import type { PayingAccount, Receiver } from './documents.ts';
import type { OpenVerification, Payments, RefusedVerification } from './payments.ts';
import { type Receivers, useReceivers } from './use-receivers.ts';

interface ChooseProps {
  readonly source: Source;
  readonly open: readonly OpenVerification[];
  readonly payments: Payments;
}

export function Choose({ source, ...rest }: ChooseProps) {
  const { styles } = useStyles();
  const { found, problem, again, more } = useReceivers(source);
  if (problem !== undefined) {
    return (
      <ScrollView style={styles.grow}>
        <View style={styles.content}>
          <Unfinished receivers={found?.receivers ?? []} {...rest} />
          {rest.payments.problem !== undefined && <Notice bad>{rest.payments.problem}</Notice>}
        </View>
        <Failure problem={problem} onRetry={again} />
      </ScrollView>
    );
  }
  if (found === undefined) return <Loading />;
  return <ChooseForm found={found} more={more} {...rest} />;
}

/** As many as a thumb goes through: a search finds the others. */
const SHOWN = 6;

type ChooseFormProps = Omit<ChooseProps, 'source'> & {
  readonly found: Receivers;
  readonly more: (() => void) | undefined;
};

function ChooseForm({ found, more, open, payments }: ChooseFormProps) {
  const { styles, colors } = useStyles();
  const { t } = useSpeech();
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState<string>();
  const { sending, problem, send } = payments;
  const { receivers, payer, isLooking, read, total, hasMore } = found;
  const matching = receivers.filter((receiver) => contains(wordsOf(receiver), search));
  const isSearching = search.trim() !== '' && matching.length < SHOWN;
  useEffect(() => {
    if (isSearching) more?.();
  }, [isSearching, more]);

  const submit = () => {
    if (chosen === undefined || !payer?.instrumentId) return;
    void send({ sourceInstrumentId: payer.instrumentId, destinationInstrumentId: chosen });
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
        <Unfinished open={open} payments={payments} receivers={receivers} />
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

interface UnfinishedProps extends Omit<ChooseProps, 'source'> {
  /** Those that were read, for their names. */
  readonly receivers: readonly Receiver[];
}

/** The verifications of which nobody has seen the end. They are shown also where the lists cannot be read: they need none. */
function Unfinished({ open, payments: { refused, sending }, receivers }: UnfinishedProps) {
  const receiverOf = ({ destinationInstrumentId }: OpenVerification['input']) =>
    receivers.find(({ id }) => id === destinationInstrumentId);
  return (
    <>
      {refused.map((each) => (
        <Refused key={each.key} verification={each} receiver={receiverOf(each.input)} />
      ))}
      {open.map((each) => (
        <Open
          key={each.key}
          verification={each}
          receiver={receiverOf(each.input)}
          disabled={sending}
          onAsk={each.ask}
        />
      ))}
    </>
  );
}

interface OpenProps {
  readonly verification: OpenVerification;
  readonly receiver: Receiver | undefined;
  readonly disabled: boolean;
  readonly onAsk: () => void;
}

function wordsFor(standing: OpenVerification['standing'], { unknown }: Messages) {
  const { open, ask, sent, show, late, sendLate, unpaid, send } = unknown;
  const words = {
    done: { notice: sent, action: show },
    unknown: { notice: open, action: ask },
    late: { notice: late, action: sendLate },
    unpaid: { notice: unpaid, action: send },
  };
  return words[standing];
}

/** A verification whose end nobody has seen. Before one is let go of, a person is asked: the next one moves money again. */
function Open({ verification: { input, standing, forget }, receiver, disabled, onAsk }: OpenProps) {
  const { t } = useSpeech();
  const [isDoubted, setDoubted] = useState(false);
  const alias = receiver?.alias ?? input.destinationInstrumentId;
  const { drop, forget: learned, sure, yes, no } = t.unknown;
  const { notice, action } = wordsFor(standing, t);
  // Nothing was paid of it, and no call of it is under way.
  const isUnpaid = standing === 'unpaid';
  return (
    <View style={{ gap: 8 }} role="group" aria-label={alias}>
      <Notice>{isDoubted ? sure(alias) : notice(alias)}</Notice>
      {isDoubted ? (
        <>
          <Button title={yes} disabled={disabled} onPress={() => forget?.()} />
          <Button title={no} onPress={() => setDoubted(false)} />
        </>
      ) : (
        <>
          <Button title={action} disabled={disabled} onPress={onAsk} />
          {forget !== undefined && (
            <Button
              title={isUnpaid ? drop : learned}
              disabled={isUnpaid && disabled}
              onPress={isUnpaid ? forget : () => setDoubted(true)}
            />
          )}
        </>
      )}
    </View>
  );
}

interface RefusedProps {
  readonly verification: RefusedVerification;
  readonly receiver: Receiver | undefined;
}

/** A verification that was refused before somebody saw it. */
function Refused({ verification: { input, reason, seen }, receiver }: RefusedProps) {
  const { t } = useSpeech();
  const alias = receiver?.alias ?? input.destinationInstrumentId;
  return (
    <View style={{ gap: 8 }} role="group" aria-label={alias}>
      <Notice bad>{t.unknown.refused(alias, reason)}</Notice>
      <Button title={t.unknown.seen} onPress={seen} />
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
      {t.choose.source} {payer.instrument?.alias ?? payer.clabe}:{' '}
      {t.choose.available(money(amount, currency))}
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
