import { useSpeech } from '../ui/i18n.tsx';
import type { Credit } from './documents.ts';

/** One credit; it opens to all that is known of it. */
export function CreditRow({ credit }: { readonly credit: Credit }) {
  const { t, money, time } = useSpeech();
  const { payer, beneficiary, amount, paymentConcept, receivedAt, decision, subCategory } = credit;
  const name = payer.name ?? t.credits.anonymous;
  // INFORMED is also said of a credit whose kind the gateway does not know.
  const isUnclear = decision === 'INFORMED' && subCategory !== 'INT_CREDIT';
  const badge = isUnclear ? t.credits.unclear : t.credits.decisions[decision];
  const to = beneficiary.name ?? beneficiary.account;
  return (
    <li>
      <details>
        <summary>
          <span className="avatar" aria-hidden="true">
            {name.slice(0, 1)}
          </span>
          <span className="who">
            <span>
              <strong>{name}</strong>
              {badge !== undefined && <span className={`badge ${decision.toLowerCase()}`}>{badge}</span>}
            </span>
            <span className="note">
              {[paymentConcept, to && t.credits.to(to)].filter(Boolean).join(' · ')}
            </span>
          </span>
          <span className="amount">
            <strong>+{money(amount.amount, amount.currency)}</strong>
            <time className="note" dateTime={receivedAt}>
              {time(receivedAt)}
            </time>
          </span>
        </summary>
        <Detail credit={credit} />
      </details>
    </li>
  );
}

function Detail({ credit }: { readonly credit: Credit }) {
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
    <dl className="detail">
      {rows.map(
        ([name, value]) =>
          value && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
