import type { Context } from '../operation/context.ts';
import * as upstream from '../upstream/credentials.ts';
import {
  type Credential,
  type CredentialToken,
  isCredentialToken,
  readCredentials,
} from '../upstream/credentials.ts';
import { UpstreamError } from '../upstream/errors.ts';
import type { Rest } from '../upstream/rest.ts';
import {
  ApiKeyRefusedError,
  ApiKeyRequiredError,
  OneBootstrapFieldError,
  RefusedError,
  TooManyRefusalsError,
  ValidationError,
} from './errors.ts';
import { argumentId, inputId } from './ids.ts';
import { type SendOnce, successOf } from './outcome.ts';

/** Operations that have presented their key. */
const presented = new WeakSet<Context>();

/**
 * Asks the REST service under the caller's own key: once in an operation, and not with a key that it has just refused, so
 * that nobody can try one after the other.
 */
async function underOwnKey<T>(
  clientId: string,
  context: Context,
  ask: (rest: Rest) => Promise<T>,
): Promise<T> {
  const { apiKey, address, refusedKeys } = context;
  if (apiKey === undefined) throw new ApiKeyRequiredError();
  if (presented.has(context)) throw new OneBootstrapFieldError();
  presented.add(context);
  const key = { clientId, apiKey, address };
  const refused = refusedKeys.find(key);
  if (refused === 'key') throw new ApiKeyRefusedError();
  if (refused === 'address') throw new TooManyRefusalsError();
  try {
    return await ask(context.bootstrapRest(apiKey, clientId));
  } catch (error) {
    if (error instanceof UpstreamError && (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN')) {
      refusedKeys.add(key);
    }
    throw error;
  }
}

/** @throws BadInputError for an id that is no UUID. */
export const credentials = async (clientId: string, context: Context): Promise<readonly Credential[]> =>
  underOwnKey(argumentId('clientId', 'uuid', clientId), context, readCredentials);

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
  const clientId = inputId(['input', 'clientId'], 'uuid', input.clientId);
  return underOwnKey(clientId, context, async (rest) =>
    successOf(await upstream.issueCredentialToken(rest, input.clientSecret), readToken, RULES),
  );
}
