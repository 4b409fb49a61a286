import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { z } from 'zod';
import { clock } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import type { Logger } from '../common/logger.ts';
import type { Secret } from '../common/secret.ts';
import { connectRedis, type RedisClient } from '../redis/connection.ts';
import { logOutages } from '../redis/outages.ts';
import type { ServiceToken, SharedTokenStore } from './service-token.ts';

export interface SharedTokenStoreOptions {
  /** As `connectRedis` takes it. */
  readonly redisUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly apiKey: Secret;
  readonly logger: Logger;
}

const COMMAND_TIMEOUT_MS = 2_000;
/**
 * How long the lock holds, in milliseconds. Its holder renews it each third of this. A process that dies with it holds up the
 * others no longer.
 */
const LOCK_MS = 6_000;
/** How long a process waits for the lock, in milliseconds. After that it goes on without it. */
const PATIENCE_MS = 24_000;
const LOCK_POLL_MS = 50;
/** How long a token without an end is kept, in milliseconds. */
const KEPT_MS = 3_600_000;

/** KEYS: lock. ARGV: owner, ms. Returns 1 where the owner holds the lock, also when the command is sent again after its reply was lost. */
const LOCK = `local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;
/** KEYS: lock. ARGV: owner. */
const UNLOCK = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`;

const Stored = z.object({
  token: z.string(),
  issuedAt: z.number(),
  expiresAt: z.number().optional(),
  refusedAt: z.number().optional(),
});

/**
 * Opens the store that keeps a client's token in Redis, for all processes with the same credentials. The token is encrypted
 * under a key that is derived from them, so access to Redis alone does not reveal it. Its name in Redis is derived likewise: a
 * process with a new API key or secret neither takes over the token of the old ones, which would hide that the service does not
 * know the new ones, nor replaces it. While Redis is away every process fetches its own token.
 */
export function openSharedTokenStore(options: SharedTokenStoreOptions): SharedTokenStore {
  const { redisUrl, clientId, logger } = options;
  const box = sealedWith(derived(options, 'pasarela upstream token', 32), clientId);
  const prefix = `pasarela:token:{${clientId}}`;
  const name = `${prefix}:${derived(options, 'pasarela upstream token name', 9).toString('base64url')}`;
  const lock = `${prefix}:lock`;
  const redis = connectRedis(redisUrl, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    // As for payments: ends a connection whose other end is gone without a word.
    socketTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: COMMAND_TIMEOUT_MS,
    connectionName: 'pasarela-token',
  });
  logOutages(redis, logger, "the access token's Redis is away");
  const tried = firstTry(redis);

  const attempt = async <T>(step: string, work: () => Promise<T>): Promise<T | undefined> => {
    await tried;
    try {
      return await work();
    } catch (error) {
      // Only the message is logged: the error of the Redis client holds its command, which holds the token.
      logger.warn({ step, error: error instanceof Error ? error.message : '' }, 'the token is not shared');
      return undefined;
    }
  };

  const take = (owner: string) => attempt('lock', () => redis.eval(LOCK, 1, lock, owner, LOCK_MS));

  /** Takes the lock. Resolves with false if Redis is away, or if another process has held the lock for too long. */
  const locked = async (owner: string): Promise<boolean> => {
    const patience = clock.timeoutSignal(PATIENCE_MS);
    while (!patience.aborted) {
      const reply = await take(owner);
      if (reply === 1) return true;
      if (reply === undefined) return false;
      await clock.sleep(LOCK_POLL_MS);
    }
    return false;
  };

  return {
    async read() {
      const text = await attempt('read', () => redis.get(name));
      return typeof text === 'string' ? box.open(text) : undefined;
    },
    async write(token) {
      const life = token.expiresAt === undefined ? KEPT_MS : token.expiresAt - clock.now();
      if (life > 0) await attempt('write', () => redis.set(name, box.seal(token), 'PX', Math.ceil(life)));
    },
    async exclusively(work) {
      const owner = entropy.uuid();
      const isLocked = await locked(owner);
      const renewal = isLocked ? clock.setInterval(() => void take(owner), LOCK_MS / 3) : undefined;
      try {
        return await work();
      } finally {
        clock.clearInterval(renewal);
        if (isLocked) await attempt('unlock', () => redis.eval(UNLOCK, 1, lock, owner));
      }
    },
    async stop() {
      redis.disconnect();
    },
  };
}

/**
 * Resolves once the first connection is there or has failed. A command before that would fail, so that a process that has just
 * started, such as a command line, would fetch a token of its own beside the one that is shared.
 */
function firstTry(redis: RedisClient): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimeout(resolve, COMMAND_TIMEOUT_MS);
    for (const event of ['ready', 'error', 'close']) {
      redis.once(event, () => {
        clock.clearTimeout(timer);
        resolve();
      });
    }
  });
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Derives bytes for one use from a client's credentials (HKDF-SHA-256, RFC 5869). */
function derived(
  { clientId, clientSecret, apiKey }: SharedTokenStoreOptions,
  use: string,
  length: number,
): Buffer {
  const credentials = JSON.stringify([clientSecret.reveal(), apiKey.reveal()]);
  return Buffer.from(hkdfSync('sha256', credentials, clientId, use, length));
}

/** Seals and opens tokens with AES-256-GCM. The client's id is authenticated with them. */
function sealedWith(key: Buffer, clientId: string) {
  const context = Buffer.from(clientId);
  return {
    seal(token: ServiceToken): string {
      const nonce = entropy.bytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(context);
      const text = Buffer.concat([cipher.update(JSON.stringify(token), 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
    },
    /** Returns undefined for a text that another key has sealed, and for anything else. */
    open(text: string): ServiceToken | undefined {
      const bytes = Buffer.from(text, 'base64url');
      const body = bytes.subarray(NONCE_BYTES + TAG_BYTES);
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), {
          authTagLength: TAG_BYTES,
        })
          .setAAD(context)
          .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
        const plain = Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
        const { token, issuedAt, expiresAt, refusedAt } = Stored.parse(JSON.parse(plain));
        return { token, issuedAt, expiresAt, refusedAt };
      } catch {
        return undefined;
      }
    },
  };
}
