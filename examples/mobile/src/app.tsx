import { useCallback, useEffect, useState } from 'react';
import { StatusBar, View } from 'react-native';
import { SafeAreaProvider, useSafeAreaInsets } from 'react-native-safe-area-context';
import { CLIENT } from './documents.ts';
import { findSession, type Session } from './graph/session.ts';
import { type Connection, useConnection } from './graph/use-connection.ts';
import { useQuery } from './graph/use-query.ts';
import { MoneyIn } from './money-in/screen.tsx';
import { forgetCredits, useMoneyIn } from './money-in/use-money-in.ts';
import { SignIn } from './sign-in.tsx';
import { Speaking, useSpeech } from './ui/i18n.tsx';
import { Failure, Header, Loading, Notice, type Tab, Tabs } from './ui/parts.tsx';
import { kindOf } from './ui/problem.ts';
import { useStyles } from './ui/theme.ts';
import { forgetPayments } from './verify/intents.ts';
import { usePayments } from './verify/payments.ts';
import { Verify } from './verify/screen.tsx';

export function App() {
  return (
    <SafeAreaProvider>
      <Speaking>
        <Frame />
      </Speaking>
    </SafeAreaProvider>
  );
}

/** How long to wait before a sandbox that gave no answer is asked again, in milliseconds. */
const AGAIN_MS = 2_000;

/** How a session ended. Who signs out may hand the phone over; a token that runs out leaves the same person there. */
type Leave = 'signed out' | 'refused';

function Frame() {
  const { styles, isDark } = useStyles();
  const { t } = useSpeech();
  const { top } = useSafeAreaInsets();
  // Undefined while it is looked for, null when there is none.
  const [session, setSession] = useState<Session | null>();
  const [problem, setProblem] = useState<unknown>();
  const [left, setLeft] = useState<Leave>();
  const [isForgotten, setForgotten] = useState(true);
  const find = useCallback(() => {
    findSession().then(
      (found) => {
        setProblem(undefined);
        // It is looked for again while it is looked for: what comes late takes nobody's place.
        setSession((before) => (before === undefined ? (found ?? null) : before));
      },
      (cause: unknown) => setProblem(cause),
    );
  }, []);
  useEffect(() => {
    if (session !== undefined) return;
    find();
    const timer = setInterval(find, AGAIN_MS);
    return () => clearInterval(timer);
  }, [find, session]);
  useEffect(() => {
    // The screens are gone by now, and nothing is saved after this.
    if (session !== null || left !== 'signed out') return;
    Promise.all([forgetCredits(), forgetPayments()]).catch(() => setForgotten(false));
  }, [session, left]);
  const leave = (how: Leave) => {
    setLeft(how);
    setForgotten(true);
    setSession(null);
  };
  return (
    <View style={[styles.screen, { paddingTop: top }]}>
      <StatusBar barStyle={isDark ? 'light-content' : 'dark-content'} />
      <Header onSignOut={session && !session.simulateCredit ? () => leave('signed out') : undefined} />
      {session === undefined &&
        (problem === undefined ? <Loading /> : <Failure problem={problem} onRetry={find} />)}
      {!isForgotten && <Notice bad>{t.unforgotten}</Notice>}
      {session === null && <SignIn refused={left === 'refused'} onSession={setSession} />}
      {session && <SignedIn session={session} onRefused={() => leave('refused')} />}
    </View>
  );
}

interface SignedInProps {
  readonly session: Session;
  readonly onRefused: () => void;
}

const NOTHING = {};

function SignedIn(props: SignedInProps) {
  const connection = useConnection(props.session);
  return connection === undefined ? <Loading /> : <Connected {...props} {...connection} />;
}

type ConnectedProps = SignedInProps & Connection;

function Connected({ socket, ...props }: ConnectedProps) {
  const { data, problem, again } = useQuery(socket, CLIENT, NOTHING);
  if (data !== undefined) return <Screens {...props} socket={socket} clientId={data.client.id} />;
  return problem === undefined ? <Loading /> : <Failure problem={problem} onRetry={again} />;
}

interface ScreensProps extends ConnectedProps {
  readonly clientId: string;
}

function Screens({ clientId, socket, signal, session, onRefused }: ScreensProps) {
  const { styles } = useStyles();
  const { bottom } = useSafeAreaInsets();
  const [tab, setTab] = useState<Tab>('verify');
  const owner = session.ownerOf(clientId);
  // Both go on behind either screen.
  const feed = useMoneyIn(socket, owner);
  const payments = usePayments(socket, owner, feed.status === 'live', signal);
  // Elsewhere the next connection asks for another token.
  const isOver = !session.renews && kindOf(feed.problem) === 'token';
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new callback is no reason to sign out.
  useEffect(() => {
    if (isOver) onRefused();
  }, [isOver]);
  return (
    <>
      <View style={styles.grow} role="main">
        {tab === 'moneyIn' ? (
          <MoneyIn feed={feed} simulateCredit={session.simulateCredit} />
        ) : (
          <Verify source={socket} payments={payments} />
        )}
      </View>
      <Tabs tab={tab} inset={bottom} onTab={setTab} />
    </>
  );
}
