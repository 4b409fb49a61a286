import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import { UpstreamError } from '../upstream/call/errors.ts';

/** An access token of the REST service that the gateway holds. Times are milliseconds since the epoch. */
export interface ServiceToken {
  readonly token: string;
  readonly issuedAt: number;
  /** Undefined when the upstream did not say. */
  readonly expiresAt: number | undefined;
  /** When a token was last renewed because the upstream had answered 401; undefined when that has not happened. */
  readonly refusedAt: number | undefined;
}

/** The place where all processes of the gateway keep the one token, and agree which of them renews it. */
export interface SharedTokenStore {
  /** The token that another process has left here; undefined when there is none, or it cannot be read. */
  read(): Promise<ServiceToken | undefined>;
  write(token: ServiceToken): Promise<void>;
  /**
   * Runs `work` while no other process does. If the store cannot be reached, runs it all the same: two tokens are better than
   * none.
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
  /** Called after each `issue`: with the error if it gave no token. */
  readonly onIssue?: (error?: unknown) => void;
}

/** How long after a renewal for a 401 the next one may come, in milliseconds (docs/authentication.md). */
const REFUSAL_INTERVAL_MS = 30_000;
/** A token is renewed this long before it ends, in milliseconds, or in the last tenth of its life if that is shorter. */
const RENEW_BEFORE_MS = 60_000;
/** The pauses after failed renewals, in milliseconds: the first, then doubling up to the longest. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** By how much the clocks of two processes may differ, in milliseconds. */
const CLOCKS_DIFFER_MS = 60_000;

/** The last renewal, which failed. */
interface FailedRenewal {
  readonly error: unknown;
  readonly at: number;
  readonly pauseMs: number;
}

/**
 * Makes pauses between renewals that fail. Otherwise every read that gets a 401 would send the secret once more. Until the
 * pause is over, or for as long as `Retry-After` says, each renewal fails with the error of the last one.
 */
class RenewalPauses {
  readonly #now: () => number;
  #last: FailedRenewal | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @throws the error of the last renewal while its pause lasts, with what is left of the pause, or of the longer time that the service asked for. */
  check(): void {
    if (this.#last === undefined) return;
    const { error, at, pauseMs } = this.#last;
    const since = this.#now() - at;
    // A clock that was put back ends the pause.
    if (since < 0 || since >= pauseMs) return;
    if (!(error instanceof UpstreamError) || error.retryAfterMs === undefined) throw error;
    const { code, message, dispatched, cause, retryAfterMs } = error;
    throw new UpstreamError(code, message, {
      cause,
      dispatched,
      retryAfterMs: Math.max(retryAfterMs, pauseMs) - since,
    });
  }

  failed(error: unknown): void {
    const doubled = this.#last === undefined ? FIRST_PAUSE_MS : 2 * this.#last.pauseMs;
    const asked = error instanceof UpstreamError ? (error.retryAfterMs ?? 0) : 0;
    const pauseMs = Math.max(Math.min(doubled, LONGEST_PAUSE_MS), Math.min(asked, REFUSAL_INTERVAL_MS));
    this.#last = { error, at: this.#now(), pauseMs };
  }

  succeeded(): void {
    this.#last = undefined;
  }
}

/** Returns `issue` with pauses after failures. */
function withPauses({ issue, now, onIssue }: ServiceTokenOptions): ServiceTokenOptions['issue'] {
  const pauses = new RenewalPauses(now);
  return async () => {
    pauses.check();
    try {
      const issued = await issue();
      pauses.succeeded();
      onIssue?.();
      return issued;
    } catch (error) {
      pauses.failed(error);
      onIssue?.(error);
      throw error;
    }
  };
}

/**
 * Makes the credential of a gateway in service mode. It fetches a token when one is first needed, and renews it before it
 * ends.
 */
export function createServiceToken(options: ServiceTokenOptions): Authorize {
  const { share, now } = options;
  const issue = withPauses(options);
  let held: ServiceToken | undefined;
  let renewing: Promise<ServiceToken> | undefined;

  const hasEnded = ({ expiresAt }: ServiceToken): boolean => expiresAt !== undefined && expiresAt <= now();
  const endsSoon = ({ issuedAt, expiresAt }: ServiceToken): boolean =>
    expiresAt !== undefined &&
    expiresAt - now() <= Math.min(RENEW_BEFORE_MS, Math.max(0, expiresAt - issuedAt) / 10);

  /** True if another process's token may replace `stale`. An older one may have ended when `stale` was issued. */
  const isNewer = (shared: ServiceToken, stale: ServiceToken | undefined): boolean =>
    shared.token !== stale?.token &&
    !hasEnded(shared) &&
    (stale === undefined || shared.issuedAt > stale.issuedAt - CLOCKS_DIFFER_MS);

  /** Takes over another process's renewed token in place of `stale`, or renews it. `refused`: after a 401. */
  async function replace(stale: ServiceToken | undefined, refused: boolean): Promise<ServiceToken> {
    const shared = await share?.read();
    if (shared !== undefined && isNewer(shared, stale)) return shared;
    const refusedAt = later(shared?.refusedAt, stale?.refusedAt);
    if (refused && isRecent(refusedAt, now())) {
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
      // If the end has already passed, the clocks differ: it is ignored, and a 401 leads to the next renewal.
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

  function current(): MaybePromise<ServiceToken> {
    if (held === undefined || hasEnded(held)) return renew(false);
    if (endsSoon(held)) {
      renew(false).catch(() => undefined); // The token that is held still serves, and a later call tries again.
    }
    return held;
  }

  return (refused) => {
    if (refused === undefined) return headersOf(current());
    const isHeld = held !== undefined && headerOf(held)['authorization'] === refused['authorization'];
    // If another call has replaced the token, or it has ended, the 401 does not count for the interval between refusals.
    return headersOf(isHeld && !hasEnded(held as ServiceToken) ? renew(true) : current());
  };
}

/**
 * True until the interval after a renewal for a 401 is over. The renewal may be later than now by the clock of another process; by more
 * where the clock was put back since, which ends the interval.
 */
const isRecent = (refusedAt: number | undefined, now: number): boolean =>
  refusedAt !== undefined && now - refusedAt < REFUSAL_INTERVAL_MS && refusedAt - now <= CLOCKS_DIFFER_MS;

const later = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);

const headersOf = (token: MaybePromise<ServiceToken>) =>
  token instanceof Promise ? token.then(headerOf) : headerOf(token);

const headerOf = ({ token }: ServiceToken) => ({ authorization: `Bearer ${token}` });
