import { lookup } from 'node:dns';
import { BlockList, isIPv4, type LookupFunction } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/**
 * Whether a host is this machine by its own name: `localhost`, `127.0.0.0/8` or `[::1]`, and not a name that somebody lets
 * resolve to it.
 *
 * @param host as a URL writes it, without a port.
 */
function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  if (name === 'localhost' || name === '[::1]') return true;
  return isIPv4(name) && loopback.check(name);
}

/**
 * Whether a request was sent to this machine by its own name, or by one that the operator has named. A page that has its own
 * name resolve to 127.0.0.1 (DNS rebinding) still sends that name.
 *
 * @param header the request's `Host`.
 * @param hosts names besides those of loopback, without ports.
 */
export function isOwnHost(header: string | null | undefined, hosts: readonly string[]): boolean {
  const host = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.exec(header ?? '')?.[1];
  return host !== undefined && (isLoopback(host) || hosts.includes(host.toLowerCase()));
}

/** Whether webhooks may be delivered to an address: on this machine, or to a host that the operator has named. */
export const isWebhookHost = (host: string, hosts: readonly string[]): boolean =>
  isLoopback(host) || hosts.includes(host.toLowerCase());

/**
 * Resolves the host of a delivery. A name of loopback must lead there; of a host that the operator has named, any address is
 * taken.
 */
export const webhookLookup =
  (hosts: readonly string[]): LookupFunction =>
  (name, options, callback) => {
    if (!isWebhookHost(name, hosts)) {
      callback(refusedHost(name), '', 0);
      return;
    }
    lookup(name, { ...options, all: true }, (error, addresses) => {
      const allowed = hosts.includes(name.toLowerCase())
        ? addresses
        : addresses?.filter(({ address, family }) => loopback.check(address, family === 6 ? 'ipv6' : 'ipv4'));
      const [first] = allowed ?? [];
      if (error !== null || first === undefined) callback(error ?? refusedHost(name), '', 0);
      else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };

export const refusedHost = (host: string): Error =>
  new Error(`Webhooks go to this machine, to PUBLIC_URL and to SANDBOX_WEBHOOK_HOSTS, and not to ${host}.`);
