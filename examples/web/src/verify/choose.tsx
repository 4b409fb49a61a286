import { intentStore, pay, type Source } from '@pasarela/client';
import { type FormEvent, useState } from 'react';
import { useQuery } from 'urql';
import type { AccountsToVerifyQuery } from '../gql/graphql.ts';
import { Failure, Loading } from '../ui/feedback.tsx';
import { useSpeech } from '../ui/i18n.tsx';
import { verification } from '../ui/route.ts';
import { ACCOUNTS_TO_VERIFY, type Receiver, START_VERIFICATION } from './documents.ts';

type Client = AccountsToVerifyQuery['client'];

export function Choose({ source }: { readonly source: Source }) {
  const [{ data, error }, again] = useQuery({ query: ACCOUNTS_TO_VERIFY });
  if (data !== undefined) return <ChooseForm source={source} client={data.client} />;
  if (error === undefined) return <Loading />;
  return <Failure error={error} onRetry={() => again({ requestPolicy: 'network-only' })} />;
}

function ChooseForm({ source, client }: { readonly source: Source; readonly client: Client }) {
  const { t, money } = useSpeech();
  const [search, setSearch] = useState('');
  const [chosen, setChosen] = useState<string>();
  const { send, sending, problem } = useSending(source);

  const receivers = (client.instruments?.nodes ?? []).filter(
    ({ account, detail }) => account === null && 'clabe' in detail,
  );
  const matching = receivers.filter((receiver) => matches(receiver, search));
  const sources = (client.accounts?.nodes ?? []).filter(
    ({ ownerId, instrument }) => ownerId === client.id && instrument !== null,
  );

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const from = new FormData(event.currentTarget).get('source');
    if (chosen !== undefined && typeof from === 'string') void send(from, chosen);
  };

  return (
    <form className="narrow" onSubmit={submit}>
      <h1>{t.choose.title}</h1>
      <p className="lead">{t.choose.lead}</p>
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
            <p className="note empty">{receivers.length === 0 ? t.choose.empty : t.choose.none}</p>
          )}
        </div>
      </fieldset>
      {problem !== undefined && (
        <p role="alert" className="notice bad">
          {problem}
        </p>
      )}
      <div className="pay">
        <label>
          {t.choose.source}
          <select name="source">
            {sources.map(({ instrument, availableBalance: { amount, currency } }) => (
              <option key={instrument?.id} value={instrument?.id}>
                {instrument?.alias} — {t.choose.available(money(amount, currency))}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" className="primary" disabled={chosen === undefined || sending}>
          {sending ? t.choose.sending : t.choose.submit}
        </button>
      </div>
    </form>
  );
}

interface ReceiverOptionProps {
  readonly receiver: Receiver;
  readonly checked: boolean;
  readonly onChoose: () => void;
}

function ReceiverOption({ receiver: { id, alias, bank, detail }, checked, onChoose }: ReceiverOptionProps) {
  const bankName = bank?.attributes['name'];
  return (
    <label className="option">
      <input type="radio" name="receiver" value={id} checked={checked} onChange={onChoose} />
      <span className="who">
        <strong>{alias}</strong>
        <span className="note">{typeof bankName === 'string' ? bankName : ''}</span>
      </span>
      {'clabe' in detail && <span className="clabe">{detail.clabe}</span>}
    </label>
  );
}

/** Letters without accents and case. */
const plain = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

function matches({ alias, detail }: Receiver, search: string): boolean {
  const text = 'clabe' in detail ? `${alias} ${detail.holderName ?? ''} ${detail.clabe}` : alias;
  return plain(text).includes(plain(search.trim()));
}

/** What this tab has begun to pay; a tab that is closed has given up. */
const STORE = intentStore(sessionStorage, 'pasarela.intents');

/** Starts a verification; on success the address moves on to it. */
function useSending(source: Source) {
  const { t } = useSpeech();
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<string>();

  const send = async (sourceInstrumentId: string, destinationInstrumentId: string): Promise<void> => {
    setProblem(undefined);
    setSending(true);
    const input = { sourceInstrumentId, destinationInstrumentId };
    const outcome = await pay(source, START_VERIFICATION, input, { store: STORE });
    setSending(false);
    if (outcome.status === 'done') {
      location.hash = verification(outcome.result.transaction.id);
      await outcome.acknowledge();
    } else if (outcome.status === 'refused') {
      setProblem(outcome.message);
    } else {
      setProblem(`${t.unknown.title}. ${outcome.safeToRetry ? t.unknown.safe : t.unknown.unsafe}`);
    }
  };
  return { send, sending, problem };
}
