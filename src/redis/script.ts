import { createHash } from 'node:crypto';
import type { ChainableCommander } from 'ioredis';
import type { RedisClient } from './connection.ts';
import { TIMED_OUT } from './in-time.ts';

/**
 * A Lua function that Redis runs as one step. Redis out of memory refuses it at its first command by which memory may grow, unless it has
 * written before: so it is done whole or not at all.
 */
export interface Script {
  readonly lua: string;
  readonly sha: string;
}

export function script(lua: string): Script {
  return { lua, sha: createHash('sha1').update(lua).digest('hex') };
}

/** Runs a script by its digest. Sends its text if the server does not know it yet. */
export async function runScript(
  redis: RedisClient,
  { sha, lua }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return await redis.eval(lua, keys.length, ...keys, ...args);
  }
}

/**
 * Runs a script in a pipeline. Resolves with the replies in the order of the commands, or rejects with the first error among them. What
 * stands before the script is sent again with it, where the server does not know it yet.
 *
 * @param make begins the pipeline, and adds the script where it belongs
 */
export async function runPipelined(
  { sha, lua }: Script,
  make: (run: 'evalsha' | 'eval', text: string) => ChainableCommander,
): Promise<readonly unknown[]> {
  let replies = (await make('evalsha', sha).exec()) ?? [];
  if (replies.some(([error]) => isUnknownScript(error))) replies = (await make('eval', lua).exec()) ?? [];
  return replies.map(([error, reply]) => {
    if (error !== null) throw error;
    return reply;
  });
}

/** Returns an error of the Redis client without its command, which holds payloads and payments that no log may show. */
export function withoutCommand(error: unknown): Error {
  return new Error(error instanceof Error ? error.message : String(error));
}

/** True if the client has given up waiting for a reply (`commandTimeout` of ioredis). */
export const isTimeOut = (error: unknown): boolean => error instanceof Error && error.message === TIMED_OUT;

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
