import type { ReactNode } from 'react';
import { ActivityIndicator, Pressable, Text, View } from 'react-native';
import { type Language, useSpeech } from './i18n.tsx';
import { explain } from './problem.ts';
import { useStyles } from './theme.ts';

interface ButtonProps {
  readonly title: string;
  readonly onPress: () => void;
  readonly primary?: boolean;
  readonly disabled?: boolean;
  readonly role?: 'button' | 'link';
}

export function Button({ title, onPress, primary = false, disabled = false, role = 'button' }: ButtonProps) {
  const { styles } = useStyles();
  return (
    <Pressable
      role={role}
      aria-disabled={disabled}
      disabled={disabled}
      onPress={onPress}
      style={({ pressed }) => [
        styles.button,
        primary && styles.primary,
        disabled && styles.disabled,
        pressed && styles.pressed,
      ]}
    >
      <Text style={[styles.buttonText, primary && styles.primaryText]}>{title}</Text>
    </Pressable>
  );
}

/** TalkBack reads it out as it comes by `aria-live`: on a phone a role alone announces nothing. */
export function Notice({ bad = false, children }: { readonly bad?: boolean; readonly children: ReactNode }) {
  const { styles } = useStyles();
  return (
    <View role="alert" aria-live="assertive" style={[styles.notice, bad && styles.bad]}>
      <Text style={[styles.noticeText, bad && styles.badText]}>{children}</Text>
    </View>
  );
}

export function Loading() {
  const { styles, colors } = useStyles();
  const { t } = useSpeech();
  return (
    <View style={styles.center} role="status" aria-label={t.loading}>
      <ActivityIndicator color={colors.accent} />
    </View>
  );
}

/** What could not be read, and what to do about it. */
export function Failure({ problem, onRetry }: { readonly problem: unknown; readonly onRetry: () => void }) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  return (
    <View style={styles.content}>
      <Notice bad>{explain(problem, t)}</Notice>
      <Button title={t.tryAgain} onPress={onRetry} />
    </View>
  );
}

const LANGUAGES: readonly { readonly language: Language; readonly name: string }[] = [
  { language: 'es', name: 'Español' },
  { language: 'en', name: 'English' },
];

interface HeaderProps {
  /** Undefined where nobody has signed in by hand. */
  readonly onSignOut: (() => void) | undefined;
}

export function Header({ onSignOut }: HeaderProps) {
  const { styles } = useStyles();
  const { t, language, speak } = useSpeech();
  return (
    <View style={styles.header} role="banner">
      <View style={styles.row}>
        <View style={styles.logo} aria-hidden>
          <View style={styles.arch} />
          <View style={styles.pillar} />
          <View style={styles.deck} />
        </View>
        <Text style={styles.brand}>Pasarela</Text>
      </View>
      <View style={styles.row}>
        <View style={styles.languages} role="radiogroup" aria-label={t.language}>
          {LANGUAGES.map((each) => (
            <Pressable
              key={each.language}
              role="radio"
              aria-label={`${each.language.toUpperCase()} – ${each.name}`}
              aria-checked={language === each.language}
              onPress={() => speak(each.language)}
              style={[styles.language, language === each.language && styles.chosen]}
            >
              <Text style={[styles.languageText, language === each.language && styles.tabTextChosen]}>
                {each.language.toUpperCase()}
              </Text>
            </Pressable>
          ))}
        </View>
        {onSignOut !== undefined && (
          <Pressable role="button" onPress={onSignOut} style={styles.language}>
            <Text style={styles.languageText}>{t.signOut}</Text>
          </Pressable>
        )}
      </View>
    </View>
  );
}

export type Tab = 'verify' | 'moneyIn';
const TABS: readonly Tab[] = ['verify', 'moneyIn'];

interface TabsProps {
  readonly tab: Tab;
  /** How far the phone's own bar reaches into the screen. */
  readonly inset: number;
  readonly onTab: (tab: Tab) => void;
}

export function Tabs({ tab, inset, onTab }: TabsProps) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  return (
    <View role="tablist" style={[styles.tabs, { paddingBottom: inset + 8 }]}>
      {TABS.map((each) => (
        <Pressable
          key={each}
          role="tab"
          aria-selected={tab === each}
          onPress={() => onTab(each)}
          style={[styles.tab, tab === each && styles.chosen]}
        >
          <Text style={[styles.tabText, tab === each && styles.tabTextChosen]}>{t[each]}</Text>
        </Pressable>
      ))}
    </View>
  );
}
