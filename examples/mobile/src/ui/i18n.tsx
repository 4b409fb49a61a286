import AsyncStorage from '@react-native-async-storage/async-storage';
import { getLocales } from 'expo-localization';
import { createContext, type ReactNode, use, useEffect, useMemo, useState } from 'react';
import { Platform } from 'react-native';
import { type Messages, messages } from './messages.ts';

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

export function Speaking({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState<Language>(() =>
    getLocales()[0]?.languageCode === 'en' ? 'en' : 'es',
  );
  useEffect(() => {
    void AsyncStorage.getItem(KEPT).then((kept) => {
      if (kept === 'es' || kept === 'en') setLanguage(kept);
    });
  }, []);
  useEffect(() => {
    // A screen reader takes the voice of a web page from here; a phone has its own setting.
    if (Platform.OS === 'web') document.documentElement.lang = language;
  }, [language]);
  const speech = useMemo(
    () => ({
      language,
      t: messages[language],
      speak(next: Language) {
        setLanguage(next);
        void AsyncStorage.setItem(KEPT, next);
      },
      money,
      time: timeIn(language === 'es' ? 'es-MX' : 'en-MX'),
    }),
    [language],
  );
  return <SpeechContext value={speech}>{children}</SpeechContext>;
}

export function useSpeech(): Speech {
  const speech = use(SpeechContext);
  if (speech === undefined) throw new Error('useSpeech needs <Speaking> around it');
  return speech;
}

/** Grouped as in Mexico. Not every JavaScript engine on a phone formats a text without rounding it. */
function money(amount: string, currency: string): string {
  const [pesos = '', cents = '00'] = amount.split('.');
  const grouped = pesos.replace(/\B(?=(\d{3})+$)/g, ',');
  return `${currency === 'MXN' ? '$' : `${currency} `}${grouped}.${cents}`;
}

function timeIn(locale: string): (dateTime: string) => string {
  const format = new Intl.DateTimeFormat(locale, {
    day: 'numeric',
    month: 'short',
    hour: 'numeric',
    minute: '2-digit',
  });
  return (dateTime) => format.format(new Date(dateTime));
}
