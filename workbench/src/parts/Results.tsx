import { ResponseEditor, Spinner, useGraphiQL } from '@graphiql/react';
import { useEffect, useRef } from 'react';
import { dropAnswer, useAnswers } from '../answers.ts';
import { paymentOf } from '../described.ts';
import { isNoResult } from '../fetcher.ts';
import { asksForToken, useSession } from '../session.ts';
import { lacksValidation, START_VALIDATION } from '../story.ts';
import { isGoingOn, useStreams } from '../stream-store.ts';
import { dropStream } from '../streams.ts';
import { validationOf } from '../validations.ts';
import { t } from '../words.ts';
import { SignIn } from './SignIn.tsx';
import { StreamView } from './StreamView.tsx';
import { useTokenEnd } from './token-end.ts';
import { Waterfall } from './Waterfall.tsx';

interface Props {
  readonly onWatch: (transactionId: string) => void;
  readonly onCredit: (() => void) | undefined;
  readonly onOpen: (operationName: string) => void;
  readonly onPayment: ((transactionId: string) => void) | undefined;
}

/** What came of the operation: its events where it is a subscription, else its result with all that is beneath. */
export function Results({ onWatch, onCredit, onOpen, onPayment }: Props) {
  const { tab, isFetching } = useGraphiQL((state) => ({
    tab: state.tabs[state.activeTabIndex],
    isFetching: state.isFetching,
  }));
  const id = tab?.id ?? '';
  const stream = useStreams((streams) => streams[id]);
  const answer = useAnswers((answers) => answers[id]);
  const place = useRef<HTMLDivElement>(null);
  usePlayed(id, place);
  const why = useSignedOut();
  const validation = answer === undefined ? undefined : validationOf(answer.result);
  const payment = answer === undefined ? undefined : paymentOf(answer.result);
  const lacks = stream === undefined && lacksValidation(operationOf(tab));
  const response = tab?.response ?? '';
  const hasNothing =
    stream === undefined && answer === undefined && (response === '' || isNoResult(response));
  const isBlank = lacks || hasNothing;
  return (
    <section className="wb-results" aria-label={t('Result')} tabIndex={-1} ref={place}>
      {why !== undefined && <SignIn reason={why.reason} />}
      {stream !== undefined && (
        <StreamView
          key={id}
          tab={id}
          title={tab?.title ?? ''}
          stream={stream}
          onCredit={onCredit}
          onPayment={onPayment}
        />
      )}
      {stream === undefined && (validation !== undefined || payment !== undefined) && (
        <p className="wb-offer">
          {validation !== undefined && (
            <>
              {t('Its receipt is on the way.')}{' '}
              <button type="button" className="wb-button wb-primary" onClick={() => onWatch(validation)}>
                {t('Watch this')}
              </button>
            </>
          )}
          {payment !== undefined && onPayment !== undefined && (
            <button type="button" className="wb-button" onClick={() => onPayment(payment)}>
              {t('What happened to this payment')}
            </button>
          )}
        </p>
      )}
      <div className="wb-response" hidden={stream !== undefined || isBlank}>
        {isFetching && <Spinner />}
        <ResponseEditor />
      </div>
      {isBlank && why === undefined && (
        <div className="wb-empty" role="status">
          {isFetching ? <Spinner /> : <Hint lacks={lacks} onOpen={onOpen} />}
        </div>
      )}
      {stream === undefined && answer !== undefined && <Waterfall answer={answer} />}
    </section>
  );
}

function Hint({ lacks, onOpen }: { readonly lacks: boolean; readonly onOpen: Props['onOpen'] }) {
  if (!lacks)
    return <p>{t('Press play or Ctrl-Enter to see the result here, and the REST calls beneath it.')}</p>;
  return (
    <>
      <p>{t('Play step 2 first: it starts the validation whose receipt is watched here.')}</p>
      <button type="button" className="wb-button wb-primary" onClick={() => onOpen(START_VALIDATION)}>
        {t('Go to step 2')}
      </button>
    </>
  );
}

function operationOf(tab: { title: string; variables?: string | null } | undefined) {
  try {
    return { query: '', operationName: tab?.title, variables: JSON.parse(tab?.variables || '{}') };
  } catch {
    return { query: '', operationName: tab?.title };
  }
}

/**
 * Clears what an earlier play left: the answer with its REST calls, and a stream that has ended. What comes of this play may be an
 * error that has neither. Then brings the result into view, where the page is longer than the window.
 */
function usePlayed(id: string, place: React.RefObject<HTMLElement | null>): void {
  const plays = useGraphiQL(({ queryId }) => queryId);
  const seen = useRef(plays);
  useEffect(() => {
    if (seen.current === plays) return;
    seen.current = plays;
    dropAnswer(id);
    if (!isGoingOn(useStreams.getState()[id])) dropStream(id);
    const top = place.current?.getBoundingClientRect().top ?? 0;
    if (top >= 0 && top < window.innerHeight / 2) return;
    place.current?.scrollIntoView({ block: 'start' });
  }, [plays, id, place]);
}

/** Why a token is asked for; undefined where there is one that is good. */
function useSignedOut(): { readonly reason: string | undefined } | undefined {
  const session = useSession();
  const { token, ended, isClockAhead } = session;
  useTokenEnd(isClockAhead ? undefined : token);
  if (!asksForToken(session)) return undefined;
  if (token === undefined) return { reason: undefined };
  if (ended?.token !== token) return undefined;
  return {
    reason:
      ended.by === 'clock' ? t('The token has expired.') : t('The gateway no longer accepts this token.'),
  };
}
