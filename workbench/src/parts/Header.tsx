import { useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { asksForToken, endOf, signOut, useSession } from '../session.ts';
import { dropStreams } from '../streams.ts';
import { chooseLanguage, language, t } from '../words.ts';
import { Mark, ThemeIcon } from './icons.tsx';
import { SessionMenu } from './SessionMenu.tsx';

const THEMES = [null, 'light', 'dark'] as const;

/** What this page is, whom it speaks to, and as whom. */
export function Header() {
  const { sandbox, isReachable } = useSession();
  return (
    <header className="wb-header">
      <Mark />
      <h1>Pasarela</h1>
      <span className="wb-tagline">
        {sandbox === undefined ? 'GraphiQL' : t('on the sandbox: no real money moves')}
      </span>
      <span className="wb-chips">
        <span className={isReachable ? 'wb-chip wb-live' : 'wb-chip wb-cut'} role="status">
          {isReachable ? t('Connected') : t('No gateway')}
        </span>
        {sandbox !== undefined && (
          <span
            className="wb-chip wb-wide"
            title={t("Client {id}, by the sandbox's own token", { id: sandbox.clientId })}
          >
            {sandbox.name}
          </span>
        )}
        <SignOut />
        <SessionMenu />
        <button
          type="button"
          className="wb-chip"
          lang={language === 'es' ? 'en' : 'es'}
          onClick={() => chooseLanguage(language === 'es' ? 'en' : 'es')}
        >
          {language === 'es' ? 'English' : 'Español'}
        </button>
        <Theme />
      </span>
    </header>
  );
}

function SignOut() {
  const session = useSession();
  const { token } = session;
  if (!asksForToken(session)) return null;
  const end = token === undefined ? undefined : endOf(token);
  const leave = () => {
    signOut();
    dropStreams();
    // Results, headers and calls under way are those of who leaves, in each tab; queries and variables are kept.
    location.reload();
  };
  return (
    <button
      type="button"
      className="wb-chip"
      disabled={token === undefined}
      onClick={leave}
      title={
        end === undefined ? undefined : t('The token expires {when}', { when: end.toLocaleString(language) })
      }
    >
      {token === undefined ? t('Signed out') : t('Sign out')}
    </button>
  );
}

function Theme() {
  const theme = useGraphiQL((state) => state.theme);
  const { setTheme } = useGraphiQLActions();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? null;
  const nameOf = (one: typeof theme) =>
    one === null ? t('system') : one === 'light' ? t('light') : t('dark');
  const label = t('Theme: {theme}. Press for {next}.', { theme: nameOf(theme), next: nameOf(next) });
  return (
    <button type="button" className="wb-icon" aria-label={label} title={label} onClick={() => setTheme(next)}>
      <ThemeIcon />
    </button>
  );
}
