import { ALL, type Filter } from '../described.ts';
import { t } from '../words.ts';

interface Props {
  readonly filter: Filter;
  readonly types: readonly string[];
  readonly shown: number;
  readonly all: number;
  readonly onChange: (filter: Filter) => void;
}

/** Narrows the events that are shown: by type, and by any text, such as a payment's id. */
export function EventFilter({ filter, types, shown, all, onChange }: Props) {
  const isNarrowed = filter.type !== '' || filter.text !== '';
  return (
    <search className="wb-filter">
      <select
        aria-label={t('Type of event')}
        value={filter.type}
        onChange={(event) => onChange({ ...filter, type: event.target.value })}
      >
        <option value="">{t('All types')}</option>
        {types.map((type) => (
          <option key={type}>{type}</option>
        ))}
      </select>
      <input
        type="search"
        aria-label={t('Text or payment id')}
        placeholder={t('Text or payment id')}
        value={filter.text}
        onChange={(event) => onChange({ ...filter, text: event.target.value })}
      />
      {isNarrowed && (
        <>
          <span role="status">{t('{shown} of {all} shown', { shown, all })}</span>
          <button type="button" className="wb-button" onClick={() => onChange(ALL)}>
            {t('Show all')}
          </button>
        </>
      )}
    </search>
  );
}
