import { decodeJwt } from 'jose/jwt/decode';
import { clock } from '../common/clock.ts';
import { type Logger, silentLogger } from '../common/logger.ts';
import type { Secret } from '../common/secret.ts';
import { type Authorize, fixedCredential } from '../upstream/call/credential.ts';
import { errorOfAnswer, UpstreamError } from '../upstream/call/errors.ts';
import type { Rest } from '../upstream/call/rest.ts';
import { toRfc3339 } from '../upstream/call/timestamps.ts';
import { type CredentialToken, isCredentialToken, issueCredentialToken } from '../upstream/credentials.ts';
import { type Authenticator, type RestFor, UnauthenticatedError } from './authenticator.ts';
import type { Caller } from './caller.ts';
import { KnownCallers } from './known-callers.ts';
import { createServiceToken, type SharedTokenStore } from './service-token.ts';
import { createTokenVerifier, type SigningKeys, type TokenMetrics } from './token-verifier.ts';

/** How a gateway in service mode is known to the upstream as one client. */
export interface ServiceClient {
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly apiKey: Secret;
}

/** How a gateway in service mode is known to the upstream, and how it knows its callers. */
export interface ServiceOptions {
  /** The clients that it stands for, one or more. */
  readonly clients: readonly [ServiceClient, ...ServiceClient[]];
  /** The claim of callers' tokens that names one of these clients; undefined where there is one, for which all callers act. */
  readonly clientClaim: string | undefined;
  readonly keys: SigningKeys;
  readonly issuer: string;
  readonly audience: string;
  readonly keyOwnerClaim: string;
  /** Offset of an `expires_at` that carries none. */
  readonly utcOffset: string;
}

/**
 * Callers bring tokens of the operator's own identity provider; the gateway calls the upstream under its own.
 *
 * @param restFor REST calls of the gateway itself, that belong to no operation.
 * @param shareOf where processes share the token of a client; undefined for a gateway of one process.
 */
export function createService(
  options: ServiceOptions,
  restFor: RestFor,
  shareOf: ((client: ServiceClient) => SharedTokenStore) | undefined,
  metrics?: TokenMetrics,
  logger: Logger = silentLogger,
): Authenticator {
  const { clients, clientClaim, utcOffset } = options;
  const shares = new Map(clients.map((client) => [client.clientId, shareOf?.(client)]));
  const credentials = new Map(
    clients.map((client) => {
      const { clientId, clientSecret, apiKey } = client;
      const bootstrap = () => restFor(clientId, fixedCredential({ 'x-api-key': apiKey.reveal() }));
      const authorize = createServiceToken({
        issue: async () => readIssued(await issue(bootstrap(), clientSecret), utcOffset),
        share: shares.get(clientId),
        now: () => clock.now(),
        onIssue: noteIssues(clientId, metrics, logger),
      });
      return [clientId, authorize] as const;
    }),
  );
  const bearerOf = createTokenVerifier(options, metrics);
  const known = new KnownCallers();
  const verify = async (token: string): Promise<Caller> => {
    const { client, ...bearer } = await bearerOf(token);
    if (clientClaim === undefined) return { clientId: clients[0].clientId, ...bearer };
    // A client that is not served is told like one that is not named: which ones are is nobody's business.
    if (client === undefined || !credentials.has(client)) {
      throw new UnauthenticatedError('The access token is for no client of this gateway.');
    }
    return { clientId: client, ...bearer, amongClients: true };
  };
  return {
    servesBootstrap: false,
    sharesIdentity: true,
    verifiesItself: true,
    upstreamIdentity: (_credential, clientId) => clientId,
    authorize: (_token, clientId) => credentials.get(clientId) ?? refuseClient,
    identify: (token, _restFor, fresh, asker) => known.find(token, () => verify(token), fresh, asker),
    async stop() {
      await Promise.all([...shares.values()].map((share) => share?.stop()));
    },
  };
}

/** Counts the answers to requests for a client's token, and logs once for each state that there is none, or one again. */
function noteIssues(
  clientId: string,
  metrics: TokenMetrics | undefined,
  logger: Logger,
): (error?: unknown) => void {
  let isMissing = false;
  return (error) => {
    const fails = error !== undefined;
    metrics?.ownTokenAsked(!fails);
    if (fails && !isMissing) {
      logger.warn({ clientId, ...causeOf(error) }, 'the service gives the gateway no access token');
    } else if (!fails && isMissing) {
      logger.info({ clientId }, 'the service gives the gateway an access token again');
    }
    isMissing = fails;
  };
}

const causeOf = (error: unknown): object => {
  const cause: unknown = error instanceof UpstreamError ? error.cause : undefined;
  return cause instanceof UpstreamError ? { code: cause.code, status: cause.refusal?.httpStatus } : {};
};

/** Of a client that was served once, and whose events are still there. */
const refuseClient: Authorize = () =>
  Promise.reject(
    new UpstreamError('UPSTREAM_UNAVAILABLE', 'The gateway has no credentials of this client.', {
      dispatched: false,
    }),
  );

/** A token that could not be had is the gateway's trouble, not the caller's, and nothing of its operation has left. */
async function issue(rest: Rest, secret: Secret): Promise<CredentialToken> {
  const attempt = await issueCredentialToken(rest, secret.reveal());
  if (attempt.kind === 'answered' && attempt.status < 300 && isCredentialToken(attempt.body))
    return attempt.body;
  const cause = attempt.kind === 'failed' ? attempt.error : errorOfAnswer(attempt);
  const code = cause.code === 'UPSTREAM_TIMEOUT' ? cause.code : 'UPSTREAM_UNAVAILABLE';
  const { retryAfterMs } = cause;
  throw new UpstreamError(code, 'The service gave the gateway no access token.', {
    cause,
    dispatched: false,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function readIssued(
  issued: CredentialToken,
  utcOffset: string,
): { readonly token: string; readonly expiresAt: number | undefined } {
  const { token } = issued;
  const written = toRfc3339(issued.expires_at, utcOffset);
  return { token, expiresAt: written == null ? endOf(token) : Date.parse(written) };
}

function endOf(token: string): number | undefined {
  try {
    const { exp } = decodeJwt(token);
    return exp === undefined ? undefined : exp * 1000;
  } catch {
    // A token of another form than JWT: it is renewed when it is refused.
    return undefined;
  }
}
