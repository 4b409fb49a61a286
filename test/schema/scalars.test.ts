import { type GraphQLScalarType, isScalarType, parseConstValue } from 'graphql';
import { describe, expect, it } from 'vitest';
import { buildSchema } from '../../src/schema/index.ts';

const schema = buildSchema();

function scalar(name: string): GraphQLScalarType {
  const type = schema.getType(name);
  if (!isScalarType(type)) throw new Error(`${name} is no scalar`);
  return type;
}

const accepts = (name: string, value: unknown): unknown => scalar(name).coerceInputValue(value);

describe('MoneyAmount', () => {
  it('refuses a JSON number and says why', () => {
    expect(() => accepts('MoneyAmount', 1250)).toThrow(/string.*number is refused.*float/);
    expect(() => scalar('MoneyAmount').parseLiteral(parseConstValue('1250.00'), undefined)).toThrow(/float/);
  });

  it.each(['1250.00', '0.01', '999999999999999.99'])('takes %s', (amount) => {
    expect(accepts('MoneyAmount', amount)).toBe(amount);
  });

  it.each(['0.00', '-5.00'])('lets %s through to the mutation, which refuses it as data', (amount) => {
    expect(accepts('MoneyAmount', amount)).toBe(amount);
  });

  it.each([
    '5',
    '5.0',
    '5.000',
    '1,250.00',
    ' 5.00',
    '5.00 ',
    '05.00',
    '+5.00',
    '1e3',
    '',
    '$5.00',
    '１.００',
    '9999999999999999.00',
    null,
    {},
    ['5.00'],
    true,
  ])('refuses %j', (amount) => {
    expect(() => accepts('MoneyAmount', amount)).toThrow(/exactly two decimals/);
  });

  it('never repeats in its message what it was given', () => {
    expect(() => accepts('MoneyAmount', '4111111111111111')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('4111') }),
    );
  });

  it.each([
    ['1250.00', '1250.00'],
    ['0.01', '0.01'],
    ['-5.00', '-5.00'],
    ['1.5', '1.50'],
    ['1', '1.00'],
    ['1.500000', '1.50'],
    ['007.50', '7.50'],
    ['0', '0.00'],
    ['90071992547409931234.1', '90071992547409931234.10'],
  ])('of %s goes out as %s', (sent, shown) => {
    expect(scalar('MoneyAmount').coerceOutputValue(sent)).toBe(shown);
  });

  it.each<unknown>([
    '1.555',
    '1.',
    '.5',
    '',
    'None',
    '1,250.00',
    '+5.00',
    '1e3',
    ' 1.00',
    '1.00\n',
    1250,
    1.5,
    true,
    {},
    ['1.00'],
  ])("of %j does not go out, and is the service's fault", (sent) => {
    expect(() => scalar('MoneyAmount').coerceOutputValue(sent)).toThrow(
      expect.objectContaining({ code: 'UPSTREAM_INVALID' }),
    );
  });
});

describe('the other texts', () => {
  it.each([
    ['Clabe', '646180110400000007'],
    ['CurrencyCode', 'MXN'],
    ['CurrencyCode', 'USD'],
    ['Date', '2026-11-20'],
    ['Date', '2028-02-29'],
    ['DateTime', '2026-11-20T09:30:00.123456-06:00'],
    ['DateTime', '2026-11-20T15:30:00Z'],
    ['URL', 'https://example.mx/hooks?x=1'],
    ['URL', 'http://127.0.0.1:4000/webhooks'],
    ['Cursor', 'MXwwMTIz'],
    ['Cursor', 'x'.repeat(1_024)],
    ['DateTime', '2026-12-31T23:59:60Z'],
    ['DateTime', '2026-11-20T09:30:00+23:59'],
    ['DateTime', '2026-11-20t09:30:00.5z'],
  ])('%s takes %j', (name, value) => {
    expect(accepts(name, value)).toBe(value);
  });

  it.each([
    ['Clabe', '64618011040000000'],
    ['Clabe', '6461801104000000070'],
    ['Clabe', 64618011040000],
    ['Clabe', 'x46180110400000007'],
    ['CurrencyCode', 'mxn'],
    ['CurrencyCode', 'PESO'],
    ['Date', '2026-13-20'],
    ['Date', '20/11/2026'],
    ['Date', '2026-02-31'],
    ['Date', '2026-02-29'],
    ['Date', '2026-04-31'],
    ['Date', '2026-11-20T00:00:00Z'],
    ['Date', 20261120],
    ['DateTime', '2026-11-20 09:30:00'],
    ['DateTime', '2026-11-20T09:30:00'],
    ['DateTime', 1_795_000_000],
    ['DateTime', '2026-11-20T09:30:61Z'],
    ['DateTime', '2026-11-20T09:30:00+24:00'],
    ['URL', 'example.mx/hooks'],
    ['URL', 'javascript:alert(1)'],
    ['URL', 'file:///etc/passwd'],
    ['URL', 'httpx://example.mx/hooks'],
    ['Cursor', ''],
    ['Cursor', 'x'.repeat(1_025)],
    ['Cursor', 7],
    ['JSONObject', []],
    ['JSONObject', null],
    ['JSONObject', 'x'],
  ])('%s refuses %j', (name, value) => {
    expect(() => accepts(name, value)).toThrow(new RegExp(`^${name} must be`));
  });
});

describe('JSON', () => {
  it('passes any value through', () => {
    const value = { list: [1, null, { deep: true }] };
    expect(accepts('JSON', value)).toBe(value);
    expect(scalar('JSON').coerceOutputValue(value)).toBe(value);
  });

  it.each(['9007199254740993', '-9007199254740993', '1e400'])(
    'takes no object that holds %s, which is another number by now, from a variable and from a literal',
    (number) => {
      const variable = () => accepts('JSONObject', JSON.parse(`{"clabe":[{"number":${number}}]}`));
      const literal = () =>
        scalar('JSONObject').parseLiteral(parseConstValue(`{ clabe: [{ number: ${number} }] }`), undefined);
      for (const read of [variable, literal])
        expect(read).toThrow('JSONObject must hold no number beyond 2^53');
      const whole = { clabe: [{ number: Number.MAX_SAFE_INTEGER }], ratio: 0.1 };
      expect(accepts('JSONObject', whole)).toBe(whole);
    },
  );

  it('leaves __proto__ inert, from a variable and from a literal', () => {
    const variable = accepts('JSONObject', JSON.parse('{"__proto__":{"polluted":true},"a":1}'));
    const literal = scalar('JSONObject').parseLiteral(
      parseConstValue('{ __proto__: { polluted: true }, a: 1 }'),
      undefined,
    );
    for (const value of [variable, literal]) {
      expect(Reflect.get(value as object, 'polluted')).toBeUndefined();
      expect(JSON.parse(JSON.stringify(value))).toHaveProperty('a', 1);
    }
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });
});
