import { useSpeech } from '../ui/i18n.tsx';
import { contains } from '../ui/search.ts';
import type { Credit } from './documents.ts';

export interface Filter {
  readonly text: string;
  /** `YYYY-MM-DD` in this browser's time zone, or empty for every day. */
  readonly day: string;
}

export const EVERYTHING: Filter = { text: '', day: '' };

export const filtered = (credits: readonly Credit[], { text, day }: Filter): readonly Credit[] =>
  credits.filter(
    (credit) => (day === '' || dayOf(credit.receivedAt) === day) && contains(wordsOf(credit), text),
  );

const wordsOf = ({ payer, beneficiary, paymentConcept, trackingKey, amount }: Credit): string =>
  [
    payer.name,
    payer.account,
    beneficiary.name,
    beneficiary.account,
    paymentConcept,
    trackingKey,
    amount.amount,
  ]
    .filter(Boolean)
    .join(' ');

function dayOf(dateTime: string): string {
  const date = new Date(dateTime);
  const two = (number: number) => String(number).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

interface FilterBarProps {
  readonly filter: Filter;
  readonly onChange: (filter: Filter) => void;
  readonly shown: number;
  readonly total: number;
}

export function FilterBar({ filter, onChange, shown, total }: FilterBarProps) {
  const { t } = useSpeech();
  return (
    <search className="filter">
      <label>
        {t.credits.search}
        <input
          type="search"
          value={filter.text}
          onChange={({ target }) => onChange({ ...filter, text: target.value })}
        />
      </label>
      <label>
        {t.credits.day}
        <input
          type="date"
          value={filter.day}
          onChange={({ target }) => onChange({ ...filter, day: target.value })}
        />
      </label>
      <span role="status" className="note">
        {shown === total ? '' : t.credits.shown(shown, total)}
      </span>
    </search>
  );
}
