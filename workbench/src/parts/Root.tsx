import { useRef } from 'react';
import { useSession } from '../session.ts';
import { useShown } from '../session-file.ts';
import { t } from '../words.ts';
import { App } from './App.tsx';
import { Mark } from './icons.tsx';
import { OpenSession } from './OpenSession.tsx';
import { SessionView } from './SessionView.tsx';

/** One's own session, or one that is looked at, which needs no gateway. */
export function Root() {
  const session = useShown((shown) => shown.session);
  const { gateway, isReachable } = useSession();
  const isOwn = session === undefined && gateway !== undefined;
  const isBegun = useRef(false);
  isBegun.current ||= isOwn;
  return (
    <>
      {session !== undefined && <SessionView session={session} />}
      {session === undefined && gateway === undefined && !isReachable && <NoGateway />}
      {isBegun.current && (
        // Results and headers are kept nowhere else: who comes back from another's session finds them.
        <div className="wb-own" hidden={!isOwn}>
          <App />
        </div>
      )}
    </>
  );
}

function NoGateway() {
  return (
    <main className="graphiql-container wb-page wb-alone">
      <Mark />
      <h1>{t('The gateway does not answer')}</h1>
      <p role="status">{t('The page tries again every second.')}</p>
      <OpenSession />
    </main>
  );
}
