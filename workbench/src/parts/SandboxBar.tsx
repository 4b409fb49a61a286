import { type FormEvent, useState } from 'react';
import * as sandbox from '../sandbox.ts';
import type { Sandbox } from '../session.ts';

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
  const { accounts } = description;
  const [clabe, setClabe] = useState(accounts[0]?.clabe ?? '');
  const [amount, setAmount] = useState('1250.00');
  const [isWhole, showWhole] = useState(false);
  const account = accounts.find((one) => one.clabe === clabe) ?? accounts[0];
  const credit = (event: FormEvent) => {
    event.preventDefault();
    if (account === undefined) return;
    act(sandbox.credit(account.clabe, account.alias, inCents(amount)));
  };
  const button = (label: string, deed: sandbox.Deed, title: string) => (
    <button type="button" className="wb-button" title={title} onClick={() => act(deed)}>
      {label}
    </button>
  );
  return (
    <section className={isWhole ? 'wb-sandbox wb-whole' : 'wb-sandbox'} aria-label="Sandbox">
      <form onSubmit={credit}>
        <strong>Sandbox</strong>
        <button type="submit" className="wb-button wb-primary" disabled={!AMOUNT.test(amount)}>
          Simulate a credit
        </button>
        <label className="wb-wide">
          <span className="wb-hidden">Amount in pesos</span>
          <input
            inputMode="decimal"
            size={9}
            value={amount}
            aria-invalid={!AMOUNT.test(amount)}
            onChange={(event) => setAmount(event.target.value)}
          />
        </label>
        <label className="wb-wide">
          <span>to</span>
          <select value={clabe} onChange={(event) => setClabe(event.target.value)} aria-label="Account">
            {accounts.map((one) => (
              <option key={one.id} value={one.clabe}>
                {one.alias} · {one.clabe}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          className="wb-button wb-more"
          aria-expanded={isWhole}
          onClick={() => showWhole(!isWhole)}
        >
          More
        </button>
      </form>
      <p className={said?.isBad ? 'wb-said wb-is-bad' : 'wb-said'} aria-live="polite">
        {said?.text}
      </p>
      <div className="wb-deeds">
        {button('Refund it', sandbox.refund, 'The latest credit is sent back')}
        {button('+5 minutes', sandbox.passTime, 'Let five minutes pass, with all that falls due')}
        <span className="wb-group">Next call:</span>
        {button('Lose answer', sandbox.loseAnswer, 'The next payment is made, and its answer lost')}
        {button('Delay', sandbox.delayAnswer, 'The next REST call takes longer')}
        {button('Fail', sandbox.failAnswer, 'The next REST call fails')}
        {button('Heal', sandbox.heal, 'Forget what was to go wrong')}
        <span className="wb-group">Streams:</span>
        {button('Cut', sandbox.cut, 'Cut all streams of this page for three seconds')}
      </div>
    </section>
  );
}
