import { createRemoteJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { clock } from '../common/clock.ts';

/** Where the identity provider publishes its keys, and how long they are believed. */
export interface RemoteKeys {
  readonly jwksUrl: string;
  /** A reading begins this long after the one before at the earliest, in milliseconds, whether or not that succeeded. */
  readonly cooldownMs: number;
  /** Keys that were read longer ago than this, in milliseconds, are read again before they are believed. */
  readonly maxAgeMs: number;
}

/** How long the identity provider may take to answer, in milliseconds. */
const KEYS_TIMEOUT_MS = 5_000;
/** How long keys are believed after they were read while the provider does not answer, in milliseconds. */
const KEYS_BELIEVED_MS = 600_000;
/** How long a token waits for keys that are being read again, in milliseconds, if the earlier ones may still be believed. */
const PATIENCE_MS = 1_000;

/**
 * The keys that the identity provider publishes (RFC 7517). A token with an unknown key waits until keys may be read again,
 * so that none of the provider's own tokens is refused even if the keys change twice at once. All waiting tokens share one
 * reading.
 *
 * @param onRead called after each reading.
 */
export function createRemoteKeys(
  { jwksUrl, cooldownMs, maxAgeMs }: RemoteKeys,
  onRead: (isRead: boolean) => void,
): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: KEYS_TIMEOUT_MS,
    // This module decides when keys are read, not jose.
    cooldownDuration: Number.POSITIVE_INFINITY,
    cacheMaxAge: Number.POSITIVE_INFINITY,
  });
  const now = (): number => clock.monotonic();
  /** When the reading of the present keys began. */
  let readAt = Number.NEGATIVE_INFINITY;
  let triedAt = Number.NEGATIVE_INFINITY;
  /** The error of the last reading, if it failed. */
  let failure: { readonly error: unknown } | undefined;
  let reading: Promise<void> | undefined;

  const readNow = async (): Promise<void> => {
    const began = now();
    triedAt = began;
    try {
      await keys.reload();
      readAt = began;
      failure = undefined;
      onRead(true);
    } catch (error) {
      failure = { error };
      onRead(false);
      throw error;
    } finally {
      reading = undefined;
    }
  };
  /** @throws what jose throws if keys cannot be read. */
  const read = (): Promise<void> => {
    reading ??= readNow();
    return reading;
  };

  const refresh = async (): Promise<void> => {
    const age = now() - readAt;
    if (age < maxAgeMs) return;
    const isTooEarly = reading === undefined && now() - triedAt < cooldownMs;
    if (age >= Math.max(maxAgeMs, KEYS_BELIEVED_MS)) {
      if (isTooEarly && failure !== undefined) throw failure.error;
      return read();
    }
    if (isTooEarly) return;
    // A failed reading is counted, and the earlier keys stay.
    await Promise.race([read().catch(() => {}), clock.sleep(PATIENCE_MS, { ref: false })]);
  };

  return async (header, token) => {
    const askedAt = now();
    await refresh();
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // A reading that began before the token came may lack its key.
      while (readAt < askedAt) {
        await clock.sleep(Math.max(0, triedAt + cooldownMs - now()));
        await read();
      }
      return keys(header, token);
    }
  };
}
