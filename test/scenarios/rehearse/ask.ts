import { type Agent, request } from 'undici';
import { newTrace } from './trace.ts';

/**
 * Asks the graph through a proxy.
 *
 * @param agent trusts the certificates of both proxies.
 * @returns the answer, with its `data` and `errors`, and the id of its trace
 * @throws when there is no answer, or one with a status of 500 or more; the message says which, and whether the gateway or the proxy gave it
 */
export async function ask(
  agent: Agent,
  origin: string,
  authorization: string,
  query: string,
  variables = {},
) {
  const { id: traceId, traceparent } = newTrace();
  const { statusCode, body } = await request(`${origin}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization, traceparent },
    body: JSON.stringify({ query, variables }),
    dispatcher: agent,
  });
  const text = await body.text();
  if (statusCode >= 500)
    throw new Error(`${statusCode} of the ${text.startsWith('{') ? 'gateway' : 'proxy'}`);
  return { ...JSON.parse(text), traceId };
}

/** Why there was no answer, in a few words: the system's code where there is one. */
export function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
