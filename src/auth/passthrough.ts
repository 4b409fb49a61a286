import { hash } from 'node:crypto';
import { decodeJwt } from 'jose/jwt/decode';
import { clock } from '../common/clock.ts';
import { Lru } from '../common/lru.ts';
import { clientGroup, type Party } from '../common/party.ts';
import { noteRefusal } from '../common/refusals.ts';
import { fixedCredential } from '../upstream/call/credential.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { isUuid } from '../upstream/call/path.ts';
import type { Rest } from '../upstream/call/rest.ts';
import { ownerOfInstruments } from '../upstream/instruments.ts';
import { type Authenticator, type RestFor, UnauthenticatedError } from './authenticator.ts';
import { type Caller, SCOPES } from './caller.ts';
import { BELIEVED_MS } from './credential-expiry.ts';
import { COUNTED_MS, Guesses } from './guesses.ts';
import { type Ask, KnownCallers } from './known-callers.ts';

interface TokenClaims {
  readonly candidates: readonly string[];
  readonly expiresAt: number | undefined;
}

/**
 * Returns the client ids that a token may stand for, which is every UUID in the given claims, in their order; and when the
 * token ends.
 */
export function readToken(token: string, claims: readonly string[]): TokenClaims {
  try {
    const payload = decodeJwt(token);
    const values = claims.map((claim) => payload[claim]);
    const uuids = values.filter((value): value is string => typeof value === 'string' && isUuid(value));
    return {
      candidates: [...new Set(uuids)],
      expiresAt: typeof payload.exp === 'number' ? payload.exp * 1000 : undefined,
    };
  } catch {
    return { candidates: [], expiresAt: undefined };
  }
}

const credentialOf = (token: string) => fixedCredential({ authorization: `Bearer ${token}` });

/**
 * Tokens of one address that may be refused in a minute. Clients without a known caller share this count; each other client
 * has its own.
 */
const TOKEN_GUESSES = 100;
/**
 * How long after its `exp` a token is not asked about any more, in milliseconds. Until then the service decides: its clock may be another.
 * Phones that wake behind one address all bring ended tokens, and would use up its guesses.
 */
const LONG_ENDED_MS = 300_000;
const REFUSED = 'The service does not accept this access token.';
const SPELLED_OTHERWISE =
  'The service writes the id of this access token’s client in other letters, as in capitals. Ask for a token that names it as the service does.';
/** How long a refused token is refused again without a question to the service, in milliseconds. */
const REFUSED_MS = 10_000;
/** How long a stranger's token that was refused in an unclear form is not asked about again, in milliseconds. */
const UNCLEAR_MS = 5_000;
/** How many refused tokens are remembered, and how many clients with an accepted caller. */
const MAX_REMEMBERED = 10_000;

/** The first and the last time of what has happened again, in milliseconds of the clock that only goes forward. */
interface Times {
  readonly first: number;
  last: number;
}

/** One question about a token. */
interface Question {
  readonly party: Party;
  /** Whether the answer may be kept: not once a fresh question has begun. */
  readonly isCurrent: () => boolean;
  readonly fresh: boolean;
  /** Whose guess it is; undefined for a token that was verified before, which is no guess. */
  readonly source: string | undefined;
}

/**
 * Callers bring the upstream's own token, and the upstream decides. Nothing in the token is believed: the upstream must
 * answer for the client that it names.
 *
 * @param claims JWT claims that may name the client; the upstream documents none.
 */
export function createPassthrough(claims: readonly string[]): Authenticator {
  const known = new KnownCallers();
  const guesses = new Guesses(TOKEN_GUESSES);
  /** By a token's hash: why it was refused. Hashed, because strangers may send long tokens. */
  const refused = new Lru<string>(MAX_REMEMBERED, { ttl: REFUSED_MS });
  /** By a token's hash: when it was refused in no form that the service documents. */
  const unclear = new Lru<Times>(MAX_REMEMBERED, { ttl: 5 * BELIEVED_MS });
  /** Clients that have had an accepted caller. */
  const clients = new Lru<true>(MAX_REMEMBERED);

  async function ask(
    token: string,
    restFor: RestFor,
    read: TokenClaims,
    { party, isCurrent, fresh, source }: Question,
  ): Promise<Caller> {
    const id = hash('sha256', token, 'base64url');
    const reason = fresh ? undefined : refused.get(id);
    if (reason !== undefined) throw new UnauthenticatedError(reason);
    const last = fresh || source === undefined ? undefined : unclear.get(id)?.last;
    if (last !== undefined && clock.monotonic() - last < UNCLEAR_MS) throw notFoundOut();
    assertMayHold(read, claims);
    try {
      const find = () => probe(read, token, restFor, party);
      const answer = await (source === undefined
        ? find()
        : guesses.make(source, find, isWrongGuess, tooManyTokens));
      const caller = decided(answer, unclear, id);
      if (source !== undefined) clients.set(caller.clientId, true);
      if (isCurrent()) refused.delete(id);
      return caller;
    } catch (error) {
      if (error instanceof UnauthenticatedError && isCurrent()) refused.set(id, error.message);
      throw error;
    }
  }

  return {
    servesBootstrap: true,
    sharesIdentity: false,
    verifiesItself: false,
    // Each question is a call to the service. Open feeds of events alone are not asked about: decision 4's cost.
    verifiedAgainMs: undefined,
    upstreamIdentity: (credential) => credential,
    authorize: credentialOf,
    // An address has three quarters of the places, whatever clients its tokens name.
    strangerOf: (token, address) => ({
      caller: sourceOf(readToken(token, claims), address, clients).source,
      group: address,
    }),
    async stop() {},
    identify(token, restFor, fresh, asker, stranger) {
      if (stranger === undefined) {
        const askAgain: Ask = (party, isCurrent) =>
          ask(token, restFor, readToken(token, claims), { party, isCurrent, fresh, source: undefined });
        return known.find(token, askAgain, fresh, asker);
      }
      const read = readToken(token, claims);
      const { source, failureDomain } = sourceOf(read, stranger, clients);
      const requester = { caller: source, group: source, failureDomain };
      const askFirst: Ask = (party, isCurrent) =>
        ask(token, restFor, read, { party, isCurrent, fresh, source });
      return known.find(token, askFirst, fresh, { ...asker, requester }, source);
    },
  };
}

/**
 * Returns under which source a token is counted that nobody has verified yet, and for whom the breaker counts the calls that ask about it. A
 * token that names a client with known callers has a source of its address and that client: other made-up tokens from there do not keep it out.
 *
 * @param clients with known callers.
 */
function sourceOf({ candidates }: TokenClaims, address: string, clients: Lru<true>) {
  const client = candidates.find((candidate) => clients.has(candidate));
  // The service may fail for one client alone, whose phones come from many networks.
  const named = client ?? candidates[0];
  return {
    source: client === undefined ? address : `${address} ${client}`,
    failureDomain: named === undefined ? undefined : clientGroup(named),
  };
}

/** @throws {UnauthenticatedError} for a token about which the service need not be asked. */
function assertMayHold({ candidates, expiresAt }: TokenClaims, claims: readonly string[]): void {
  if (candidates.length === 0) {
    throw new UnauthenticatedError(
      `The access token names no client: it is no JWT that has a UUID in one of its claims ${claims.join(', ')}.`,
    );
  }
  if (expiresAt !== undefined && expiresAt + LONG_ENDED_MS <= clock.now()) {
    throw new UnauthenticatedError('The access token has expired.');
  }
}

/**
 * Finds out for which client the service accepts a token.
 *
 * @returns an answer that may be the service's refusal, or a proxy's, if the token is accepted for none.
 * @throws {UnauthenticatedError} if it is accepted for none, or for several
 */
async function probe(
  { candidates, expiresAt }: TokenClaims,
  token: string,
  restFor: RestFor,
  party: Party,
): Promise<Caller | UpstreamError> {
  const answers = await Promise.all(
    candidates.map((candidate) => accepts(restFor(candidate, credentialOf(token)).sharedBy(party, true))),
  );
  const accepted = candidates.filter((_, at) => answers[at] === 'client');
  const [clientId] = accepted;
  if (clientId === undefined) {
    const unclear = answers.find((answer) => answer instanceof UpstreamError);
    if (unclear !== undefined) return unclear;
    throw new UnauthenticatedError(answers.includes('spelled-otherwise') ? SPELLED_OTHERWISE : REFUSED);
  }
  if (accepted.length > 1) {
    throw new UnauthenticatedError(
      'The access token names more than one client that the service accepts it for.',
    );
  }
  const nobody = { customerId: undefined, subject: undefined, keyOwner: undefined };
  return { clientId, ...nobody, scopes: SCOPES, expiresAt };
}

function tooManyTokens(): UpstreamError {
  noteRefusal('token_guesses');
  return new UpstreamError(
    'UPSTREAM_RATE_LIMITED',
    'The service has refused too many access tokens from this address. Try again in a minute.',
    { dispatched: false, retryAfterMs: COUNTED_MS },
  );
}

/**
 * The probe (docs/authentication.md, "Passthrough"): the upstream lists one instrument under this token, and every one listed is the client's.
 *
 * @returns `client` if it does, or the error of a 4xx that may be a proxy's. The form of a 401 and of a 403 is not documented: each is a refusal.
 */
async function accepts(
  rest: Rest,
): Promise<'client' | 'spelled-otherwise' | 'other' | 'refused' | UpstreamError> {
  try {
    return await ownerOfInstruments(rest);
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.code === 'UPSTREAM_RATE_LIMITED') throw error;
    if (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN' || error.isServices) return 'refused';
    if (error.refusal !== undefined) return error;
    throw error;
  }
}

/** Whether a stranger's guess counts against it: also where the refusal may be a proxy's, as a service may have no other. */
const isWrongGuess = (
  outcome: { readonly result: Caller | UpstreamError } | { readonly failed: unknown },
): boolean =>
  'result' in outcome
    ? outcome.result instanceof UpstreamError
    : outcome.failed instanceof UnauthenticatedError;

const notFoundOut = (cause?: UpstreamError): UpstreamError =>
  new UpstreamError(
    'UPSTREAM_UNAVAILABLE',
    'It could not be found out whose access token this is: the answer may be from something between here and the service.',
    { cause, dispatched: false },
  );

/**
 * Decides on a token that was refused by a 4xx which may be a proxy's. The service may have no other answer, so the refusal counts once it
 * has come again, a minute after the first or later.
 *
 * @param unclear by a token's hash: when that came first, and last.
 */
function decided(answer: Caller | UpstreamError, unclear: Lru<Times>, id: string): Caller {
  if (!(answer instanceof UpstreamError)) {
    unclear.delete(id);
    return answer;
  }
  const now = clock.monotonic();
  const before = unclear.get(id);
  if (before === undefined) unclear.set(id, { first: now, last: now });
  else if (now - before.first >= BELIEVED_MS) throw new UnauthenticatedError(REFUSED);
  else before.last = now;
  throw notFoundOut(answer);
}
