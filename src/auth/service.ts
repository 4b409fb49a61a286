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
import { VERIFIED_AGAIN_MS } from './credential-expiry.ts';
import { KnownCallers } from './known-callers.ts';
import { createServiceToken, type SharedTokenStore } from './service-token.ts';
import { createTokenVerifier, type SigningKeys, type TokenMetrics } from './token-verifier.ts';

/** The gateway's credentials for one client, in service mode. */
export interface ServiceClient {
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly apiKey: Secret;
}

/** The gateway's credentials in service mode, and how it verifies callers. */
export interface ServiceOptions {
  /** The clients that the gateway stands for. */
  readonly clients: readonly [ServiceClient, ...ServiceClient[]];
  /**
   * The claim of callers' tokens that names one of these clients; undefined if there is one client, for which all callers
   * act.
   */
  readonly clientClaim: string | undefined;
  readonly keys: SigningKeys;
  readonly issuer: string;
  readonly audience: string;
  readonly keyOwnerClaim: string;
  /** Offset of an `expires_at` that carries none. */
  readonly utcOffset: string;
}

/**
 * Service mode: callers bring tokens of the operator's own identity provider, and the gateway calls the upstream under its
 * own token.
 *
 * @param restFor returns REST calls of the gateway itself, which belong to no operation.
 * @param shareOf opens the store in which processes share the token of a client; undefined for a gateway of one process.
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
    // The answer is the same as for a token that names no client, so that it does not tell which clients the gateway serves.
    if (client === undefined || !credentials.has(client)) {
      throw new UnauthenticatedError('The access token is for no client of this gateway.');
    }
    return { clientId: client, ...bearer, amongClients: true };
  };
  return {
    servesBootstrap: false,
    sharesIdentity: true,
    verifiesItself: true,
    verifiedAgainMs: 'jwksUrl' in options.keys ? VERIFIED_AGAIN_MS : undefined,
    upstreamIdentity: (_credential, clientId) => clientId,
    strangerOf: (_token, address) => ({ caller: address, group: address }),
    authorize: (_token, clientId) => credentials.get(clientId) ?? refuseClient,
    identify: (token, _restFor, fresh, asker) => known.find(token, () => verify(token), fresh, asker),
    async stop() {
      await Promise.all([...shares.values()].map((share) => share?.stop()));
    },
  };
}

/**
 * Returns a function that counts the answers to requests for a client's token. It logs once when there is none, and once when
 * there is one again.
 */
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
  return cause instanceof UpstreamError
    ? { code: cause.code, status: cause.refusal?.httpStatus ?? cause.status }
    : {};
};

/** The credential of a client that is no longer served, but whose events are still there. */
const refuseClient: Authorize = () =>
  Promise.reject(
    new UpstreamError('UPSTREAM_UNAVAILABLE', 'The gateway has no credentials of this client.', {
      dispatched: false,
    }),
  );

/**
 * Fetches a token. If there is none, the error is not `UNAUTHENTICATED`, because the caller's token is not at fault; nothing
 * of its operation has left.
 */
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

/**
 * Reads when a token ends: at the earlier of `expires_at` and its own `exp`, of those that are still to come. An `expires_at` without an
 * offset may be in another zone than the one that it is given, and so hours late or past.
 */
function readIssued(
  issued: CredentialToken,
  utcOffset: string,
): { readonly token: string; readonly expiresAt: number | undefined } {
  const { token } = issued;
  const written = toRfc3339(issued.expires_at, utcOffset);
  const told = written == null ? Number.NaN : Date.parse(written);
  const coming = [told, endOf(token) ?? Number.NaN].filter((end) => end > clock.now());
  return { token, expiresAt: coming.length === 0 ? undefined : Math.min(...coming) };
}

function endOf(token: string): number | undefined {
  try {
    const { exp } = decodeJwt(token);
    return exp === undefined ? undefined : exp * 1000;
  } catch {
    // The token is no JWT. It is renewed when the service refuses it.
    return undefined;
  }
}
