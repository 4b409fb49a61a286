import { type Language, useSpeech } from './i18n.tsx';
import { MONEY_IN, useRoute, VERIFY } from './route.ts';

const LANGUAGES: readonly { readonly language: Language; readonly name: string }[] = [
  { language: 'es', name: 'Español' },
  { language: 'en', name: 'English' },
];

interface HeaderProps {
  /** Without a session there is nowhere to go yet. */
  readonly signedIn: boolean;
  /** Undefined where nobody has signed in by hand. */
  readonly onSignOut?: (() => void) | undefined;
}

export function Header({ signedIn, onSignOut }: HeaderProps) {
  const { t, language, speak } = useSpeech();
  const { screen } = useRoute();
  return (
    <header>
      <button type="button" className="skip" onClick={() => document.getElementById('content')?.focus()}>
        {t.skip}
      </button>
      <span className="brand">
        <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
          <rect width="32" height="32" rx="8" />
          <path d="M4 20h24M6 20a10 10 0 0 1 20 0M11 20v-8M16 20V10M21 20v-8" />
        </svg>
        Pasarela
      </span>
      {signedIn && (
        <nav>
          <a href={VERIFY} aria-current={screen === 'verify' ? 'page' : undefined}>
            {t.verify}
          </a>
          <a href={MONEY_IN} aria-current={screen === 'money-in' ? 'page' : undefined}>
            {t.moneyIn}
          </a>
        </nav>
      )}
      <fieldset className="languages">
        <legend className="hidden">{t.language}</legend>
        {LANGUAGES.map((each) => (
          <button
            key={each.language}
            type="button"
            lang={each.language}
            aria-label={`${each.language.toUpperCase()} – ${each.name}`}
            aria-pressed={language === each.language}
            onClick={() => speak(each.language)}
          >
            {each.language.toUpperCase()}
          </button>
        ))}
      </fieldset>
      {onSignOut !== undefined && (
        <button type="button" className="quiet" onClick={onSignOut}>
          {t.signOut}
        </button>
      )}
    </header>
  );
}
