import { createRemoteJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { clock } from '../common/clock.ts';

/** Where the identity provider shows its keys, and how long they are believed. */
export interface RemoteKeys {
  readonly jwksUrl: string;
  /** Keys are read twice within this time only where the first reading failed, in milliseconds. */
  readonly cooldownMs: number;
  /** Keys that were read longer ago are read again before they are believed, in milliseconds. */
  readonly maxAgeMs: number;
}

/** How long the identity provider may take to show its keys, in milliseconds. */
const KEYS_TIMEOUT_MS = 5_000;
/** While the provider does not answer, keys are believed for this time since they were read, in milliseconds. */
const BELIEVED_MS = 600_000;
/** A token waits this long for keys that are read again, where those of before may still be believed, in milliseconds. */
const PATIENCE_MS = 1_000;

/**
 * The keys that the identity provider shows (RFC 7517). A token of a key that is not known waits until keys may be read again:
 * keys may change twice at once, and none of the provider's own tokens is refused. All that wait share one reading.
 *
 * @param onRead called after each reading.
 */
export function createRemoteKeys(
  { jwksUrl, cooldownMs, maxAgeMs }: RemoteKeys,
  onRead: (isRead: boolean) => void,
): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: KEYS_TIMEOUT_MS,
    // When keys are read is decided here.
    cooldownDuration: Number.POSITIVE_INFINITY,
    cacheMaxAge: Number.POSITIVE_INFINITY,
  });
  const now = (): number => clock.monotonic();
  /** When the reading began by which the keys are known. */
  let readAt = Number.NEGATIVE_INFINITY;
  let triedAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const readNow = async (): Promise<void> => {
    const began = now();
    triedAt = began;
    try {
      await keys.reload();
      readAt = began;
      onRead(true);
    } catch (error) {
      onRead(false);
      throw error;
    } finally {
      reading = undefined;
    }
  };
  /** @throws what jose throws of keys that cannot be had. */
  const read = (): Promise<void> => {
    reading ??= readNow();
    return reading;
  };

  const refresh = async (): Promise<void> => {
    const age = now() - readAt;
    if (age < maxAgeMs) return;
    if (age >= Math.max(maxAgeMs, BELIEVED_MS)) return read();
    if (now() - triedAt < cooldownMs) return;
    // What fails is counted, and the keys of before stand.
    await Promise.race([read().catch(() => {}), clock.sleep(PATIENCE_MS, { ref: false })]);
  };

  return async (header, token) => {
    const askedAt = now();
    await refresh();
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // A reading that began before the token was here may have missed its key.
      while (readAt < askedAt) {
        await clock.sleep(Math.max(0, triedAt + cooldownMs - now()));
        await read();
      }
      return keys(header, token);
    }
  };
}
