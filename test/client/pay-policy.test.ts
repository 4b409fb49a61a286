import { expect, it } from 'vitest';
import {
  type Answer,
  memoryIntents,
  pay,
  type Source,
  typed,
  unsettled,
} from '../../packages/client/src/index.ts';

interface Result {
  readonly __typename: string;
}
const MUTATION = typed<
  { readonly pay: Result },
  { readonly input: { readonly idempotencyKey: string; readonly amount: string } }
>('mutation Pay($input: PayInput!) { pay(input: $input) { __typename } }');
const INPUT = { amount: '1.00' };

const lost = () => Promise.reject(new Error('the network is gone'));
const refusedCall =
  (code: string, more: object = {}) =>
  async () => ({
    errors: [{ message: code, extensions: { code, ...more } }],
  });
const result =
  (__typename: string, more: object = {}) =>
  async () => ({ data: { pay: { __typename, ...more } } });
const done = result('PaySuccess');

/** A gateway that answers as it is told, one call after another, and the keys that it was shown. */
function scripted(...answers: (() => Promise<Answer<{ pay: Result }>>)[]): {
  source: Source;
  keys: string[];
} {
  const keys: string[] = [];
  const source = {
    query: (_document: unknown, { input }: { input: { idempotencyKey: string } }) => {
      keys.push(input.idempotencyKey);
      return answers.length > 1 ? (answers.shift() ?? lost)() : (answers[0] ?? lost)();
    },
    subscribe: () => () => {},
  };
  // Of the documents that a source takes, these tests send one.
  return { source: source as unknown as Source, keys };
}

it('asks again with one key until it knows', async () => {
  const { source, keys } = scripted(
    lost,
    refusedCall('RATE_LIMITED', { retryAfterMs: 50 }),
    result('ConflictError', { code: 'IDEMPOTENCY_IN_PROGRESS', message: 'Still running.' }),
    result('OutcomeUnknown', { safeToRetry: true, retryUntil: '2999-01-01T00:00:00Z', message: '' }),
    done,
  );
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents() });
  expect(outcome.status).toBe('done');
  expect(keys).toHaveLength(5);
  expect(new Set(keys).size).toBe(1);
});

it('does not ask again before the time that the gateway asks for, and says so where that is too long', async () => {
  const { source, keys } = scripted(refusedCall('RATE_LIMITED', { retryAfterMs: 600_000 }), done);
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents() });
  expect(outcome).toMatchObject({ status: 'refused', code: 'RATE_LIMITED' });
  expect(keys).toHaveLength(1);
});

it('a refusal moves nothing, and the next try is a new payment', async () => {
  const { source, keys } = scripted(
    result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' }),
    done,
  );
  const store = memoryIntents();
  expect(await pay(source, MUTATION, INPUT, { store })).toMatchObject({
    status: 'refused',
    code: 'INSUFFICIENT_FUNDS',
    message: 'Too little.',
  });
  expect(await unsettled(store)).toEqual([]);
  expect((await pay(source, MUTATION, INPUT, { store })).status).toBe('done');
  expect(new Set(keys).size).toBe(2);
});

it.each([
  ['FORBIDDEN', [], 'refused'],
  // The call before may have moved the money.
  ['FORBIDDEN', [lost], 'unknown'],
  ['STORE_UNAVAILABLE', [], 'refused'],
  ['STORE_UNAVAILABLE', [lost], 'unknown'],
  // It does not say how far the call came.
  ['INTERNAL', [], 'unknown'],
] as const)('a top-level %s speaks for its own call alone (%#)', async (code, before, status) => {
  const { source } = scripted(...before, refusedCall(code));
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents(), patienceMs: 300 });
  expect(outcome).toMatchObject(status === 'unknown' ? { status, safeToRetry: true } : { status, code });
});

it.each([
  [{ safeToRetry: false }, 1],
  [{ safeToRetry: true, retryUntil: '2020-01-01T00:00:00Z' }, 1],
])('what cannot be repeated safely is not: %j', async (unknown, calls) => {
  const { source, keys } = scripted(result('OutcomeUnknown', { message: 'Look first.', ...unknown }));
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents() });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: false, message: 'Look first.' });
  expect(keys).toHaveLength(calls);
});

it('a mutation that lacks `__typename` is sent once, and says what is missing', async () => {
  const answer = { data: { pay: { transaction: { id: 'a' } } } } as unknown as Answer<{ pay: Result }>;
  const { source, keys } = scripted(async () => answer);
  const store = memoryIntents();
  for (const calls of [1, 2]) {
    const outcome = await pay(source, MUTATION, INPUT, { store });
    expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: false });
    expect(outcome).toHaveProperty('message', expect.stringContaining('`__typename`'));
    expect(keys).toHaveLength(calls);
  }
  // Once it is there, the same payment is found to be done.
  const { source: mended, keys: more } = scripted(done);
  expect((await pay(mended, MUTATION, INPUT, { store })).status).toBe('done');
  expect(new Set([...keys, ...more]).size).toBe(1);
});

it('a payment that nobody has seen the end of is told of, and not made again; acknowledged, it is over', async () => {
  const { source, keys } = scripted(done);
  const store = memoryIntents();
  await pay(source, MUTATION, INPUT, { store });
  expect(await unsettled(store)).toMatchObject([{ mutation: 'pay', input: INPUT }]);
  const again = await pay(source, MUTATION, INPUT, { store });
  expect(again.status).toBe('done');
  expect(keys).toHaveLength(1);
  await again.acknowledge();
  expect(await unsettled(store)).toEqual([]);
  await pay(source, MUTATION, INPUT, { store });
  expect(new Set(keys).size).toBe(2);
});

it('an intent is kept before anything is sent: what cannot be kept is not paid', async () => {
  const { source, keys } = scripted(done);
  const full = {
    load: () => [],
    save() {
      throw new Error('the disk is full');
    },
  };
  await expect(pay(source, MUTATION, INPUT, { store: full })).rejects.toThrow('the disk is full');
  expect(keys).toEqual([]);
});

it('an error within the result does not say that nothing has moved', async () => {
  const path = ['pay', 'transaction', 'audit'];
  const odd = { message: 'odd', path, extensions: { code: 'UPSTREAM_INVALID' } };
  // Null where it is typed otherwise, as an error beside it says.
  const { source, keys } = scripted(async () => ({ data: { pay: null }, errors: [odd] }) as never);
  const store = memoryIntents();
  const outcome = await pay(source, MUTATION, INPUT, { store, patienceMs: 0 });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true });
  await pay(source, MUTATION, INPUT, { store, patienceMs: 0 });
  expect(new Set(keys).size).toBe(1);
});

it('what another field of the document failed with says nothing of the payment', async () => {
  const others = { message: 'other', path: ['other'], extensions: { code: 'FORBIDDEN' } };
  const answers = [
    { data: { pay: { __typename: 'PaySuccess' }, other: null }, errors: [others] },
    {
      data: { pay: null, other: null },
      errors: [others, { message: 'lost', path: ['pay'], extensions: { code: 'INTERNAL' } }],
    },
  ];
  const [made, lostToo] = await Promise.all(
    answers.map((answer) =>
      pay(scripted(async () => answer as never).source, MUTATION, INPUT, {
        store: memoryIntents(),
        patienceMs: 0,
      }),
    ),
  );
  expect(made?.status).toBe('done');
  expect(lostToo?.status).toBe('unknown');
});
