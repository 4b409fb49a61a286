import { errors, type JWTPayload, jwtVerify } from 'jose';
import type { Secret } from '../common/secret.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { isUuid } from '../upstream/call/path.ts';
import { UnauthenticatedError } from './authenticator.ts';
import { type Caller, MONEY_SCOPES, SCOPES } from './caller.ts';
import { createRemoteKeys, type RemoteKeys } from './remote-keys.ts';

/** The keys by which the operator's identity provider signs. */
export type SigningKeys = RemoteKeys | { readonly secret: Secret };

/** Why a caller's token is refused; `keys` if those of the identity provider could not be read. */
export type TokenFailure = 'expired' | 'unknown-key' | 'signature' | 'claims' | 'malformed' | 'keys';

/** Counts verifications of tokens. */
export interface TokenMetrics {
  tokenRefused(reason: TokenFailure): void;
  /** The keys of the identity provider have been read, or could not be. */
  keysRead(isRead: boolean): void;
  /** The REST service has given the gateway a token of its own, or has not. */
  ownTokenAsked(isIssued: boolean): void;
}

export interface TokenVerifierOptions {
  readonly keys: SigningKeys;
  readonly issuer: string;
  readonly audience: string;
  /** The claim that names the owner of a caller's idempotency keys. */
  readonly keyOwnerClaim: string;
  /** The claim that names the client that a caller acts for; undefined where no claim does. */
  readonly clientClaim: string | undefined;
}

/** The bearer of a verified token. */
export interface Bearer extends Omit<Caller, 'clientId'> {
  /** The client that the bearer acts for, in lower case; undefined if the token names none. */
  readonly client: string | undefined;
}

const SECRET_ALGORITHMS = ['HS256', 'HS384', 'HS512'];
/** Algorithms with public keys. `none` and HMAC are left out: a public key must never serve as a shared secret. */
const PUBLIC_ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

/** `exp` is required, because a token without an end would be valid for ever. */
const CLAIMS = { requiredClaims: ['exp'] };

/**
 * Makes the verifier of callers' tokens (RFC 7519). It checks signature, issuer, audience, `nbf`, and `exp`, which is
 * required. Scopes come from `scope` (RFC 8693, 4.2) or `scp`; scopes that the gateway does not know are ignored. A
 * `customer_id` that is no UUID is refused, never taken for none.
 *
 * @returns a function that throws UnauthenticatedError for an invalid token, and UpstreamError if the identity provider's
 * keys cannot be read.
 */
export function createTokenVerifier(
  options: TokenVerifierOptions,
  metrics?: TokenMetrics,
): (token: string) => Promise<Bearer> {
  const { keys, issuer, audience } = options;
  const verify =
    'secret' in keys
      ? withSecret(keys.secret, issuer, audience)
      : withRemoteKeys(keys, issuer, audience, metrics);
  return async (token) => {
    try {
      return bearerOf((await verify(token)).payload, options);
    } catch (error) {
      metrics?.tokenRefused(failureOf(error));
      throw explain(error);
    }
  };
}

function withSecret(secret: Secret, issuer: string, audience: string) {
  const key = new TextEncoder().encode(secret.reveal());
  return (token: string) =>
    jwtVerify(token, key, { ...CLAIMS, issuer, audience, algorithms: SECRET_ALGORITHMS });
}

function withRemoteKeys(
  keys: RemoteKeys,
  issuer: string,
  audience: string,
  metrics: TokenMetrics | undefined,
) {
  const keySet = createRemoteKeys(keys, (isRead) => metrics?.keysRead(isRead));
  return (token: string) =>
    jwtVerify(token, keySet, { ...CLAIMS, issuer, audience, algorithms: PUBLIC_ALGORITHMS });
}

/** Errors of jose about a token that it has read and that is invalid. Any other error means that keys could not be read. */
const REFUSALS = [
  errors.JWTClaimValidationFailed,
  errors.JWTInvalid,
  errors.JWSInvalid,
  errors.JWSSignatureVerificationFailed,
  errors.JOSEAlgNotAllowed,
  errors.JOSENotSupported,
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
];

function failureOf(error: unknown): TokenFailure {
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof UnauthenticatedError || error instanceof errors.JWTClaimValidationFailed)
    return 'claims';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature';
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return 'unknown-key';
  return REFUSALS.some((refusal) => error instanceof refusal) ? 'malformed' : 'keys';
}

function explain(error: unknown): Error {
  if (error instanceof UnauthenticatedError) return error;
  if (error instanceof errors.JWTExpired) return new UnauthenticatedError('The access token has expired.');
  if (REFUSALS.some((refusal) => error instanceof refusal)) {
    // The message does not say which check failed: that would help a forger.
    return new UnauthenticatedError('The access token is not accepted.');
  }
  return new UpstreamError(
    'UPSTREAM_UNAVAILABLE',
    'The keys of the identity provider cannot be read, so that no access token can be verified.',
    { cause: error, dispatched: false },
  );
}

function bearerOf(
  payload: JWTPayload,
  { keyOwnerClaim, clientClaim }: Pick<TokenVerifierOptions, 'keyOwnerClaim' | 'clientClaim'>,
): Bearer {
  const customerId = payload['customer_id'];
  if (customerId !== undefined && !(typeof customerId === 'string' && isUuid(customerId))) {
    throw new UnauthenticatedError('The claim customer_id of the access token is no UUID.');
  }
  const granted = new Set(wordsOf(payload['scope'] ?? payload['scp']));
  if (granted.has('money:move')) for (const scope of MONEY_SCOPES) granted.add(scope);
  const client = clientClaim === undefined ? undefined : payload[clientClaim];
  return {
    client: typeof client === 'string' ? client.toLowerCase() : undefined,
    customerId: customerId?.toLowerCase(),
    subject: textOf(payload, 'sub'),
    keyOwner: textOf(payload, keyOwnerClaim),
    scopes: new Set([...SCOPES].filter((scope) => granted.has(scope))),
    expiresAt: payload.exp === undefined ? undefined : payload.exp * 1000,
  };
}

/** Returns the text of a claim; undefined if the token lacks it. jose checks no claim that is not compared with anything. */
function textOf(payload: JWTPayload, name: string): string | undefined {
  const value = payload[name];
  if (value === undefined || typeof value === 'string') return value;
  throw new UnauthenticatedError(`The claim ${name} of the access token is no text.`);
}

/** Returns the words of a claim, which is a text of words or a list of them. */
function wordsOf(claim: unknown): readonly unknown[] {
  if (typeof claim === 'string') return claim.split(' ');
  return Array.isArray(claim) ? claim : [];
}
