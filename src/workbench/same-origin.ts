import type { IncomingMessage } from 'node:http';

/**
 * Whether a request was made by a person on this machine: under a loopback name, which no page of another site can borrow
 * (DNS rebinding brings the name of that site along), and not by a page of another origin.
 */
export function isOwnPage({ headers }: IncomingMessage): boolean {
  const { host = '', origin } = headers;
  const site = headers['sec-fetch-site'];
  return (
    isLoopback(host) &&
    (site === undefined || site === 'same-origin' || site === 'none') &&
    (origin === undefined || origin === `http://${host}` || origin === `https://${host}`)
  );
}

/** Whether a `Host` header names this machine itself. */
export function isLoopback(host: string): boolean {
  if (!URL.canParse(`http://${host}`)) return false;
  const { hostname } = new URL(`http://${host}`);
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}
