import type { IncomingMessage } from 'node:http';

/** Names, IPv4 and IPv6 addresses, and a port. */
const HOST = /^[\w.:[\]-]{1,255}$/;

/** Paths that are valid with any `Host`, such as `/graphql`. */
const PLAIN_PATH = /^(\/[\w.-]+)+$/;

/** What `pasarela doctor` asks for. No client has this id, so that no delivery is meant for it. */
export const PROBE_PATH = '/webhooks/doctor/';

/** The last valid `Host`. Nearly all requests bring the same one. */
let knownHost: string | undefined;

/** True if a request's path and `Host`, which clients may write as they like, make a valid URL. */
export function isAnswerable({ url = '/', headers: { host = 'localhost' } }: IncomingMessage): boolean {
  if (host === knownHost && PLAIN_PATH.test(url)) return true;
  const isAnswerable = url.startsWith('/') && HOST.test(host) && URL.canParse(`http://${host}${url}`);
  if (isAnswerable) knownHost = host;
  return isAnswerable;
}
