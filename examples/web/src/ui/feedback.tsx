import type { CombinedError } from 'urql';
import { useSpeech } from './i18n.tsx';

export function Loading() {
  const { t } = useSpeech();
  return (
    <p className="loading" role="status">
      <span className="spinner" aria-hidden="true" />
      {t.loading}
    </p>
  );
}

/** What could not be read, in the gateway's own words where it said any. */
export function Failure({ error, onRetry }: { readonly error: CombinedError; readonly onRetry: () => void }) {
  const { t } = useSpeech();
  return (
    <div className="narrow">
      <div role="alert" className="notice bad">
        <p>{error.graphQLErrors[0]?.message ?? t.connectionLost}</p>
        <button type="button" onClick={onRetry}>
          {t.tryAgain}
        </button>
      </div>
    </div>
  );
}
