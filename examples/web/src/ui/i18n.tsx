import { createContext, type ReactNode, use, useEffect, useMemo, useState } from 'react';
import { type Messages, messages } from './messages.ts';
import { storage } from './storage.ts';

export type Language = 'es' | 'en';

interface Speech {
  readonly language: Language;
  readonly t: Messages;
  readonly speak: (language: Language) => void;
  /** Exact: the amount is never turned into a number. */
  readonly money: (amount: string, currency: string) => string;
  readonly time: (dateTime: string) => string;
}

const SpeechContext = createContext<Speech | undefined>(undefined);

const KEPT = 'pasarela.language';

function firstLanguage(): Language {
  return (keptLanguage() ?? navigator.language).startsWith('en') ? 'en' : 'es';
}

function keptLanguage(): string | null {
  try {
    return storage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keep(language: Language): void {
  try {
    storage.setItem(KEPT, language);
  } catch {
    // A browser that keeps nothing asks again next time.
  }
}

export function Speaking({ children }: { readonly children: ReactNode }) {
  const [language, speak] = useState<Language>(firstLanguage);
  useEffect(() => {
    keep(language);
    document.documentElement.lang = language;
  }, [language]);
  const speech = useMemo(() => {
    const locale = language === 'es' ? 'es-MX' : 'en-MX';
    const timeFormat = new Intl.DateTimeFormat(locale, {
      day: 'numeric',
      month: 'short',
      hour: 'numeric',
      minute: '2-digit',
      second: '2-digit',
    });
    return {
      language,
      speak,
      t: messages[language],
      money: (amount: string, currency: string) =>
        // The graph's amounts are decimal numbers by their contract.
        new Intl.NumberFormat(locale, {
          style: 'currency',
          currency,
          currencyDisplay: 'narrowSymbol',
        }).format(amount as `${number}`),
      time: (dateTime: string) => timeFormat.format(new Date(dateTime)),
    };
  }, [language]);
  return <SpeechContext value={speech}>{children}</SpeechContext>;
}

export function useSpeech(): Speech {
  const speech = use(SpeechContext);
  if (speech === undefined) throw new Error('useSpeech needs <Speaking> around it');
  return speech;
}
