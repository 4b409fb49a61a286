import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { redact, withoutValues } from '../../src/observability/redact.ts';

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzb21lYm9keSJ9.c2lnbmF0dXJl';
const CARD = '4152310000000009';
const CLABE = '646180157000000004';
const RFC = 'ROGT800612QA4';
const CURP = 'ROGT800612HDFDRM08';

/** What is written of a line, parsed: it must stay JSON whatever is hidden. */
function written(fields: object, message = 'something'): { text: string; line: Record<string, unknown> } {
  const lines: string[] = [];
  createLogger('trace', { write: (line) => lines.push(line) }).info(fields, message);
  const text = lines.join('');
  return { text, line: JSON.parse(text) };
}

describe('the log', () => {
  it('writes no secret, wherever it stands', () => {
    const secret = new Secret('hunter2');
    const { text } = written({
      secret,
      deep: { list: [secret] },
      text: `${secret}`,
      inspected: inspect({ secret }),
    });
    expect(text).not.toContain('hunter2');
    expect(text).toContain('[secret]');
    expect(secret.reveal()).toBe('hunter2');
  });

  it.each(['authorization', 'x-api-key', 'token', 'clientSecret', 'card_number', 'payload'])(
    'writes no field called %s',
    (name) => {
      const { text } = written({ [name]: 'hunter2', headers: { [name]: 'hunter2' } });
      expect(text).not.toContain('hunter2');
    },
  );

  it('writes of an error its words and place, and nothing that hangs on it', () => {
    const error = Object.assign(new Error('reply lost', { cause: new Error('reset') }), {
      code: 'ECONNRESET',
      command: { name: 'eval', args: ['hunter2'] },
      response: { body: 'hunter2' },
    });
    const { text, line } = written({ err: error, error });
    expect(text).not.toContain('hunter2');
    expect(line['err']).toMatchObject({
      message: 'reply lost',
      code: 'ECONNRESET',
      cause: { message: 'reset' },
    });
  });

  it('writes four causes of an error, so that one which is its own cause ends', () => {
    const endless = new Error('endless');
    endless.cause = endless;
    const depthOf = (value: unknown): number =>
      value === undefined ? -1 : 1 + depthOf(Object(value)['cause']);
    expect(depthOf(written({ err: endless }).line['err'])).toBe(4);
  });

  it.each([
    ['a token', `Bearer ${JWT}`, JWT],
    ['a token that is no JWT', 'authorization: bearer  opaque-token.of~somebody', 'opaque-token'],
    ['a token alone', `refused ${JWT}`, 'c2lnbmF0dXJl'],
    ['a token cut short', JWT.slice(0, 30), 'eyJhbGciOiJIUzI1NiJ9'],
    ['the signature of an ingress address', 'POST /webhooks/c-1/MONEY_IN/AbCdEf0123', 'AbCdEf0123'],
    ['a password in an address', 'redis://user:hunter2@127.0.0.1', 'hunter2'],
    ['a card number', `card ${CARD}`, CARD],
    ['a CLABE', `to ${CLABE}.`, CLABE],
    ['an RFC', `holder ${RFC}`, RFC],
    ['an RFC alone', RFC, RFC],
    ['a CURP', `holder ${CURP}`, CURP],
    ['a CURP of the year 2000 or later', `${CURP.slice(0, 16)}A9, `, 'ROGT800612HDF'],
    ['an opaque token behind its scheme', 'Bearer opaque-token.of~somebody', 'opaque-token'],
  ])('hides %s in any text', (_, text, secret) => {
    expect(redact(text)).not.toContain(secret);
    for (const before of ['', 'first\n', '\t', '"', '\\']) {
      const { text: line } = written(
        { some: { deep: [before + text] }, err: new Error(before + text) },
        before + text,
      );
      expect(line).not.toContain(secret);
    }
  });

  it('hides a card number that is written as a number, and stays JSON', () => {
    const { text, line } = written({ a: Number(CARD), b: [Number(CARD)], c: 12 });
    expect(text).not.toContain(CARD);
    expect(line).toMatchObject({ a: '[hidden]', b: ['[hidden]'], c: 12 });
  });

  it.each([
    ['between the signs of a list', `of:${CARD},${CARD}, and [${CARD}]`],
    ['behind a character that JSON escapes', `\u0000${CARD}\ud800${CARD}`],
    ['in JSON of somebody else', JSON.stringify({ account: Number(CARD), quoted: `"${CARD}"` })],
  ])('stays JSON where a text holds a card number %s', (_, text) => {
    const { text: whole, line } = written({ text, [`${text}`]: 1, err: new Error(text) }, text);
    expect(whole).not.toContain(CARD);
    expect(line['text']).toBe(redact(text));
    expect(line['msg']).toBe(line['text']);
  });

  it('leaves alone what is no secret', () => {
    for (const text of [
      '11111111-2222-4333-8444-555555555555',
      '00000000-0000-4000-8000-000000000000',
      'http://127.0.0.1:4000/graphql',
      'GET /v1/clients/{clientId}/instruments answered 200 in 1234567 ms',
    ]) {
      expect(redact(text)).toBe(text);
    }
  });
});

describe('a message of graphql-js', () => {
  it.each([
    [
      `Variable "$input" has invalid value: Expected value of type "X" to be an object, found: { cardNumber: "${CARD}" }.`,
      'Variable "$input" has invalid value: Expected value of type "X" to be an object.',
    ],
    [
      'Variable "$a" has invalid value at .b: String cannot represent a non string value: { name: "Ana" }',
      'Variable "$a" has invalid value at .b: String cannot represent a non string value.',
    ],
    [
      'Variable "$c" has invalid value: Expected value of type "Clabe", but encountered error "Clabe must be 18 digits."; found: "Ana".',
      'Variable "$c" has invalid value: Expected value of type "Clabe", but encountered error "Clabe must be 18 digits.".',
    ],
    ['Syntax Error: Expected Name, found String "Ana".', 'Syntax Error: Expected Name, found String.'],
    ['Int cannot represent non-integer value: "Ana"', 'Int cannot represent non-integer value.'],
    [
      'Enum "EventType" cannot represent non-string value: 7.',
      'Enum "EventType" cannot represent non-string value.',
    ],
    ['Value "Ana" does not exist in "EventType" enum.', 'The value does not exist in "EventType" enum.'],
    [
      'Argument "type" has invalid value: Value "Ana" does not exist in "EventType" enum.',
      'Argument "type" has invalid value: The value does not exist in "EventType" enum.',
    ],
    ['Cannot query field "x" on type "Query".', 'Cannot query field "x" on type "Query".'],
  ])('says nothing of the value that it was given: %s', (message, expected) => {
    expect(withoutValues(message)).toBe(expected);
  });
});
