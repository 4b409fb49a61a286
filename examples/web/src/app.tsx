import { useEffect, useMemo, useState } from 'react';
import { Provider, useQuery } from 'urql';
import { graphql } from './gql/index.ts';
import { type Graph, openGraph } from './graph/graph.ts';
import { findSession, forgetSession, type Session } from './graph/session.ts';
import { MoneyIn } from './money-in/screen.tsx';
import { useMoneyIn } from './money-in/use-money-in.ts';
import { SignIn } from './sign-in.tsx';
import { Failure, Loading } from './ui/feedback.tsx';
import { Header } from './ui/header.tsx';
import { useRoute } from './ui/route.ts';
import { Verify } from './verify/screen.tsx';

export function App() {
  // Undefined while it is looked for, null when there is none.
  const [session, setSession] = useState<Session | null>();
  const [refused, setRefused] = useState(false);
  useEffect(() => {
    void findSession().then((found) => setSession(found ?? null));
  }, []);

  const leave = (isRefused: boolean) => {
    forgetSession();
    setRefused(isRefused);
    setSession(null);
  };
  if (session === undefined) return <Loading />;
  if (session === null) {
    return (
      <>
        <Header signedIn={false} />
        <SignIn
          refused={refused}
          onSession={(given) => {
            setRefused(false);
            setSession(given);
          }}
        />
      </>
    );
  }
  return <SignedIn session={session} onSignOut={() => leave(false)} onRefused={() => leave(true)} />;
}

interface SignedInProps {
  readonly session: Session;
  readonly onSignOut: () => void;
  readonly onRefused: () => void;
}

function SignedIn({ session, onSignOut, onRefused }: SignedInProps) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new callback is no reason to connect again.
  const graph = useMemo(() => openGraph(session, onRefused), [session]);
  return (
    <Provider value={graph.client}>
      <Header signedIn onSignOut={session.simulateCredit === undefined ? onSignOut : undefined} />
      <Screens session={session} graph={graph} />
    </Provider>
  );
}

const CLIENT = graphql(`
  query Client {
    client {
      id
    }
  }
`);

interface ScreensProps {
  readonly session: Session;
  readonly graph: Graph;
}

function Screens({ session, graph }: ScreensProps) {
  const [{ data, error }, again] = useQuery({ query: CLIENT });
  if (data !== undefined) return <ScreensOf clientId={data.client.id} session={session} graph={graph} />;
  if (error === undefined) return <Loading />;
  return <Failure error={error} onRetry={() => again({ requestPolicy: 'network-only' })} />;
}

function ScreensOf({ clientId, session, graph }: ScreensProps & { readonly clientId: string }) {
  // Followed on either screen.
  const feed = useMoneyIn(graph, clientId);
  const route = useRoute();
  return (
    <main id="content">
      {route.screen === 'money-in' ? (
        <MoneyIn feed={feed} simulateCredit={session.simulateCredit} />
      ) : (
        <Verify source={graph.source} transactionId={route.transactionId} />
      )}
    </main>
  );
}
