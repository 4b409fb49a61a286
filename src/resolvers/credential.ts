import type { Context } from '../context.ts';
import { type Credential, readCredentials } from '../upstream/credentials.ts';
import type { Rest } from '../upstream/rest.ts';
import { ApiKeyRequiredError } from './errors.ts';
import { argumentId } from './ids.ts';

/** The REST service under the caller's own key. */
export function bootstrapRest(clientId: string, context: Context): Rest {
  if (context.apiKey === undefined) throw new ApiKeyRequiredError();
  return context.bootstrapRest(context.apiKey, clientId);
}

/** @throws BadInputError for an id that is no UUID. */
export const credentials = (clientId: string, context: Context): Promise<readonly Credential[]> =>
  readCredentials(bootstrapRest(argumentId('clientId', 'uuid', clientId), context));
