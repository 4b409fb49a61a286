import type { Authorize } from '../upstream/call/credential.ts';
import { UpstreamError } from '../upstream/call/errors.ts';

/** An access token of the upstream, as the gateway holds it. Times are milliseconds since the epoch. */
export interface ServiceToken {
  readonly token: string;
  readonly issuedAt: number;
  /** Undefined when the upstream did not say. */
  readonly expiresAt: number | undefined;
  /** When a token was last renewed because the upstream had answered 401; undefined when that has not happened. */
  readonly refusedAt: number | undefined;
}

/** Where all processes of the gateway keep the one token, and agree on who renews it. */
export interface SharedTokenStore {
  /** The token that another process has left here; undefined when there is none, or it cannot be read. */
  read(): Promise<ServiceToken | undefined>;
  write(token: ServiceToken): Promise<void>;
  /**
   * Runs `work` while no other process does. A share that cannot be reached excludes nobody: better two tokens than none.
   */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

export interface ServiceTokenOptions {
  /** Exchanges the client's id and secret for a token (docs/upstream-api.md, endpoint 2). Throws UpstreamError. */
  readonly issue: () => Promise<Pick<ServiceToken, 'token' | 'expiresAt'>>;
  /** Undefined for a gateway of one process. */
  readonly share: SharedTokenStore | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** How long after a renewal for a 401 the next one may come (docs/authentication.md). */
const REFUSAL_INTERVAL_MS = 30_000;
/** A token is renewed this long before it ends, or in the last tenth of a short life. */
const RENEW_BEFORE_MS = 60_000;

/** The credential of a service-mode gateway: fetched when first needed, and renewed before it ends. */
export function createServiceToken(options: ServiceTokenOptions): Authorize {
  const { issue, share, now } = options;
  let held: ServiceToken | undefined;
  let renewing: Promise<ServiceToken> | undefined;

  const hasEnded = ({ expiresAt }: ServiceToken): boolean => expiresAt !== undefined && expiresAt <= now();
  const endsSoon = ({ issuedAt, expiresAt }: ServiceToken): boolean =>
    expiresAt !== undefined &&
    expiresAt - now() <= Math.min(RENEW_BEFORE_MS, Math.max(0, expiresAt - issuedAt) / 10);

  /** Takes over what another process has renewed meanwhile, or renews. `stale` is what must be replaced. */
  async function replace(stale: ServiceToken | undefined, refused: boolean): Promise<ServiceToken> {
    const shared = await share?.read();
    if (shared !== undefined && shared.token !== stale?.token && !hasEnded(shared)) return shared;
    const refusedAt = shared?.refusedAt ?? stale?.refusedAt;
    if (refused && refusedAt !== undefined && now() - refusedAt < REFUSAL_INTERVAL_MS) {
      throw new UpstreamError(
        'UPSTREAM_UNAVAILABLE',
        "The service does not accept the gateway's own access token.",
        { dispatched: false },
      );
    }
    const issuedAt = now();
    const { token, expiresAt } = await issue();
    const renewed: ServiceToken = {
      token,
      issuedAt,
      // An end that has passed on arrival is told by another clock: then the 401 tells.
      expiresAt: expiresAt !== undefined && expiresAt > now() ? expiresAt : undefined,
      refusedAt: refused ? issuedAt : refusedAt,
    };
    await share?.write(renewed);
    return renewed;
  }

  function renew(refused: boolean): Promise<ServiceToken> {
    const stale = held;
    renewing ??= (share?.exclusively(() => replace(stale, refused)) ?? replace(stale, refused))
      .then((token) => {
        held = token;
        return token;
      })
      .finally(() => {
        renewing = undefined;
      });
    return renewing;
  }

  async function current(): Promise<ServiceToken> {
    if (held === undefined || hasEnded(held)) return renew(false);
    if (endsSoon(held)) {
      // The one that is held still serves, and a renewal that fails is tried again with the next call.
      renew(false).catch(() => undefined);
    }
    return held;
  }

  return async (refused) => {
    if (refused === undefined) return headerOf(await current());
    // A call that was refused a moment before the renewal need not renew again.
    const isHeld = held !== undefined && headerOf(held)['authorization'] === refused['authorization'];
    return headerOf(isHeld ? await renew(true) : await current());
  };
}

const headerOf = ({ token }: ServiceToken) => ({ authorization: `Bearer ${token}` });
