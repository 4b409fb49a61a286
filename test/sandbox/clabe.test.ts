import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClabeIssuer, clabeCheckDigit, isClabe, makeClabe } from '../../packages/sandbox/src/clabe.ts';
import { Ids } from '../../packages/sandbox/src/ids.ts';
import { PARTICIPANTS } from '../../packages/sandbox/src/participants.ts';

test.each(['032180000118359719', '002010077777777771', '646180110400000007'])(
  'the published CLABE %s has a true check digit',
  (clabe) => {
    expect(clabeCheckDigit(clabe.slice(0, 17))).toBe(clabe[17]);
    expect(isClabe(clabe)).toBe(true);
  },
);

test('changing any one digit of a CLABE is noticed', () => {
  const digits = (count: number) => fc.stringMatching(new RegExp(`^\\d{${count}}$`));
  fc.assert(
    fc.property(digits(3), digits(3), digits(11), fc.nat(17), fc.integer({ min: 1, max: 9 }), (...drawn) => {
      const [bank, plaza, account, position, shift] = drawn;
      const clabe = makeClabe(bank, plaza, account);
      const digit = (Number(clabe[position]) + shift) % 10;
      const changed = clabe.slice(0, position) + digit + clabe.slice(position + 1);
      return isClabe(clabe) && !isClabe(changed);
    }),
  );
});

test('CLABEs of one issuer are never the same', () => {
  const issuer = new ClabeIssuer('646', new Ids(1));
  const issued = Array.from({ length: 5_000 }, () => issuer.issue().clabeNumber);
  expect(new Set(issued).size).toBe(issued.length);
  expect(issued.every(isClabe)).toBe(true);
});

test('every participant has a code, its CLABE code at the end of it, and a name of its own', () => {
  for (const { institutionCode, clabeCode, name } of PARTICIPANTS) {
    expect(institutionCode).toMatch(/^\d{4,5}$/);
    expect(institutionCode.endsWith(clabeCode)).toBe(true);
    expect(name).not.toBe('');
  }
  const codes = new Set(PARTICIPANTS.map(({ clabeCode }) => clabeCode));
  expect(codes.size).toBe(PARTICIPANTS.length);
});
