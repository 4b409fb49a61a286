import type { Context } from '../operation/context.ts';
import { type Refusal, UpstreamError } from '../upstream/call/errors.ts';
import type { Rest } from '../upstream/call/rest.ts';
import * as upstream from '../upstream/credentials.ts';
import {
  type Credential,
  type CredentialToken,
  isCredentialToken,
  readCredentials,
} from '../upstream/credentials.ts';
import {
  ApiKeyRefusedError,
  ApiKeyRequiredError,
  OneBootstrapFieldError,
  RefusedError,
  ValidationError,
} from './errors.ts';
import { argumentId, filled, inputId } from './ids.ts';
import { type SendOnce, successOf } from './outcome.ts';

/** Operations that have presented their key. */
const asked = new WeakSet<Context>();

interface Presented {
  readonly clientId: string;
  /** Undefined where the key is all that is presented. */
  readonly clientSecret?: string | undefined;
}

/** What a caller is told whose key, or key and secret, the service refuses. */
interface RefusalErrors {
  /** Of the refusal that has just come. */
  readonly refused: (refusal: Refusal | undefined) => Error;
  /** Of one that is remembered: the service has not been asked. */
  readonly remembered: () => Error;
}

/**
 * Asks the REST service under the caller's own key: once in an operation, and not with what it has just refused, so that
 * nobody can try one after the other.
 */
async function underOwnKey<T>(
  presented: Presented,
  context: Context,
  told: RefusalErrors,
  ask: (rest: Rest) => Promise<T>,
): Promise<T> {
  const { apiKey } = context.identity;
  const { refusedKeys } = context.services;
  if (apiKey === undefined) throw new ApiKeyRequiredError();
  if (asked.has(context)) throw new OneBootstrapFieldError();
  asked.add(context);
  const key = { ...presented, apiKey };
  if (refusedKeys.has(key)) throw told.remembered();
  try {
    return await ask(context.reads.underKey(apiKey, presented.clientId));
  } catch (error) {
    const isRefused =
      error instanceof UpstreamError && (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN');
    if (!isRefused) throw error;
    refusedKeys.add(key);
    throw told.refused(error.refusal);
  }
}

/** @throws BadInputError for an id that is no UUID. */
export const credentials = async (clientId: string, context: Context): Promise<readonly Credential[]> =>
  underOwnKey({ clientId: argumentId('clientId', 'uuid', clientId) }, context, OF_KEY, readCredentials);

const OF_KEY: RefusalErrors = {
  refused: () => new ApiKeyRefusedError('The service does not accept this x-api-key for this client.'),
  remembered: () =>
    new ApiKeyRefusedError(
      'The service has just refused this x-api-key for this client. Try again in a minute.',
    ),
};

const OF_PAIR: RefusalErrors = {
  refused: (upstream) =>
    new RefusedError(
      'REFUSED',
      'The service does not accept this clientSecret under this x-api-key. It does not say which of the two is wrong.',
      upstream === undefined ? {} : { upstream },
    ),
  remembered: () =>
    new RefusedError(
      'REFUSED',
      'The service has just refused this clientSecret under this x-api-key. Try again in a minute.',
    ),
};

export interface IssueCredentialTokenInput {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Another token does no harm, so that an unclear outcome is a top-level error. */
const RULES: SendOnce = { members: [ValidationError, RefusedError], unclear: 'error' };

const readToken = (body: unknown): CredentialToken | undefined =>
  isCredentialToken(body) ? body : undefined;

/**
 * Exchanges id and secret for an access token (docs/upstream-api.md, endpoint 2). Sent once.
 *
 * @throws ValidationError for what can be no id, and for an empty secret.
 * @throws RefusedError where the service refuses key and secret.
 */
export async function issueCredentialToken(
  input: IssueCredentialTokenInput,
  context: Context,
): Promise<CredentialToken> {
  const clientId = inputId(['input', 'clientId'], 'uuid', input.clientId);
  const clientSecret = filled(['input', 'clientSecret'], input.clientSecret);
  return underOwnKey({ clientId, clientSecret }, context, OF_PAIR, async (rest) =>
    successOf(await upstream.issueCredentialToken(rest, clientSecret), readToken, RULES),
  );
}
