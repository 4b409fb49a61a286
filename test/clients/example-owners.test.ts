import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ownerOf } from '../../examples/web/src/graph/owner.ts';
import { folder } from '../helpers/packages.ts';

const tokenOf = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
const CLIENT = 'client-1';

it('the examples keep persons of one client apart, and customers of one person', () => {
  const owners = [
    { sub: 'ana' },
    { sub: 'bruno' },
    { sub: 'ana', customer_id: 'customer-1' },
    { sub: 'ana/customer-1' },
    { sub: 'Ñandú 💸' },
  ].map((claims) => ownerOf(tokenOf(claims), CLIENT));
  expect(new Set(owners).size).toBe(owners.length);
  expect(owners.every((owner) => owner.startsWith(CLIENT))).toBe(true);
});

it('the examples keep customers apart where the token names no person', () => {
  const owners = ['c1', 'c2'].map((customer_id) => ownerOf(tokenOf({ customer_id }), CLIENT));
  expect(new Set([...owners, CLIENT, ownerOf(tokenOf({ sub: 'c1' }), CLIENT)]).size).toBe(4);
  // A `sub` that is the client says no more than none.
  expect(['c1', 'c2'].map((customer_id) => ownerOf(tokenOf({ sub: CLIENT, customer_id }), CLIENT))).toEqual(
    owners,
  );
});

it('the examples know a person again under another token', () => {
  const [first, second] = [1, 2].map((exp) => ownerOf(tokenOf({ sub: 'ana', exp }), CLIENT));
  expect(second).toBe(first);
});

it('the examples name by the client alone what a token of no person opens', () => {
  const tokens = [tokenOf({ sub: CLIENT }), tokenOf({}), 'opaque', 'a.b.c', ''];
  expect(tokens.map((token) => ownerOf(token, CLIENT))).toEqual(tokens.map(() => CLIENT));
});

it('the example for phones names owners as the web example does', async () => {
  const [web, mobile] = await Promise.all(
    ['web', 'mobile'].map((name) => readFile(folder(`examples/${name}/src/graph/owner.ts`), 'utf8')),
  );
  expect(mobile).toBe(web);
});
