import { parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import type { Caller } from '../../../src/auth/caller.ts';
import { preparedOperation } from '../../../src/graphql/documents/prepared-operation.ts';
import { buildSchema } from '../../../src/schema/index.ts';
import { streamKey, visibilityOf } from '../../../src/transport/sockets/stream-key.ts';

const schema = buildSchema();
const FOLLOW = parse(
  'subscription Follow($after: Cursor, $owner: ID) { moneyIn(after: $after, ownerId: $owner) { id owner { __typename } } }',
);

const key = (
  changes: {
    document?: ReturnType<typeof parse>;
    variables?: object;
    credential?: string;
    visibility?: string | undefined;
  } = {},
) => {
  const operation = preparedOperation({ schema, document: changes.document ?? FOLLOW });
  if (operation === undefined) throw new Error('the document has one operation');
  return streamKey({
    operation,
    variables: { ...changes.variables },
    credential: changes.credential ?? 'Bearer one',
    visibility: 'visibility' in changes ? changes.visibility : 'client',
  });
};

describe('subscriptions are the same', () => {
  it('but for where they continue', () => {
    const [now, resumed] = [key(), key({ variables: { after: 'c1' } })];
    expect(resumed?.key).toBe(now?.key);
    expect([now?.resumes, resumed?.resumes, key({ variables: { after: null } })?.resumes]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it.each([
    ['credential', { credential: 'Bearer two' }],
    ['variables', { variables: { owner: 'x' } }],
    ['document', { document: parse('subscription { moneyIn { id } }') }],
  ])('not with another %s', (_what, changes) => {
    expect(key(changes)?.key).not.toBe(key()?.key);
  });

  it('not for a caller who is not known, whatever its credential reads as', () => {
    const document = parse('subscription { moneyIn { id } }');
    const known = key({ document, visibility: 'client' });
    const unknown = key({ document, visibility: undefined, credential: 'client' });
    expect([known?.ofAnyCredential, unknown?.ofAnyCredential]).toEqual([true, false]);
    expect(unknown?.key).not.toBe(known?.key);
  });
});

describe('what callers may see is the same', () => {
  const whole: Caller = {
    clientId: 'a',
    customerId: undefined,
    subject: 'somebody',
    keyOwner: undefined,
    scopes: new Set(['events:read', 'graph:read']),
    expiresAt: undefined,
  };
  const seen = visibilityOf(whole);

  it('whoever they are, and in whatever order their scopes stand', () => {
    const scopes: Caller['scopes'] = new Set(['graph:read', 'events:read']);
    expect(visibilityOf({ ...whole, scopes, subject: 'another', expiresAt: 1 })).toBe(seen);
  });

  it.each<[string, Partial<Caller>]>([
    ['client', { clientId: 'b' }],
    ['customer', { customerId: 'a' }],
    ['set of scopes', { scopes: new Set(['events:read']) }],
  ])('not with another %s', (_what, changes) => {
    expect(visibilityOf({ ...whole, ...changes })).not.toBe(seen);
  });

  it('not for a customer whose id is that of another’s client', () => {
    const one = visibilityOf({ ...whole, clientId: 'a', customerId: 'b' });
    expect(visibilityOf({ ...whole, clientId: 'b', customerId: 'a' })).not.toBe(one);
  });
});

describe('a stream is not shared', () => {
  it.each([
    [
      'of a receipt, whose steps depend on when it began',
      'subscription { cepStatus(transactionId: "x") { kind } }',
    ],
    ['of a transaction, likewise', 'subscription { transactionStatus(transactionId: "x") { kind } }'],
    ['that continues where its document says', 'subscription { moneyIn(after: "c1") { id } }'],
    ['whose place has a default', 'subscription ($a: Cursor = "c1") { moneyIn(after: $a) { id } }'],
    [
      'whose place is also used elsewhere',
      'subscription ($a: Cursor) { moneyIn(after: $a, ownerId: $a) { id } }',
    ],
    ['under a condition', 'subscription ($a: Boolean!) { moneyIn @include(if: $a) { id } }'],
    [
      'whose field stands in a fragment',
      'subscription { ...F } fragment F on Subscription { moneyIn { id } }',
    ],
    ['of a query', '{ client { id } }'],
  ])('%s', (_what, document) => {
    expect(key({ document: parse(document) })).toBeUndefined();
  });
});
