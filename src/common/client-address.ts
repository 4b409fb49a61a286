import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** The address that a request comes from; undefined where only the address of a proxy is known. */
export type ClientAddress = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => string | undefined;

/**
 * Makes the reading of addresses. Behind a proxy it is the last one in `X-Forwarded-For` that is no proxy's itself: what
 * stands before it, the client may have written. IPv6 addresses are told apart by their first 64 bits, as one customer of
 * a network has all the others.
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
  // Asked for each request: most gateways name no proxy, and have no list to look through.
  const isTrusted = (address: string): boolean =>
    proxies.length > 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

  return ({ socket, headers }) => {
    const direct = plain(socket.remoteAddress ?? '');
    if (direct === undefined) return undefined;
    if (!isTrusted(direct)) return network(direct);
    const forwarded = headers['x-forwarded-for'];
    const hops = typeof forwarded === 'string' ? forwarded.slice(-MAX_FORWARDED).split(',') : [];
    for (const hop of hops.reverse()) {
      const address = plain(hop.trim());
      // A proxy that is believed writes addresses: what is none came from further away.
      if (address === undefined) return undefined;
      if (!isTrusted(address)) return network(address);
    }
    return undefined;
  };
}

/**
 * The nearest address that is known: the client's, else that of the proxy which has told none. Bounds that must hold for everybody
 * count by it.
 */
export const createNearestAddress =
  (addressOfClient: ClientAddress) =>
  (request: IncomingMessage): string =>
    addressOfClient(request) ?? `proxy ${request.socket.remoteAddress ?? ''}`;

/** Of a longer header the end is read, which the nearest proxies have written. */
const MAX_FORWARDED = 1_000;

/** An IP address without the form that IPv4 has in an IPv6 socket; undefined for what is none. */
function plain(text: string): string | undefined {
  const address = text.startsWith('::ffff:') && isIP(text.slice(7)) === 4 ? text.slice(7) : text;
  return isIP(address) === 0 ? undefined : address;
}

/** The address itself, or the network of an IPv6 address. */
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
