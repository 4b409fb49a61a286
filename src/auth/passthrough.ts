import { decodeJwt } from 'jose/jwt/decode';
import type { Party } from '../common/party.ts';
import { UpstreamError } from '../upstream/errors.ts';
import { readInstrumentPage } from '../upstream/instruments.ts';
import { isUuid } from '../upstream/path.ts';
import { fixedCredential, type Rest } from '../upstream/rest.ts';
import { type Authenticator, type RestFor, UnauthenticatedError } from './authenticator.ts';
import { type Caller, SCOPES } from './caller.ts';
import { KnownCallers } from './known-callers.ts';

/** The client ids that a token may mean: every UUID in the given claims, in their order; and when it ends. */
export function readToken(
  token: string,
  claims: readonly string[],
): { readonly candidates: readonly string[]; readonly expiresAt: number | undefined } {
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
 * Callers bring the upstream's own token, and the upstream decides. Nothing in the token is believed: the upstream must
 * answer for the client that it names.
 *
 * @param claims JWT claims that may name the client; the upstream documents none.
 */
export function createPassthrough(claims: readonly string[]): Authenticator {
  const known = new KnownCallers();

  async function ask(token: string, restFor: RestFor, party: Party): Promise<Caller> {
    const { candidates, expiresAt } = readToken(token, claims);
    if (candidates.length === 0) {
      throw new UnauthenticatedError(
        `The access token names no client: no UUID in its claims ${claims.join(', ')}.`,
      );
    }
    const answers = await Promise.all(
      candidates.map(async (candidate) =>
        (await accepts(restFor(candidate, credentialOf(token)).sharedBy(party, true)))
          ? candidate
          : undefined,
      ),
    );
    const accepted = answers.filter((answer) => answer !== undefined);
    const [clientId] = accepted;
    if (clientId === undefined)
      throw new UnauthenticatedError('The service does not accept this access token.');
    if (accepted.length > 1) {
      throw new UnauthenticatedError(
        'The access token names more than one client that the service accepts it for.',
      );
    }
    const nobody = { customerId: undefined, subject: undefined, keyOwner: undefined };
    return { clientId, ...nobody, scopes: SCOPES, expiresAt };
  }

  return {
    servesBootstrap: true,
    sharesIdentity: false,
    upstreamIdentity: (credential) => credential,
    authorize: credentialOf,
    async stop() {},
    identify: (token, restFor, fresh, asker) =>
      known.find(token, (party) => ask(token, restFor, party), fresh, asker),
  };
}

/** The probe (docs/authentication.md, "Passthrough"): the upstream lists one instrument under this token, and every one listed is the client's. */
async function accepts(rest: Rest): Promise<boolean> {
  try {
    const page = await readInstrumentPage(rest, 1, 1);
    return page.items.every((item) => item.clientId === rest.clientId);
  } catch (error) {
    const status = error instanceof UpstreamError ? error.refusal?.httpStatus : undefined;
    if (status !== undefined && status !== 429) return false;
    throw error;
  }
}
