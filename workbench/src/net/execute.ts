import { GRAPH_URL } from '../addresses.ts';
import { refreshSession, untilReachable, useSession } from '../session.ts';
import { codeOf, type Operation, type Result, type UpstreamCall, upstreamOf } from './result.ts';

/** An answer, and what it took. */
export interface Answer {
  readonly result: Result;
  readonly status: number;
  readonly milliseconds: number;
  /** Of the body, as text. */
  readonly bytes: number;
  readonly upstream: readonly UpstreamCall[] | undefined;
}

type Headers = Readonly<Record<string, string>>;

/** The token of the session, unless the operation brings one of its own. */
export function withToken(headers: Headers): Headers {
  const { token } = useSession.getState();
  const bringsOwn = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  return bringsOwn || token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
}

/**
 * Sends a query or a mutation.
 *
 * @throws Error with a sentence for a person when there is no answer.
 */
export async function execute(operation: Operation, headers: Headers, signal: AbortSignal): Promise<Answer> {
  const { token } = useSession.getState();
  const answer = await send(operation, headers, signal);
  if (codeOf(answer.result) !== 'UNAUTHENTICATED') return answer;
  // Nothing has been done yet. The sandbox gives another token when the last one has ended.
  await refreshSession();
  return useSession.getState().token === token ? answer : send(operation, headers, signal);
}

async function send(operation: Operation, headers: Headers, signal: AbortSignal): Promise<Answer> {
  const start = performance.now();
  const response = await fetch(GRAPH_URL, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/graphql-response+json, application/json',
      ...withToken(headers),
    },
    body: JSON.stringify(operation),
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    void untilReachable();
    throw new Error(
      navigator.onLine
        ? 'The gateway does not answer. It is looked for every second: press play again once it is back.'
        : 'This device is offline, and the gateway is not on it.',
    );
  });
  const text = await response.text();
  const milliseconds = performance.now() - start;
  const result = parse(text, response.status);
  return {
    result,
    status: response.status,
    milliseconds,
    bytes: new Blob([text]).size,
    upstream: upstreamOf(result),
  };
}

function parse(text: string, status: number): Result {
  try {
    return JSON.parse(text) as Result;
  } catch {
    throw new Error(`What answers here is no GraphQL: status ${status}, ${text.slice(0, 200)}`);
  }
}
