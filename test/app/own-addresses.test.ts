import { expect, it } from 'vitest';
import { createOwnAddresses } from '../../src/app/own-addresses.ts';
import { Secret } from '../../src/common/secret.ts';

const CLIENT = '11111111-2222-4333-8444-555555555555';
const [NEW, OLD] = [new Secret('the new secret'), new Secret('the older secret')];
const addressesOf = (...webhookSecrets: [Secret, ...Secret[]]) =>
  createOwnAddresses({ publicUrl: 'https://graph.example.mx', webhookSecrets });

it('a webhook that is signed with an older secret leads here, and a new one is signed with the first', () => {
  const { ingress, secrets } = addressesOf(NEW, OLD);
  const signedBy = (secret: Secret) => addressesOf(secret).ingress.url(CLIENT, 'CEP') ?? '';
  const targets = [NEW, OLD, new Secret('of another')].map((secret) => ingress.target(signedBy(secret)));
  const own = expect.objectContaining({ clientId: CLIENT, type: 'CEP' });
  expect(targets).toEqual([own, own, undefined]);
  expect(ingress.url(CLIENT, 'CEP')).toBe(signedBy(NEW));
  expect(ingress.token(CLIENT, 'CEP')).toBe(addressesOf(NEW).ingress.token(CLIENT, 'CEP'));
  expect(secrets).toEqual(['the new secret', 'the older secret']);
});

it('the address at which it listens is the public one only where none is configured', () => {
  const own = createOwnAddresses({ publicUrl: 'self', webhookSecrets: [NEW] });
  expect([own.ingress.url(CLIENT, 'CEP'), own.ingress.target('http://127.0.0.1:1/')]).toEqual([
    undefined,
    undefined,
  ]);
  own.listensAt('http://127.0.0.1:1');
  expect(own.ingress.url(CLIENT, 'CEP')).toMatch(/^http:\/\/127\.0\.0\.1:1\//);
  const configured = addressesOf(NEW);
  configured.listensAt('http://127.0.0.1:1');
  expect(configured.ingress.url(CLIENT, 'CEP')).toMatch(/^https:\/\/graph\.example\.mx\//);
});
