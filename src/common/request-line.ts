import type { IncomingMessage } from 'node:http';

/** Names, IPv4 and IPv6 addresses, and a port. */
const HOST = /^[\w.:[\]-]{1,255}$/;

/** Whether a request's address can be put together of its path and `Host`, which clients may write as they like. */
export function isAnswerable({ url = '/', headers: { host = 'localhost' } }: IncomingMessage): boolean {
  return url.startsWith('/') && HOST.test(host) && URL.canParse(`http://${host}${url}`);
}
