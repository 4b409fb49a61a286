import { useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { asksForToken, endOf, signOut, useSession } from '../session.ts';
import { Mark, ThemeIcon } from './icons.tsx';

const THEMES = [null, 'light', 'dark'] as const;

/** What this page is, whom it speaks to, and as whom. */
export function Header() {
  const session = useSession();
  const { sandbox, token, isReachable } = session;
  const theme = useGraphiQL((state) => state.theme);
  const { setTheme } = useGraphiQLActions();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? null;
  const end = token === undefined ? undefined : endOf(token);
  return (
    <header className="wb-header">
      <Mark />
      <h1>Pasarela</h1>
      <span className="wb-tagline">
        {sandbox === undefined ? 'GraphiQL' : 'on the sandbox: no real money moves'}
      </span>
      <span className="wb-chips">
        <span className={isReachable ? 'wb-chip wb-live' : 'wb-chip wb-cut'} role="status">
          {isReachable ? 'Connected' : 'No gateway'}
        </span>
        {sandbox !== undefined && (
          <span className="wb-chip wb-wide" title={`Client ${sandbox.clientId}, by the sandbox's own token`}>
            {sandbox.name}
          </span>
        )}
        {asksForToken(session) && (
          <button
            type="button"
            className="wb-chip"
            disabled={token === undefined}
            onClick={signOut}
            title={end === undefined ? undefined : `The token ends ${end.toLocaleString()}`}
          >
            {token === undefined ? 'Signed out' : 'Sign out'}
          </button>
        )}
        <button
          type="button"
          className="wb-icon"
          aria-label={`Theme: ${theme ?? 'system'}`}
          title={`Theme: ${theme ?? 'system'}. Click for ${next ?? 'system'}.`}
          onClick={() => setTheme(next)}
        >
          <ThemeIcon />
        </button>
      </span>
    </header>
  );
}
