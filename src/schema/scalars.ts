import { toAmount } from '../common/amounts.ts';
import { isRounded } from '../common/long-numbers.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { isObject, type JsonObject } from '../upstream/call/json.ts';
import { builder } from './builder.ts';

/** Where this project specifies the scalars that nobody else specifies at an address that stays. */
const OWN_SPECIFICATION = 'https://github.com/pasarela/pasarela/blob/main/docs/graph.md';

/** Longest cursor that is looked at, in characters. */
const MAX_CURSOR = 1_024;

const DATE = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const DATE_TIME =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
/** What can be an amount at all. Whether it is one that can be moved is for the mutation to say, as data. */
const MONEY_AMOUNT = /^-?(0|[1-9]\d{0,14})\.\d{2}$/;
const CURRENCY_CODE = /^[A-Z]{3}$/;
const CLABE = /^\d{18}$/;

const shown = (value: unknown): string => (typeof value === 'string' ? 'another text' : `a ${typeof value}`);

const unreadable = (name: string, wanted: string): UpstreamError =>
  new UpstreamError(
    'UPSTREAM_INVALID',
    `The service sent a value in the place of a ${name} that is no ${wanted}.`,
  );

/** What the upstream sent goes out as it came. */
const asText = (name: string) => (value: unknown) => {
  if (typeof value === 'string') return value;
  throw unreadable(name, 'text');
};

/** The scalar promises two decimals: nothing else goes out, and nothing is rounded. */
function moneyAmount(value: unknown): string {
  const amount = toAmount(value);
  if (amount === undefined) throw unreadable('MoneyAmount', 'decimal text of at most two decimals');
  return amount;
}

const matching = (name: string, form: RegExp, wanted: string) => (value: unknown) => {
  if (typeof value === 'string' && form.test(value)) return value;
  throw new TypeError(`${name} must be ${wanted}; it is ${shown(value)}.`);
};

/** JavaScript reads the 31st of February as the 3rd of March. */
function parseDate(value: unknown): string {
  if (
    typeof value === 'string' &&
    DATE.test(value) &&
    new Date(value).getUTCDate() === Number(value.slice(-2))
  ) {
    return value;
  }
  throw new TypeError(`Date must be a day of the calendar, such as 2026-11-20; it is ${shown(value)}.`);
}

function parseMoneyAmount(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint') {
    throw new TypeError(
      'MoneyAmount must be a string such as "1250.00". A JSON number is refused: it is read as a binary float, which cannot carry every amount of money exactly.',
    );
  }
  if (typeof value === 'string' && MONEY_AMOUNT.test(value)) return value;
  throw new TypeError(
    `MoneyAmount must be a string of digits with exactly two decimals, such as "1250.00", with at most 15 digits before the point and no separators; it is ${shown(value)}.`,
  );
}

function parseUrl(value: unknown): string {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (typeof value === 'string' && (url?.protocol === 'https:' || url?.protocol === 'http:')) return value;
  throw new TypeError(`URL must be an absolute address with https or http; it is ${shown(value)}.`);
}

/** Whether a number stands anywhere in a value of JSON that is another one by now. */
function holdsRounded(value: unknown): boolean {
  const waiting = [value];
  for (const next of waiting) {
    if (isRounded(next)) return true;
    if (typeof next === 'object' && next !== null) for (const part of Object.values(next)) waiting.push(part);
  }
  return false;
}

function parseJsonObject(value: unknown): JsonObject {
  if (holdsRounded(value)) {
    throw new TypeError(
      'JSONObject must hold no number beyond 2^53: it has lost digits as it was read. Write it as a string.',
    );
  }
  if (isObject(value)) return value;
  throw new TypeError(
    `JSONObject must be an object; it is ${Array.isArray(value) ? 'a list' : shown(value)}.`,
  );
}

function parseCursor(value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= MAX_CURSOR) return value;
  throw new TypeError(`Cursor must be a text that a cursor field has carried; it is ${shown(value)}.`);
}

builder.scalarType('DateTime', {
  description:
    'RFC 3339 date-time with an offset, such as `2026-11-20T09:30:00.123456-06:00`. The fraction of a second is kept as the service sent it; a timestamp that came without an offset has been given the one that the gateway is configured with.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
  serialize: asText('DateTime'),
  parseValue: matching('DateTime', DATE_TIME, 'an RFC 3339 date-time, such as 2026-11-20T09:30:00-06:00'),
});

builder.scalarType('Date', {
  description: 'Calendar date, `YYYY-MM-DD`, such as `2026-11-20`.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339#section-5.6',
  serialize: asText('Date'),
  parseValue: parseDate,
});

builder.scalarType('MoneyAmount', {
  description:
    'Decimal number of pesos as a string with exactly two decimals, such as `"1250.00"`. Never a float: a JSON number is refused, because it cannot carry every amount exactly.',
  specifiedByURL: `${OWN_SPECIFICATION}#moneyamount`,
  serialize: moneyAmount,
  parseValue: parseMoneyAmount,
});

builder.scalarType('CurrencyCode', {
  description: 'ISO 4217 code: three capital letters. The service moves `MXN` only.',
  specifiedByURL: 'https://www.iso.org/iso-4217-currency-codes.html',
  serialize: asText('CurrencyCode'),
  parseValue: matching('CurrencyCode', CURRENCY_CODE, 'three capital letters, such as MXN'),
});

builder.scalarType('Clabe', {
  description:
    '18-digit standardised bank account number (CLABE), such as `"646180110400000007"`. Input must have 18 digits; its check digit is not verified. Output is shown as the service sent it.',
  specifiedByURL: `${OWN_SPECIFICATION}#clabe`,
  serialize: asText('Clabe'),
  parseValue: matching('Clabe', CLABE, '18 digits'),
});

builder.scalarType('URL', {
  description: 'Absolute address with `https` or `http`, such as `https://example.mx/hooks/money-in`.',
  specifiedByURL: 'https://url.spec.whatwg.org/',
  serialize: asText('URL'),
  parseValue: parseUrl,
});

builder.scalarType('JSON', {
  description: 'Any JSON value, passed through as it came.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc8259',
  serialize: (value) => value,
  parseValue: (value) => value,
});

builder.scalarType('JSONObject', {
  description: 'A JSON object, passed through as it came.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc8259#section-4',
  serialize: (value) => value,
  parseValue: parseJsonObject,
});

builder.scalarType('Cursor', {
  description:
    'Position in one list, or in the event log. Opaque to clients: it is handed back as `after` or `before` of the same list, and refused as `CURSOR_INVALID` by any other.',
  specifiedByURL: 'https://relay.dev/graphql/connections.htm#sec-Cursor',
  serialize: asText('Cursor'),
  parseValue: parseCursor,
});
