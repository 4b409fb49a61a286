import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { type ClientAddress, createClientAddress } from '../../src/common/client-address.ts';

const addressOf = (address: ClientAddress, remoteAddress: string, forwarded?: string) => {
  const headers: IncomingHttpHeaders = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  // Nothing else of a socket is asked for.
  return address({ socket: { remoteAddress } as Socket, headers });
};

it('without a proxy is the peer’s, whatever it says', () => {
  const address = createClientAddress([]);
  expect(addressOf(address, '192.0.2.1', '198.51.100.9')).toBe('192.0.2.1');
  expect(addressOf(address, '::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(addressOf(address, '')).toBeUndefined();
});

it.each([
  ['the one that the proxy tells', '10.0.0.1', '198.51.100.9', '198.51.100.9'],
  ['the last one that is no proxy’s', '10.0.0.1', '203.0.113.5, 198.51.100.9, 10.7.7.7', '198.51.100.9'],
  [
    'the last one, however much the client wrote before it',
    '10.0.0.1',
    `${'x, '.repeat(900)}198.51.100.9`,
    '198.51.100.9',
  ],
  ['the peer’s, where that is no proxy', '198.51.100.1', '203.0.113.5', '198.51.100.1'],
  ['not known where the proxy tells none', '10.0.0.1', undefined, undefined],
  ['not known where all are proxies’', '10.0.0.1', '10.0.0.2, 10.0.0.3', undefined],
  [
    'not known where what stands behind the proxy is no address',
    '10.0.0.1',
    '203.0.113.5, unknown',
    undefined,
  ],
  ['the one that the proxy tells with its port', '10.0.0.1', '198.51.100.9:51234', '198.51.100.9'],
  ['the last one that is no proxy’s, with ports', '10.0.0.1', '198.51.100.9:1, 10.7.7.7:2', '198.51.100.9'],
  ['the network of one of IPv6 with its port', '10.0.0.1', '[2001:db8:1:2::9]:51234', '2001:db8:1:2'],
  ['not known where a port stands behind no address', '10.0.0.1', '999.51.100.9:80', undefined],
  ['the one that a proxy of IPv6 tells', '2001:db8::1', '198.51.100.9', '198.51.100.9'],
  ['the one that a proxy behind an IPv6 socket tells', '::ffff:10.0.0.1', '198.51.100.9', '198.51.100.9'],
])('behind proxies is %s', (_what, peer, forwarded, expected) => {
  const address = createClientAddress(['10.0.0.0/8', '2001:db8::1']);
  expect(addressOf(address, peer, forwarded)).toBe(expected);
});

it('of IPv6 is one for all of a network of 64 bits, and another for the next one', () => {
  const address = createClientAddress([]);
  const one = addressOf(address, '2001:db8:1:2::1');
  expect(one).toBeDefined();
  for (const same of ['2001:0db8:0001:0002:ffff:1:2:3', '2001:db8:1:2:3::', '2001:db8:1:2::1%eth0'])
    expect(addressOf(address, same)).toBe(one);
  for (const other of ['2001:db8:1:3::1', '2001:db8:1::1', '2001:db8::2'])
    expect(addressOf(address, other)).not.toBe(one);
});
