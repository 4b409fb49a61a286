import { describe, expect, it } from 'vitest';
import type { EventType } from '../../src/events/log.ts';
import {
  ingressTarget,
  ingressToken,
  ingressUrl,
  isMaskedIngressUrl,
  maskIngressUrl,
  readIngressPath,
} from '../../src/ingress/addresses.ts';

// Of a later version.
const LATER_TYPE = 'REFUND' as EventType;
const client = '0b1f6a52-6a0c-4c87-9a6e-0f3c3c6f0a11';
const url = ingressUrl('https://gateway.example/', client, 'MONEY_IN', 'secret');

describe('the address of a webhook', () => {
  it('ends with the HMAC of client and type', () => {
    expect(url).toMatch(
      new RegExp(`^https://gateway\\.example/webhooks/${client}/MONEY_IN/[A-Za-z0-9_-]{43}$`),
    );
    expect(url).not.toBe(ingressUrl('https://gateway.example', client, 'CEP', 'secret'));
    expect(url).not.toBe(ingressUrl('https://gateway.example', client, 'MONEY_IN', 'other'));
  });

  it('has a token of its own, which is not the signature', () => {
    const token = ingressToken(client, 'MONEY_IN', 'secret');
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(url).not.toContain(token);
  });

  it('is known again while one of the secrets made it', () => {
    expect(ingressTarget('https://gateway.example', url, ['new', 'secret'])).toMatchObject({
      clientId: client,
      type: 'MONEY_IN',
    });
    expect(ingressTarget('https://gateway.example', url, ['new'])).toBeUndefined();
    expect(ingressTarget('https://other.example', url, ['secret'])).toBeUndefined();
    expect(ingressTarget('https://gateway.example', `${url}x`, ['secret'])).toBeUndefined();
    const later = ingressUrl('https://gateway.example', client, LATER_TYPE, 'secret');
    expect(ingressTarget('https://gateway.example', later, ['secret'])).toBeUndefined();
  });

  it.each([
    ['https://Gateway.example:443', 'https://gateway.example'],
    ['https://pagos.compañía.mx/a', 'https://pagos.xn--compaa-7va5a.mx/a'],
    ['http://[::1]:80', 'http://[0:0::1]'],
  ])('is known again as %s and as %s', (one, other) => {
    const at = (publicUrl: string) => ingressUrl(publicUrl, client, 'MONEY_IN', 'secret');
    for (const [publicUrl, shown] of [
      [one, at(one)],
      [one, at(other)],
      [other, at(one)],
    ] as const)
      expect(ingressTarget(publicUrl, shown, ['secret'])).toMatchObject({ clientId: client });
    expect(ingressTarget(one, `${at(other)}?x`, ['secret'])).toBeUndefined();
    expect(ingressTarget(one, at(other).replace('://', 's://'), ['secret'])).toBeUndefined();
  });

  it('is shown without its signature, and any other address as it is', () => {
    const masked = `https://gateway.example/webhooks/${client}/MONEY_IN/***`;
    expect(maskIngressUrl(url)).toBe(masked);
    expect(maskIngressUrl(`${url}?x=1#y`)).toBe(`${masked}?x=1#y`);
    expect(maskIngressUrl(url.replace('gateway', 'former'))).toBe(masked.replace('gateway', 'former'));
    expect(maskIngressUrl('https://shop.example/hooks/1')).toBe('https://shop.example/hooks/1');
    for (const shown of [masked, `${masked}?x=1#y`]) expect(isMaskedIngressUrl(shown)).toBe(true);
    for (const other of [url, 'https://shop.example/hooks/***', `https://shop.example/?at=${masked}`])
      expect(isMaskedIngressUrl(other)).toBe(false);
  });

  it.each([
    '/webhooks',
    `/webhooks/${client}/MONEY_IN`,
    `/webhooks/${client}/MONEY_IN/`,
    `/webhooks/${client}/money_in/abc`,
    `/webhooks/${client}/${'A'.repeat(65)}/abc`,
    `/webhooks/../MONEY_IN/abc`,
    `/webhooks/%2e%2e/MONEY_IN/abc`,
    `/webhooks/${'a'.repeat(65)}/MONEY_IN/abc`,
    `/x/webhooks/${client}/MONEY_IN/abc`,
    `/webhooks/${client}/MONEY_IN/abc/more`,
  ])('%s is none', (path) => {
    expect(readIngressPath(path)).toBeUndefined();
  });
});
