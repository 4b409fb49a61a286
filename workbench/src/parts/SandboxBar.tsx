import { type FormEvent, useEffect, useState } from 'react';
import * as sandbox from '../sandbox.ts';
import type { Sandbox } from '../session.ts';
import { counted, t } from '../words.ts';

interface Props {
  readonly description: Sandbox;
  readonly act: (deed: sandbox.Deed) => void;
  readonly said: Said | undefined;
}

export interface Said {
  readonly text: string;
  readonly isBad: boolean;
}

const AMOUNT = /^\d{1,12}(\.\d{1,2})?$/;

const inCents = (amount: string): string => {
  const [pesos = '0', cents = ''] = amount.split('.');
  return `${pesos}.${cents.padEnd(2, '0')}`;
};

/** What the world outside does, at the press of a button. Each button tells what it did. */
export function SandboxBar({ description, act, said }: Props) {
  const [isWhole, showWhole] = useState(false);
  const button = (label: string, deed: sandbox.Deed, title: string) => (
    <button type="button" className="wb-button" title={title} onClick={() => act(deed)}>
      {label}
    </button>
  );
  return (
    <section className={isWhole ? 'wb-sandbox wb-whole' : 'wb-sandbox'} aria-label={t('Sandbox')}>
      <Credit
        accounts={description.accounts}
        act={act}
        isWhole={isWhole}
        onWhole={() => showWhole(!isWhole)}
      />
      <p className={said?.isBad ? 'wb-said wb-is-bad' : 'wb-said'} aria-live="polite">
        {said?.text}
      </p>
      <div className="wb-deeds">
        {button(t('Refund it'), sandbox.refund, t('The latest credit is sent back'))}
        {button(t('+5 minutes'), sandbox.passTime, t('Let five minutes pass, with all that falls due'))}
        <span className="wb-group">
          <span>{t('Next call:')}</span>
          {button(t('Lose answer'), sandbox.loseAnswer, t('The next payment is made, and its answer lost'))}
          {button(t('Delay'), sandbox.delayAnswer, t('The next REST call takes longer'))}
          {button(t('Fail'), sandbox.failAnswer, t('The next REST call fails'))}
          {button(t('Heal'), sandbox.heal, t('No fault is armed any more'))}
          <Armed />
        </span>
        <span className="wb-group">
          <span>{t('Streams:')}</span>
          {button(t('Cut'), sandbox.cut, t('Cut all streams of this page for three seconds'))}
        </span>
      </div>
    </section>
  );
}

interface CreditProps {
  readonly accounts: Sandbox['accounts'];
  readonly act: Props['act'];
  readonly isWhole: boolean;
  readonly onWhole: () => void;
}

function Credit({ accounts, act, isWhole, onWhole }: CreditProps) {
  const [clabe, setClabe] = useState(accounts[0]?.clabe ?? '');
  const [amount, setAmount] = useState('1250.00');
  const account = accounts.find((one) => one.clabe === clabe) ?? accounts[0];
  const isAmount = AMOUNT.test(amount);
  const credit = (event: FormEvent) => {
    event.preventDefault();
    // What is no amount is sent as it is: the sandbox says why it takes none.
    if (account !== undefined)
      act(sandbox.credit(account.clabe, account.alias, isAmount ? inCents(amount) : amount));
  };
  return (
    <form onSubmit={credit}>
      <strong>{t('Sandbox')}</strong>
      <button type="submit" className="wb-button wb-primary">
        {t('Simulate a credit')}
      </button>
      <label className="wb-wide">
        <span className="wb-hidden">{t('Amount in pesos')}</span>
        <input
          inputMode="decimal"
          size={9}
          value={amount}
          aria-invalid={!isAmount}
          onChange={(event) => setAmount(event.target.value)}
        />
      </label>
      <label className="wb-wide">
        <span>{t('to')}</span>
        <select value={clabe} onChange={(event) => setClabe(event.target.value)} aria-label={t('Account')}>
          {accounts.map((one) => (
            <option key={one.id} value={one.clabe}>
              {one.alias} · {one.clabe}
            </option>
          ))}
        </select>
      </label>
      <button type="button" className="wb-button wb-more" aria-expanded={isWhole} onClick={onWhole}>
        {isWhole ? t('Less') : t('More')}
      </button>
    </form>
  );
}

const EVERY_MS = 2_000;

/** How many faults wait for a call, so that none is forgotten. */
function Armed() {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const read = async () => {
      if (document.visibilityState !== 'visible') return;
      const faults = await sandbox.readFaults().catch(() => []);
      setCount(faults.filter(({ inForce }) => inForce).length);
    };
    const timer = setInterval(() => void read(), EVERY_MS);
    void read();
    return () => clearInterval(timer);
  }, []);
  return count === 0 ? null : (
    <span className="wb-badge wb-bad">{counted(count, '{count} fault armed', '{count} faults armed')}</span>
  );
}
