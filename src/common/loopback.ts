import { isIPv4 } from 'node:net';

/** @param hostname as `URL.hostname` has it. */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'));
