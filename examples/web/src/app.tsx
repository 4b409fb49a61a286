import { useCallback, useEffect, useState } from 'react';
import { Provider, useQuery } from 'urql';
import { graphql } from './gql/index.ts';
import { type Graph, openGraph } from './graph/graph.ts';
import { findSession, type Session } from './graph/session.ts';
import { MoneyIn } from './money-in/screen.tsx';
import { forgetCredits, useMoneyIn } from './money-in/use-money-in.ts';
import { SignIn } from './sign-in.tsx';
import { Failure, Loading, Main } from './ui/feedback.tsx';
import { Header } from './ui/header.tsx';
import { useRoute } from './ui/route.ts';
import { forgetPayments } from './verify/intents.ts';
import { usePayments } from './verify/payments.ts';
import { Verify } from './verify/screen.tsx';

/** Undefined while it is looked for, null where a person has to sign in. */
type Found = Session | null | undefined;

/** How a session ended. Who signs out may hand the screen over; a token that runs out leaves the same person there. */
type Leave = 'signed out' | 'refused';

export function App() {
  const [session, setSession] = useState<Found>();
  const [problem, setProblem] = useState<unknown>();
  const [left, setLeft] = useState<Leave>();
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
  useEffect(find, [find]);
  useEffect(() => {
    // The screens are gone by now, and nothing is saved after this.
    if (session !== null || left !== 'signed out') return;
    forgetCredits();
    void forgetPayments();
  }, [session, left]);

  if (session === undefined && problem !== undefined) {
    return (
      <>
        <Header signedIn={false} />
        <Main>
          <Failure error={problem} onRetry={find} />
        </Main>
      </>
    );
  }
  if (session === undefined) return <Loading />;
  if (session === null) {
    return (
      <>
        <Header signedIn={false} />
        <SignIn
          refused={left === 'refused'}
          onSession={(given) => {
            setLeft(undefined);
            setSession(given);
          }}
        />
      </>
    );
  }
  const leave = (how: Leave) => {
    // It names a transaction of who has left.
    if (how === 'signed out') history.replaceState(null, '', location.pathname + location.search);
    setLeft(how);
    setSession(null);
  };
  return (
    <SignedIn session={session} onSignOut={() => leave('signed out')} onRefused={() => leave('refused')} />
  );
}

interface SignedInProps {
  readonly session: Session;
  readonly onSignOut: () => void;
  readonly onRefused: () => void;
}

function SignedIn({ session, onSignOut, onRefused }: SignedInProps) {
  const [graph, setGraph] = useState<Graph>();
  // The effect makes what it ends: React may end it and begin it again (`StrictMode`, `Activity`), and what was left pays nothing any more.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new callback is no reason to connect again.
  useEffect(() => {
    const leaving = new AbortController();
    setGraph(openGraph(session, leaving.signal, onRefused));
    return () => {
      // A payment that is under way would open the socket again, and go on behind the sign-out.
      leaving.abort();
      // No screen begins anew with what was left.
      setGraph(undefined);
    };
  }, [session]);
  return (
    <>
      <Header signedIn onSignOut={session.simulateCredit === undefined ? onSignOut : undefined} />
      {graph === undefined ? (
        <Loading />
      ) : (
        <Provider value={graph.client}>
          <Screens session={session} graph={graph} />
        </Provider>
      )}
    </>
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
  const owner = session.ownerOf(clientId);
  // Both go on behind either screen.
  const feed = useMoneyIn(graph, owner);
  const payments = usePayments(graph, owner, feed.status === 'live');
  const route = useRoute();
  return (
    <Main>
      {route.screen === 'money-in' ? (
        <MoneyIn feed={feed} simulateCredit={session.simulateCredit} />
      ) : (
        <Verify source={graph.source} payments={payments} transactionId={route.transactionId} />
      )}
    </Main>
  );
}
