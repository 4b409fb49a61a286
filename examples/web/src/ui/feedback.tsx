import { type ReactNode, useEffect } from 'react';
import { useSpeech } from './i18n.tsx';
import { explain, kindOf } from './problem.ts';

/** What the skip link leads to. */
export function Main({
  children,
  narrow = false,
}: {
  readonly children: ReactNode;
  readonly narrow?: boolean;
}) {
  return (
    <main id="content" tabIndex={-1} className={narrow ? 'narrow' : undefined}>
      {children}
    </main>
  );
}

export function Loading() {
  const { t } = useSpeech();
  return (
    <p className="loading" role="status">
      <span className="spinner" aria-hidden="true" />
      {t.loading}
    </p>
  );
}

/** How long to wait before a gateway that gave no answer is asked again, in milliseconds. */
const AGAIN_MS = 2_000;

/** What could not be read, and what to do about it. Where nothing has answered, the page asks again by itself. */
export function Failure({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  const { t } = useSpeech();
  const isOffline = kindOf(error) === 'offline';
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new callback is no reason to wait again.
  useEffect(() => {
    if (!isOffline) return;
    const timer = setInterval(onRetry, AGAIN_MS);
    return () => clearInterval(timer);
  }, [isOffline]);
  return (
    <div className="narrow">
      <div role="alert" className="notice bad">
        <p>{explain(error, t)}</p>
        <button type="button" onClick={onRetry}>
          {t.tryAgain}
        </button>
      </div>
    </div>
  );
}
