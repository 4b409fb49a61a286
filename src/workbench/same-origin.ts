import type { IncomingMessage } from 'node:http';

/** Whether a `Host` header names this machine itself, or a name that the operator has given it. */
export type IsOwnHost = (host: string | undefined) => boolean;

/**
 * Whether a request was made by a person on this machine: under a name of its own, which no page of another site can borrow
 * (DNS rebinding brings the name of that site along), and not by a page of another origin.
 */
export function isOwnPage({ headers }: IncomingMessage, isOwnHost: IsOwnHost): boolean {
  const { host = '', origin } = headers;
  const site = headers['sec-fetch-site'];
  return (
    isOwnHost(host) &&
    (site === undefined || site === 'same-origin' || site === 'none') &&
    (origin === undefined || origin === `http://${host}` || origin === `https://${host}`)
  );
}
