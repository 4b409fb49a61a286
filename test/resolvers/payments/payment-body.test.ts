import {
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isNonNullType,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { ValidationError } from '../../../src/resolvers/errors.ts';
import {
  type PennyValidationInput,
  type PreparedPayment,
  pennyValidation,
  type RefundInput,
  refund,
  type TransferInput,
  transfer,
} from '../../../src/resolvers/payments/payment-input.ts';
import { buildSchema } from '../../../src/schema/index.ts';

const CLIENT = '7b0c2d4e-1111-4222-8333-444455556666';
const [SOURCE, DESTINATION] = [
  '11111111-1111-4111-8111-111111111111',
  '22222222-2222-4222-8222-222222222222',
];
const TRANSFER = {
  idempotencyKey: 'the key of a test',
  sourceInstrumentId: SOURCE,
  destinationInstrumentId: DESTINATION,
  amount: '1250.00',
  currency: 'MXN',
  description: 'Factura 42',
  externalReference: '1234567',
};
const PENNY = {
  idempotencyKey: 'the key of a test',
  sourceInstrumentId: SOURCE,
  destinationInstrumentId: DESTINATION,
};
const REFUND = { idempotencyKey: 'the key of a test', transactionId: SOURCE };

/** A mutation of the schema that moves money, prepared from its input, as the graph gives it. */
const PREPARE: Readonly<Record<string, (input: object) => PreparedPayment>> = {
  createMoneyOut: (input) => transfer('createMoneyOut', CLIENT, input as TransferInput),
  createInternalTransaction: (input) => transfer('createInternalTransaction', CLIENT, input as TransferInput),
  createPennyValidation: (input) => pennyValidation(CLIENT, input as PennyValidationInput),
  refundTransaction: (input) => refund(input as RefundInput),
};
const mutations = Object.entries(buildSchema().getMutationType()?.getFields() ?? {});
const PAYMENTS = mutations.filter(([, { args }]) =>
  args.some(({ type }) => {
    const input = getNamedType(type);
    return isInputObjectType(input) && input.getFields()['idempotencyKey'] !== undefined;
  }),
);

it('every mutation of the schema that takes a key is tried here', () => {
  expect(PAYMENTS.map(([name]) => name).toSorted()).toEqual(Object.keys(PREPARE).toSorted());
});

// Records that are kept hold these digests: another one makes each repeat of an earlier payment IDEMPOTENCY_KEY_REUSED.
it.each([
  [
    'createMoneyOut',
    TRANSFER,
    '{"client_id":"7b0c2d4e-1111-4222-8333-444455556666","source_instrument_id":"11111111-1111-4111-8111-111111111111","destination_instrument_id":"22222222-2222-4222-8222-222222222222","transaction_request":{"external_reference":"1234567","description":"Factura 42","amount":"1250.00","currency":"MXN"}}',
    '47G1LE95O_Cdudx9UxbMAyWd2YqvkMp_HdTsUw0Uvso',
  ],
  [
    'createInternalTransaction',
    TRANSFER,
    '{"client_id":"7b0c2d4e-1111-4222-8333-444455556666","source_instrument_id":"11111111-1111-4111-8111-111111111111","destination_instrument_id":"22222222-2222-4222-8222-222222222222","transaction_request":{"external_reference":"1234567","description":"Factura 42","amount":"1250.00","currency":"MXN"}}',
    'MQkam6ppFpx0f1DbmhG3i-NIUb3IgAEyzPKBJyXkbZo',
  ],
  [
    'createPennyValidation',
    PENNY,
    '{"client_id":"7b0c2d4e-1111-4222-8333-444455556666","source_instrument_id":"11111111-1111-4111-8111-111111111111","destination_instrument_id":"22222222-2222-4222-8222-222222222222"}',
    'O5DeFg50-q6g2HrHVyEsK00s995OPxx8wQv5Yhwtkic',
  ],
  [
    'refundTransaction',
    { ...REFUND, as: { amount: { amount: '1250.00', description: 'Devolución' } } },
    '{"amount":"1250.00","description":"Devolución"}',
    'GRu9RomwcXDnu80naFuOl5FaRWLC0Mhbic_WKkAyfS4',
  ],
  [
    'refundTransaction',
    { ...REFUND, as: { reason: 'Devolución' } },
    '{"refundReason":"Devolución"}',
    'yZLbE9pNxvBALKPHpbsBfKigs4rtMcC8Oestb1TF8XE',
  ],
])(
  '%s without its optional fields has the body and the digest that are stored',
  (mutation, input, body, digest) => {
    const prepared = PREPARE[mutation]?.(input);
    expect(prepared?.body).toBe(body);
    expect(prepared?.inputHash).toBe(digest);
    // An app that sends null says the same as one that sends nothing.
    const field = PAYMENTS.find(([name]) => name === mutation)?.[1].args[0];
    if (field === undefined) throw new Error('every payment has an input');
    const withNulls = nullsIn(field.type, input);
    if (mutation === 'createPennyValidation') expect(withNulls).not.toEqual(input);
    expect(PREPARE[mutation]?.(withNulls as object)).toMatchObject({ body, inputHash: digest });
  },
);

/** An input, with null for each field that may be left out and is. */
function nullsIn(type: GraphQLInputType, input: unknown): unknown {
  const named = getNullableType(type);
  if (!isInputObjectType(named) || typeof input !== 'object' || input === null) return input;
  const given = Object.entries(named.getFields()).flatMap(([name, field]): [string, unknown][] => {
    if (name in input) return [[name, nullsIn(field.type, Reflect.get(input, name))]];
    return named.isOneOf || isNonNullType(field.type) ? [] : [[name, null]];
  });
  return Object.fromEntries(given);
}

type Path = readonly string[];
type Form = { readonly path: Path; readonly value: string };

/** A text that is no other field's, of the form that the field's checks want. A field of another form gets its line here. */
function sample(path: Path, type: string): string {
  const number = [...path.join('')].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 8_999, 0);
  if (type === 'ID') return `00000000-0000-4000-8000-${String(number + 1_000).padStart(12, '0')}`;
  if (type === 'MoneyAmount') return `${number + 1}.25`;
  if (type === 'CurrencyCode') return 'MXN';
  if (path.at(-1) === 'externalReference') return String(1_000_000 + number);
  return `Texto ${number} ${path.at(-1)}`;
}

/** The inputs that a type allows with every field given: of a @oneOf input, one for each of its fields. */
function inputsOf(type: GraphQLInputType, path: Path = []): readonly (readonly Form[])[] {
  const named = getNullableType(type);
  if (!isInputObjectType(named)) return [[{ path, value: sample(path, getNamedType(type).name) }]];
  const fields = Object.values(named.getFields()).map((field) => inputsOf(field.type, [...path, field.name]));
  if (named.isOneOf) return fields.flat();
  return fields.reduce<readonly (readonly Form[])[]>(
    (made, forms) => made.flatMap((one) => forms.map((form) => [...one, ...form])),
    [[]],
  );
}

function objectOf(forms: readonly Form[]): object {
  const whole: Record<string, unknown> = {};
  for (const { path, value } of forms) {
    let place = whole;
    for (const step of path.slice(0, -1)) {
      place[step] ??= {};
      place = place[step] as Record<string, unknown>;
    }
    place[path.at(-1) ?? ''] = value;
  }
  return whole;
}

const CASES = PAYMENTS.flatMap(([name, { args }]) => {
  const [input] = args;
  if (input === undefined) throw new Error('a payment has an input');
  return inputsOf(input.type).flatMap((forms) =>
    forms.map(({ path }) => ({ name, field: path.join('.'), forms })),
  );
});

describe('every field of the input of a payment reaches the service', () => {
  it.each(CASES)('$name: $field', ({ name, field, forms }) => {
    const prepare = PREPARE[name];
    const given = prepare?.(objectOf(forms));
    const type = forms.find(({ path }) => path.join('.') === field);
    if (type === undefined || given === undefined) throw new Error('the field is one of the input');
    // These three do not stand in the body as they are given.
    if (field === 'idempotencyKey') {
      expect(given.key).toBe(type.value);
    } else if (field === 'transactionId') {
      const others = forms.map((form) => (form === type ? { ...form, value: CLIENT } : form));
      expect(prepare?.(objectOf(others)).inputHash).not.toBe(given.inputHash);
    } else if (field === 'currency') {
      const others = forms.map((form) => (form === type ? { ...form, value: 'USD' } : form));
      expect(() => prepare?.(objectOf(others))).toThrow(ValidationError);
    } else {
      expect(given.body).toContain(JSON.stringify(type.value));
    }
  });
});
