import { Refused } from '@pasarela/client';
import { createFetch } from '@pasarela/client/fetch';
import { useState } from 'react';
import { ScrollView, Text, TextInput, View } from 'react-native';
import { CLIENT } from './documents.ts';
import { DEFAULT_ENDPOINT, type Session, typedSession } from './graph/session.ts';
import { useSpeech } from './ui/i18n.tsx';
import { Button, Notice } from './ui/parts.tsx';
import { kindOf, type ProblemKind } from './ui/problem.ts';
import { useStyles } from './ui/theme.ts';

type Problem = ProblemKind | 'unreachable';

interface SignInProps {
  /** Whether the gateway has just refused a token. */
  readonly refused: boolean;
  readonly onSession: (session: Session) => void;
}

export function SignIn({ refused, onSession }: SignInProps) {
  const { styles } = useStyles();
  const { t } = useSpeech();
  const [endpoint, setEndpoint] = useState(DEFAULT_ENDPOINT);
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState<Problem | undefined>(refused ? 'token' : undefined);
  const [busy, setBusy] = useState(false);

  const submit = async () => {
    const session = typedSession(endpoint.trim(), token.trim());
    setBusy(true);
    const found = await check(session);
    setBusy(false);
    setProblem(found);
    if (found === undefined) onSession(session);
  };

  return (
    <ScrollView contentContainerStyle={styles.content} keyboardShouldPersistTaps="handled">
      <View style={[styles.card, styles.padded]}>
        <Text role="heading" style={styles.title}>
          {t.signIn.title}
        </Text>
        <Text style={styles.lead}>{t.signIn.lead.replaceAll('`', '')}</Text>
        <Text style={styles.strong}>{t.signIn.endpoint}</Text>
        <TextInput
          aria-label={t.signIn.endpoint}
          value={endpoint}
          onChangeText={setEndpoint}
          autoCapitalize="none"
          autoCorrect={false}
          inputMode="url"
          style={styles.input}
        />
        <Text style={styles.strong}>{t.signIn.token}</Text>
        <TextInput
          aria-label={t.signIn.token}
          value={token}
          onChangeText={setToken}
          autoCapitalize="none"
          autoCorrect={false}
          secureTextEntry
          style={styles.input}
        />
        <Text style={styles.note}>{t.signIn.note}</Text>
        {problem !== undefined && (
          <Notice bad>{problem === 'unreachable' ? t.signIn.unreachable : t.problems[problem]}</Notice>
        )}
        <Button
          primary
          title={t.signIn.submit}
          disabled={busy || token === ''}
          onPress={() => void submit()}
        />
      </View>
    </ScrollView>
  );
}

/** Asks the gateway who the token belongs to. */
async function check({ endpoint, token }: Session): Promise<Problem | undefined> {
  try {
    const { data, errors } = await createFetch({ url: endpoint, token }).query(CLIENT, {});
    if (data?.client) return undefined;
    return errors?.[0] === undefined ? 'unreachable' : kindOf(new Refused(errors[0]));
  } catch {
    return 'unreachable';
  }
}
