import { ResponseEditor, Spinner, useGraphiQL } from '@graphiql/react';
import { useAnswers } from '../answers.ts';
import { codeOf } from '../net/result.ts';
import { asksForToken, endOf, useSession } from '../session.ts';
import { useStreams } from '../streams.ts';
import { validationOf } from '../validations.ts';
import { SignIn } from './SignIn.tsx';
import { StreamView } from './StreamView.tsx';
import { Waterfall } from './Waterfall.tsx';

interface Props {
  readonly onWatch: (transactionId: string) => void;
  readonly onCredit: (() => void) | undefined;
}

/** What came of the operation: its events where it is a subscription, else its result with all that is beneath. */
export function Results({ onWatch, onCredit }: Props) {
  const { tab, isFetching } = useGraphiQL((state) => ({
    tab: state.tabs[state.activeTabIndex],
    isFetching: state.isFetching,
  }));
  const id = tab?.id ?? '';
  const stream = useStreams((streams) => streams[id]);
  const answer = useAnswers((answers) => answers[id]);
  const why = useSignedOut(answer === undefined ? undefined : codeOf(answer.result));
  const validation = answer === undefined ? undefined : validationOf(answer.result);
  const isBlank = stream === undefined && answer === undefined && !tab?.response;
  return (
    <div className="wb-results">
      {why !== undefined && <SignIn reason={why.reason} />}
      {stream !== undefined && (
        <StreamView tab={id} title={tab?.title ?? ''} stream={stream} onCredit={onCredit} />
      )}
      {stream === undefined && validation !== undefined && (
        <p className="wb-offer">
          Its receipt is on the way.{' '}
          <button type="button" className="wb-button wb-primary" onClick={() => onWatch(validation)}>
            Watch this
          </button>
        </p>
      )}
      <div className="wb-response" hidden={stream !== undefined || isBlank}>
        {isFetching && <Spinner />}
        <ResponseEditor />
      </div>
      {isBlank && why === undefined && (
        <div className="wb-empty">
          {isFetching ? (
            <Spinner />
          ) : (
            <p>Press play, or Ctrl-Enter: the result stands here, and beneath it what it took.</p>
          )}
        </div>
      )}
      {stream === undefined && answer !== undefined && <Waterfall answer={answer} />}
    </div>
  );
}

/** Why a token is asked for; undefined where there is one that is good. */
function useSignedOut(code: unknown): { readonly reason: string | undefined } | undefined {
  const session = useSession();
  const { token } = session;
  if (!asksForToken(session)) return undefined;
  if (token === undefined) return { reason: undefined };
  const end = endOf(token);
  if (end !== undefined && end.getTime() < Date.now()) return { reason: 'The token has ended.' };
  return code === 'UNAUTHENTICATED' ? { reason: 'The gateway does not accept this token.' } : undefined;
}
