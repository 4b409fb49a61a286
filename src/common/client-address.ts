import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** Returns the address that a request comes from; undefined if only a proxy's address is known. */
export type ClientAddress = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => string | undefined;

/**
 * Makes the function that reads addresses. Behind a proxy it is the last address in `X-Forwarded-For` that is no proxy's,
 * because the client may have written those before it. IPv6 addresses are told apart by their first 64 bits, because one
 * customer of a network has all the others.
 *
 * @param proxies addresses and networks (`10.0.0.0/8`) whose `X-Forwarded-For` is believed.
 */
export function createClientAddress(proxies: readonly string[]): ClientAddress {
  const trusted = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(bits), family);
  }
  // Called for each request. Most gateways name no proxy, and have no list to search.
  const isTrusted = (address: string): boolean =>
    proxies.length > 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

  return ({ socket, headers }) => {
    const direct = plain(socket.remoteAddress ?? '');
    if (direct === undefined) return undefined;
    if (!isTrusted(direct)) return network(direct);
    const forwarded = headers['x-forwarded-for'];
    const hops = typeof forwarded === 'string' ? forwarded.slice(-MAX_FORWARDED).split(',') : [];
    for (const hop of hops.reverse()) {
      const address = plain(withoutPort(hop.trim()));
      // A trusted proxy writes addresses. Any other text came from further away.
      if (address === undefined) return undefined;
      if (!isTrusted(address)) return network(address);
    }
    return undefined;
  };
}

/**
 * Makes the function that returns the client's address or, if that is not known, the proxy's. Bounds that must hold for every
 * connection count by it.
 */
export const createNearestAddress =
  (addressOfClient: ClientAddress) =>
  (request: IncomingMessage): string =>
    addressOfClient(request) ?? `proxy ${request.socket.remoteAddress ?? ''}`;

/** The part of the header that is read, in characters: its end, which the nearest proxies have written. */
const MAX_FORWARDED = 1_000;

/** Takes off the client's port, which some proxies write behind its address, such as Azure's Application Gateway. */
function withoutPort(hop: string): string {
  const [, v6, v4] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(hop) ?? [];
  return v6 ?? v4 ?? hop;
}

/** Returns an IP address, and an IPv4 address without its IPv6 form; undefined for any other text. */
function plain(text: string): string | undefined {
  const address = text.startsWith('::ffff:') && isIP(text.slice(7)) === 4 ? text.slice(7) : text;
  return isIP(address) === 0 ? undefined : address;
}

/** Returns the address itself, or the network of an IPv6 address. */
function network(address: string): string {
  if (isIP(address) === 4) return address;
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? [];
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const gap = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const parts = [...before, ...new Array<string>(gap).fill('0'), ...after];
  return parts
    .slice(0, 4)
    .map((part) => Number.parseInt(part, 16).toString(16))
    .join(':');
}
