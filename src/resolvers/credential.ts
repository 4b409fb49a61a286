import type { Context } from '../operation/context.ts';
import * as upstream from '../upstream/credentials.ts';
import {
  type Credential,
  type CredentialToken,
  isCredentialToken,
  readCredentials,
} from '../upstream/credentials.ts';
import type { Rest } from '../upstream/rest.ts';
import { ApiKeyRequiredError, RefusedError, ValidationError } from './errors.ts';
import { argumentId, inputId } from './ids.ts';
import { type SendOnce, successOf } from './outcome.ts';

/** The REST service under the caller's own key. */
function bootstrapRest(clientId: string, context: Context): Rest {
  if (context.apiKey === undefined) throw new ApiKeyRequiredError();
  return context.bootstrapRest(context.apiKey, clientId);
}

/** @throws BadInputError for an id that is no UUID. */
export const credentials = (clientId: string, context: Context): Promise<readonly Credential[]> =>
  readCredentials(bootstrapRest(argumentId('clientId', 'uuid', clientId), context));

export interface IssueCredentialTokenInput {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Another token does no harm, so that an unclear outcome is a top-level error. */
const RULES: SendOnce = { members: [ValidationError, RefusedError], unclear: 'error' };

const readToken = (body: unknown): CredentialToken | undefined =>
  isCredentialToken(body) ? body : undefined;

/** Exchanges id and secret for an access token (docs/upstream-api.md, endpoint 2). Sent once. */
export async function issueCredentialToken(
  input: IssueCredentialTokenInput,
  context: Context,
): Promise<CredentialToken> {
  const rest = bootstrapRest(inputId(['input', 'clientId'], 'uuid', input.clientId), context);
  return successOf(await upstream.issueCredentialToken(rest, input.clientSecret), readToken, RULES);
}
