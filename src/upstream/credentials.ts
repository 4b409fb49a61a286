import { UpstreamError } from './call/errors.ts';
import type { Attempt } from './call/http.ts';
import { identified, isObject, type Optional } from './call/json.ts';
import type { Rest } from './call/rest.ts';
import { itemOf } from './lists/envelope.ts';

/** The client's credentials (docs/upstream-api.md, "Credential"), snake_case as the upstream sends them. */
export interface Credential {
  readonly id: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly environment: string;
  readonly status: string;
  readonly created_at?: Optional;
  readonly updated_at?: Optional;
  readonly deleted_at?: Optional;
}

/** An access token (docs/upstream-api.md, "CredentialToken"). */
export interface CredentialToken {
  readonly id: string;
  readonly client_id?: Optional;
  readonly client_credential_id?: Optional;
  readonly token: string;
  readonly status: string;
  readonly expires_at?: Optional;
  readonly created_at?: Optional;
  readonly updated_at?: Optional;
  readonly deleted_at?: Optional;
}

const CREDENTIALS = '/v1/clients/{clientId}/credentials';
const CREDENTIAL_TOKENS = '/v1/clients/{clientId}/auth/credential-tokens';

/** The client's credentials (docs/upstream-api.md, endpoint 1). The rest must carry `x-api-key` and no bearer token. */
export async function readCredentials(rest: Rest): Promise<readonly Credential[]> {
  const body = await rest.get(CREDENTIALS);
  const data = isObject(body) ? body['data'] : undefined;
  if (!Array.isArray(data)) {
    throw new UpstreamError('UPSTREAM_INVALID', `The service's list GET ${CREDENTIALS} has no list "data".`);
  }
  return data.map((item, at) => itemOf((one) => identified<Credential>(one, 'a credential'), item, at));
}

/** Exchanges id and secret for an access token (docs/upstream-api.md, endpoint 2). The rest must carry `x-api-key`. */
export const issueCredentialToken = (rest: Rest, clientSecret: string): Promise<Attempt> =>
  rest.send('POST', CREDENTIAL_TOKENS, {
    body: JSON.stringify({ client_id: rest.clientId, client_secret: clientSecret }),
  });

/** A token is sent in a header. One with a space or a line break would fail each call as if the service could not be reached. */
const TOKEN = /^[\x21-\x7e]+$/;

/** Whether a value is an access token's answer. */
export const isCredentialToken = (value: unknown): value is CredentialToken =>
  isObject(value) &&
  typeof value['id'] === 'string' &&
  typeof value['token'] === 'string' &&
  TOKEN.test(value['token']);
