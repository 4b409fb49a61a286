import { type FormEvent, useEffect, useState } from 'react';
import { Failure, Loading } from '../ui/feedback.tsx';
import { useSpeech } from '../ui/i18n.tsx';
import type { Messages } from '../ui/messages.ts';
import { contains } from '../ui/search.ts';
import type { PayingAccount, Receiver } from './documents.ts';
import type { OpenVerification, Payments, RefusedVerification } from './payments.ts';
import { type Listed, type Receivers, useReceivers } from './use-receivers.ts';

export function Choose({ payments }: { readonly payments: Payments }) {
  const { found, error, again } = useReceivers();
  if (error !== undefined) {
    return (
      <>
        <div className="narrow">
          <Unfinished payments={payments} receivers={found?.receivers.items ?? []} />
          <Problem payments={payments} />
        </div>
        <Failure error={error} onRetry={again} />
      </>
    );
  }
  if (found === undefined) return <Loading />;
  return <ChooseForm found={found} payments={payments} />;
}

/** So many matches are enough to look at: with fewer, the search goes on reading. */
const ENOUGH = 20;

interface ChooseFormProps {
  readonly found: Receivers;
  readonly payments: Payments;
}

function ChooseForm({ found: { receivers, accounts }, payments }: ChooseFormProps) {
  const { t } = useSpeech();
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState<string>();
  const { send, sending } = payments;
  const { more } = receivers;
  const matching = receivers.items.filter((receiver) => contains(wordsOf(receiver), search));
  const isSearching = search.trim() !== '' && matching.length < ENOUGH;
  useEffect(() => {
    if (isSearching) more?.();
  }, [isSearching, more]);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const from = new FormData(event.currentTarget).get('source');
    if (chosen === undefined || typeof from !== 'string') return;
    void send({ sourceInstrumentId: from, destinationInstrumentId: chosen });
  };

  return (
    <form className="narrow" onSubmit={submit}>
      <h1>{t.choose.title}</h1>
      <p className="lead">{t.choose.lead}</p>
      <Unfinished payments={payments} receivers={receivers.items} />
      <fieldset className="card receivers">
        <legend>{t.choose.instruments}</legend>
        <input
          type="search"
          value={search}
          onChange={({ target }) => setSearch(target.value)}
          placeholder={t.choose.search}
          aria-label={t.choose.search}
        />
        <div className="options">
          {matching.map((receiver) => (
            <ReceiverOption
              key={receiver.id}
              receiver={receiver}
              checked={chosen === receiver.id}
              onChoose={() => setChosen(receiver.id)}
            />
          ))}
          {matching.length === 0 && (
            <p className="note empty">{receivers.items.length === 0 ? t.choose.empty : t.choose.none}</p>
          )}
        </div>
        <More list={receivers} says={t.choose.read} />
      </fieldset>
      <Problem payments={payments} />
      <More list={accounts} says={t.choose.readAccounts} />
      <div className="pay">
        <PayingAccounts accounts={accounts.items} />
        <button type="submit" className="primary" disabled={chosen === undefined || sending}>
          {sending ? t.choose.sending : t.choose.submit}
        </button>
      </div>
    </form>
  );
}

interface UnfinishedProps {
  readonly payments: Payments;
  /** Those that were read, for their names. */
  readonly receivers: readonly Receiver[];
}

/** The verifications of which nobody has seen the end. They are shown also where the lists cannot be read: they need none. */
function Unfinished({ payments: { refused, open, sending }, receivers }: UnfinishedProps) {
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

function Problem({ payments: { problem } }: { readonly payments: Payments }) {
  if (problem === undefined) return null;
  return (
    <p role="alert" className="notice bad">
      {problem}
    </p>
  );
}

function PayingAccounts({ accounts }: { readonly accounts: readonly PayingAccount[] }) {
  const { t, money } = useSpeech();
  return (
    <label>
      {t.choose.source}
      <select name="source">
        {accounts.map(({ id, clabe, instrumentId, instrument, availableBalance }) => (
          <option key={id} value={instrumentId ?? undefined}>
            {instrument?.alias ?? clabe} —{' '}
            {t.choose.available(money(availableBalance.amount, availableBalance.currency))}
          </option>
        ))}
      </select>
    </label>
  );
}

interface MoreProps {
  readonly list: Listed<unknown>;
  readonly says: (read: number, total: number) => string;
}

/** How much of a list was read, and the button that reads more of it. */
function More({ list: { read, total, hasMore, more }, says }: MoreProps) {
  const { t } = useSpeech();
  if (!hasMore) return null;
  return (
    <p className="more note" role="status">
      {says(read, total)}
      <button type="button" className="quiet" onClick={more} disabled={more === undefined}>
        {t.choose.more}
      </button>
    </p>
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

/**
 * A verification whose end nobody has seen. It is still here after a reload. Before one is let go of, a person is asked: the
 * next one moves money again.
 */
function Open({ verification: { input, standing, forget }, receiver, disabled, onAsk }: OpenProps) {
  const { t } = useSpeech();
  const [isDoubted, setDoubted] = useState(false);
  const alias = receiver?.alias ?? input.destinationInstrumentId;
  const { drop, forget: learned, sure, yes, no } = t.unknown;
  const { notice, action } = wordsFor(standing, t);
  // Nothing was paid of it, so there is nothing to ask a provider.
  const isUnpaid = standing === 'unpaid';
  return (
    <div role="status" className="notice open">
      <span>{isDoubted ? sure(alias) : notice(alias)}</span>
      {isDoubted ? (
        <>
          <button type="button" disabled={disabled} onClick={forget}>
            {yes}
          </button>
          <button type="button" className="quiet" onClick={() => setDoubted(false)}>
            {no}
          </button>
        </>
      ) : (
        <>
          <button type="button" disabled={disabled} onClick={onAsk}>
            {action}
          </button>
          {forget !== undefined && (
            <button
              type="button"
              className="quiet"
              disabled={isUnpaid && disabled}
              onClick={isUnpaid ? forget : () => setDoubted(true)}
            >
              {isUnpaid ? drop : learned}
            </button>
          )}
        </>
      )}
    </div>
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
    <div role="status" className="notice bad open">
      <span>{t.unknown.refused(alias, reason)}</span>
      <button type="button" onClick={seen}>
        {t.unknown.seen}
      </button>
    </div>
  );
}

interface ReceiverOptionProps {
  readonly receiver: Receiver;
  readonly checked: boolean;
  readonly onChoose: () => void;
}

function ReceiverOption({ receiver: { id, alias, bank, detail }, checked, onChoose }: ReceiverOptionProps) {
  return (
    <label className="option">
      <input type="radio" name="receiver" value={id} checked={checked} onChange={onChoose} />
      <span className="who">
        <strong>{alias}</strong>
        <span className="note">{bank?.name}</span>
      </span>
      {detail !== null && 'clabe' in detail && <span className="clabe">{detail.clabe}</span>}
    </label>
  );
}

function wordsOf({ alias, detail }: Receiver): string {
  if (detail === null || !('clabe' in detail)) return alias ?? '';
  return `${alias ?? ''} ${detail.holderName ?? ''} ${detail.clabe}`;
}
