import { type FormEvent, useEffect, useState } from 'react';
import type { Graph } from '../graph/graph.ts';
import { Failure, Loading } from '../ui/feedback.tsx';
import { useSpeech } from '../ui/i18n.tsx';
import { contains } from '../ui/search.ts';
import type { PayingAccount, Receiver } from './documents.ts';
import { type Payments, usePayments } from './payments.ts';
import { type Listed, type Receivers, useReceivers } from './use-receivers.ts';

interface ChooseProps {
  readonly graph: Graph;
  readonly clientId: string;
}

export function Choose({ graph, clientId }: ChooseProps) {
  const { found, error, again } = useReceivers();
  const payments = usePayments(graph.source, clientId);
  if (error !== undefined) return <Failure error={error} onRetry={again} />;
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
  const { send, sending, problem } = payments;
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
      <OpenPayments payments={payments} receivers={receivers.items} />
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
      {problem !== undefined && (
        <p role="alert" className="notice bad">
          {problem}
        </p>
      )}
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

function PayingAccounts({ accounts }: { readonly accounts: readonly PayingAccount[] }) {
  const { t, money } = useSpeech();
  return (
    <label>
      {t.choose.source}
      <select name="source">
        {accounts.map(({ instrument, availableBalance }) => (
          <option key={instrument?.id} value={instrument?.id}>
            {instrument?.alias} —{' '}
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
function More({ list: { read, total, more }, says }: MoreProps) {
  const { t } = useSpeech();
  if (read >= total) return null;
  return (
    <p className="more note" role="status">
      {says(read, total)}
      <button type="button" className="quiet" onClick={more} disabled={more === undefined}>
        {t.choose.more}
      </button>
    </p>
  );
}

interface OpenPaymentsProps {
  readonly payments: Payments;
  readonly receivers: readonly Receiver[];
}

/** Verifications whose end nobody knows. They are still here after a reload, until somebody has learned it. */
function OpenPayments({ payments: { open, sending, send }, receivers }: OpenPaymentsProps) {
  const { t } = useSpeech();
  return open.map(({ input, forget }) => {
    const receiver = receivers.find(({ id }) => id === input.destinationInstrumentId);
    return (
      <div key={input.destinationInstrumentId} role="status" className="notice open">
        <span>{t.unknown.open(receiver?.alias ?? input.destinationInstrumentId)}</span>
        <button type="button" disabled={sending} onClick={() => void send(input)}>
          {t.unknown.ask}
        </button>
        {forget !== undefined && (
          <button type="button" className="quiet" onClick={forget}>
            {t.unknown.forget}
          </button>
        )}
      </div>
    );
  });
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
