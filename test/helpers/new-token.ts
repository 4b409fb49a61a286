import { expect } from 'vitest';
import type { Sandbox } from '#sandbox';

/** Has the service give the client of a sandbox a new token. With `newTokenEndsOlder` the ones before end, whatever their `exp`. */
export async function newToken({ url, clientId, clientSecret, apiKey }: Sandbox): Promise<string> {
  const answer = await fetch(`${url}/v1/clients/${clientId}/auth/credential-tokens`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: clientId, client_secret: clientSecret }),
  });
  expect(answer.ok).toBe(true);
  return ((await answer.json()) as { token: string }).token;
}
