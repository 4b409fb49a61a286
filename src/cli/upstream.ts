import { serviceOf } from '../app/config.ts';
import type { Variables } from '../app/variables.ts';
import { UnauthenticatedError } from '../auth/authenticator.ts';
import { createPassthrough } from '../auth/passthrough.ts';
import { createService, type ServiceClient } from '../auth/service.ts';
import { openSharedTokenStore } from '../auth/shared-token-store.ts';
import { clock } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import { silentLogger } from '../common/logger.ts';
import type { Requester } from '../common/party.ts';
import { createBreaker } from '../upstream/call/breaker.ts';
import { type Authorize, fixedCredential } from '../upstream/call/credential.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { createHttp } from '../upstream/call/http.ts';
import { createRest, type Rest } from '../upstream/call/rest.ts';
import { CommandError } from './command.ts';

/** The requester of a command's calls. */
const OPERATOR: Requester = { caller: 'operator', group: 'operator' };

/** The REST service, reached with the credentials in an operator's variables. */
export interface UpstreamAccess extends AsyncDisposable {
  /** Calls for the client that the credentials stand for. */
  readonly rest: Rest;
  /** The gateway's own credentials, and calls under their API key alone; undefined in passthrough. */
  readonly own: { readonly client: ServiceClient; readonly withKey: Rest } | undefined;
}

/**
 * Opens the REST service: in service mode with the gateway's own credentials, otherwise with `PASARELA_TOKEN`.
 *
 * In service mode it uses the token that the running processes share through Redis, if there is one, because it is not
 * documented whether a new token ends the older ones.
 *
 * @throws CommandError if a variable is missing
 * @throws UnauthenticatedError if the token names no client, or if the service does not accept it
 * @throws UpstreamError if the service cannot be asked
 */
export async function openUpstream(variables: Variables): Promise<UpstreamAccess> {
  const { UPSTREAM_URL: origin, UPSTREAM_TIMEOUT_MS: timeoutMs } = variables;
  if (origin === undefined) {
    throw new CommandError('UPSTREAM_URL is not set: name the REST service, such as https://api.example.mx.');
  }
  const http = createHttp(
    origin,
    createBreaker(() => clock.monotonic()),
    {
      connectTimeoutMs: Math.min(5_000, timeoutMs / 2),
      maxAnswerBytes: variables.UPSTREAM_ANSWER_BYTES,
      callsPerCaller: variables.UPSTREAM_CALLS_PER_CALLER,
    },
  );
  const restFor = (clientId: string, authorize: Authorize): Rest =>
    createRest({
      http,
      clientId,
      requester: OPERATOR,
      authorize,
      headers: { 'x-request-id': entropy.uuid(), accept: 'application/json' },
      timeoutMs,
      // Longer than one call, because lists are read page by page.
      deadline: clock.now() + 10 * timeoutMs,
    });
  const service = serviceOf(variables);
  const redisUrl = variables.REDIS_URL?.reveal();
  const client = service && clientOf(service.clients, variables.UPSTREAM_CLIENT_ID);
  const share =
    client && redisUrl ? openSharedTokenStore({ ...client, redisUrl, logger: silentLogger }) : undefined;
  const close = async (): Promise<void> => {
    await share?.stop();
    await http.close();
  };
  try {
    const rest =
      service === undefined || client === undefined
        ? await passthroughRest(variables, restFor)
        : restFor(
            client.clientId,
            createService(
              { ...service, clients: [client], utcOffset: variables.UPSTREAM_UTC_OFFSET },
              restFor,
              share && (() => share),
            ).authorize('', client.clientId),
          );
    const own = client && {
      client,
      withKey: restFor(client.clientId, fixedCredential({ 'x-api-key': client.apiKey.reveal() })),
    };
    return { rest, own, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Returns the client to act for. If the gateway serves several, `UPSTREAM_CLIENT_ID` names it. */
function clientOf(
  clients: readonly [ServiceClient, ...ServiceClient[]],
  named: string | undefined,
): ServiceClient {
  const [first, ...others] = clients;
  if (others.length === 0 && named === undefined) return first;
  const found = clients.find(({ clientId }) => clientId.toLowerCase() === named?.toLowerCase());
  if (found !== undefined) return found;
  // Also of a file with one alone: another may have been taken out of it.
  throw new CommandError(
    named === undefined
      ? `UPSTREAM_CLIENTS holds ${clients.length} clients: name the one to act for in UPSTREAM_CLIENT_ID.`
      : `UPSTREAM_CLIENTS does not hold ${named}: name the one to act for in UPSTREAM_CLIENT_ID.`,
  );
}

async function passthroughRest(
  variables: Variables,
  restFor: (clientId: string, authorize: Authorize) => Rest,
): Promise<Rest> {
  const token = variables.PASARELA_TOKEN?.reveal();
  if (token === undefined) {
    throw new CommandError(
      "PASARELA_TOKEN is not set: it holds the service's access token that this command acts with.",
    );
  }
  const auth = createPassthrough(variables.UPSTREAM_TOKEN_CLIENT_CLAIM);
  const asker = { requester: OPERATOR, urgency: 'operations', leaver: undefined } as const;
  const deadline = clock.now() + 10 * variables.UPSTREAM_TIMEOUT_MS;
  const { clientId } = await auth.identify(token, restFor, true, { ...asker, deadline }, undefined);
  return restFor(clientId, auth.authorize(token, clientId));
}

/** Runs work on the REST service. An error becomes a sentence for the operator. */
export async function withUpstream<T>(variables: Variables, work: (rest: Rest) => Promise<T>): Promise<T> {
  try {
    await using access = await openUpstream(variables);
    return await work(access.rest);
  } catch (error) {
    if (error instanceof UnauthenticatedError || error instanceof UpstreamError) {
      throw new CommandError(`${error.message}\npasarela doctor looks into it.`, { cause: error });
    }
    throw error;
  }
}
