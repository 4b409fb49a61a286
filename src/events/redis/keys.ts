import { hash } from 'node:crypto';
import type { NewEvent } from '../log.ts';

/** Returns the names of one client's keys. They have one hash tag, so that a Cluster keeps them together. */
export function redisKeys(clientId: string): {
  meta: string;
  log: string;
  channel: string;
  /** Keys of `search-scripts.ts`, in its order. */
  index: readonly [index: string, names: string, indexed: string];
  /** The index keys of earlier versions, which hold fewer names. */
  earlierIndex: readonly string[];
} {
  return {
    meta: `{${clientId}}:meta`,
    log: `{${clientId}}:log`,
    channel: `{${clientId}}:events`,
    index: [`{${clientId}}:index2`, `{${clientId}}:names2`, `{${clientId}}:indexed2`],
    earlierIndex: [`{${clientId}}:index`, `{${clientId}}:names`, `{${clientId}}:indexed`],
  };
}

/** Returns the key under which a message is recognised. It tells nothing of the message. */
export function seenKey(clientId: string, event: Pick<NewEvent, 'type' | 'identity'>): string {
  const digest = hash('sha256', `${event.type}:${event.identity}`, 'hex');
  return `{${clientId}}:seen:${digest}`;
}

/** Returns the client whose channel this is, or undefined for a channel of another program. */
export function channelClient(channel: string): string | undefined {
  return /^\{(.+)\}:events$/.exec(channel)?.[1];
}
