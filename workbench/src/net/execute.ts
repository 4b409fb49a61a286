import { GRAPH_URL, isOffline } from '../addresses.ts';
import { sendsCredential } from '../credentials.ts';
import { confirmRefusal, refreshSession, untilReachable, useSession } from '../session.ts';
import { t } from '../words.ts';
import {
  hasDoneNothing,
  type Operation,
  type Result,
  refusesToken,
  type UpstreamCall,
  upstreamOf,
} from './result.ts';

/** An answer, and what it took. */
export interface Answer {
  /** When it was asked for. */
  readonly at: Date;
  readonly result: Result;
  readonly status: number;
  readonly milliseconds: number;
  /** Of the body, as text. */
  readonly bytes: number;
  readonly upstream: readonly UpstreamCall[] | undefined;
  /** Whether the operation that was sent has to do with a secret or a token. */
  readonly hasCredential: boolean;
}

type Headers = Readonly<Record<string, string>>;

/** The header of an operation that holds a credential of its own, if it has one. */
export const ownToken = (headers: Headers): string | undefined =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization')?.[1];

/** The token of the session, unless the operation brings one of its own. */
export function withToken(headers: Headers): Headers {
  const { token } = useSession.getState();
  return ownToken(headers) !== undefined || token === undefined
    ? headers
    : { ...headers, authorization: `Bearer ${token}` };
}

/**
 * Sends a query or a mutation.
 *
 * @throws Error with a sentence for a person when there is no answer.
 */
export async function execute(operation: Operation, headers: Headers, signal: AbortSignal): Promise<Answer> {
  const { token } = useSession.getState();
  const answer = await send(operation, headers, signal);
  if (!refusesToken(answer.result)) return answer;
  // The sandbox gives another token when the last one has ended.
  await refreshSession();
  // A mutation of several fields may have done the first of them, and would do it once more. A text without that word has none.
  const isSafe = hasDoneNothing(answer.result) || !/\bmutation\b/.test(operation.query);
  if (isSafe && useSession.getState().token !== token) return send(operation, headers, signal);
  // The answer is shown meanwhile.
  if (ownToken(headers) === undefined) void confirmRefusal(token);
  return answer;
}

async function send(operation: Operation, headers: Headers, signal: AbortSignal): Promise<Answer> {
  const at = new Date();
  const start = performance.now();
  const sent = fetch(GRAPH_URL, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/graphql-response+json, application/json',
      ...withToken(headers),
    },
    body: JSON.stringify(operation),
    signal,
  });
  // An answer may be cut off in its midst as well.
  const read = sent.then(async (response) => ({ status: response.status, text: await response.text() }));
  const { status, text } = await read.catch((error: unknown) => {
    if (signal.aborted) throw error;
    void untilReachable();
    throw new Error(
      isOffline()
        ? t('This device is offline, and the gateway is not on it.')
        : t('The gateway does not answer. The page tries again every second: press play once it is back.'),
    );
  });
  const milliseconds = performance.now() - start;
  const result = parse(text, status);
  return {
    at,
    result,
    status,
    milliseconds,
    bytes: new Blob([text]).size,
    upstream: upstreamOf(result),
    hasCredential: sendsCredential(operation),
  };
}

function parse(text: string, status: number): Result {
  try {
    return JSON.parse(text) as Result;
  } catch {
    throw new Error(
      t('What answers here is not GraphQL: status {status}, {text}', { status, text: text.slice(0, 200) }),
    );
  }
}
