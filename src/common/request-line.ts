import type { IncomingMessage } from 'node:http';

/** Names, IPv4 and IPv6 addresses, and a port. */
const HOST = /^[\w.:[\]-]{1,255}$/;

/** Paths that no `Host` makes unreadable, such as `/graphql`. */
const PLAIN_PATH = /^(\/[\w.-]+)+$/;

/** The last `Host` that a URL was made of: nearly all requests bring the same. */
let knownHost: string | undefined;

/** Whether a request's address can be put together of its path and `Host`, which clients may write as they like. */
export function isAnswerable({ url = '/', headers: { host = 'localhost' } }: IncomingMessage): boolean {
  if (host === knownHost && PLAIN_PATH.test(url)) return true;
  const isAnswerable = url.startsWith('/') && HOST.test(host) && URL.canParse(`http://${host}${url}`);
  if (isAnswerable) knownHost = host;
  return isAnswerable;
}
