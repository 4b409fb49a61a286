import { parse } from 'graphql';
import { afterEach, expect, it, vi } from 'vitest';
import {
  forgetSettled,
  type Intent,
  type IntentStore,
  memoryIntents,
  pay,
  unsettled,
} from '../../packages/client/src/index.ts';
import { done, INPUT, lost, MUTATION, refusedCall, result, scripted } from './scripted.ts';

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

it('a call that nobody answers is lost once its time is over, and made again under its key', async () => {
  const { source, keys } = scripted(() => new Promise(() => {}), done);
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents(), answerMs: 50 });
  expect(outcome.status).toBe('done');
  expect(keys).toHaveLength(2);
  expect(new Set(keys).size).toBe(1);
});

it('does not ask again before the time that the gateway asks for, and says so where that is too long', async () => {
  const { source, keys } = scripted(refusedCall('RATE_LIMITED', { retryAfterMs: 600_000 }), done);
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents() });
  expect(outcome).toMatchObject({ status: 'refused', code: 'RATE_LIMITED' });
  expect(keys).toHaveLength(1);
});

afterEach(() => void vi.useRealTimers());

it.each([
  ['may have arrived', lost, { status: 'unknown', safeToRetry: true }, 1],
  [
    'has moved nothing',
    refusedCall('UPSTREAM_UNAVAILABLE'),
    { status: 'refused', code: 'UPSTREAM_UNAVAILABLE' },
    0,
  ],
])(
  'sends nothing more where the machine has slept in a pause, behind a call that %s: nobody waits for it any more',
  async (_, first, end, open) => {
    vi.useFakeTimers();
    const { source, keys } = scripted(first, done);
    const store = memoryIntents();
    const paying = pay(source, MUTATION, INPUT, { store });
    await vi.advanceTimersByTimeAsync(10);
    expect(keys).toHaveLength(1);
    vi.setSystemTime(Date.now() + 3 * 86_400_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(keys).toHaveLength(1);
    expect(await paying).toMatchObject(end);
    expect(await unsettled(store)).toHaveLength(open);
  },
);

it('asks no longer than its patience where the clock is set back meanwhile', async () => {
  vi.useFakeTimers();
  const setBack = () => {
    vi.setSystemTime(Date.now() - 7_200_000);
    return lost();
  };
  const { source, keys } = scripted(lost, lost, setBack, lost);
  let outcome: unknown;
  void pay(source, MUTATION, INPUT, { store: memoryIntents() }).then((ended) => {
    outcome = ended;
  });
  await vi.advanceTimersByTimeAsync(61_000);
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true });
  expect(new Set(keys).size).toBe(1);
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
] as const)(
  'a top-level %s speaks for its own call alone, and is told either way (%#)',
  async (code, before, status) => {
    const { source } = scripted(...before, refusedCall(code));
    const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents(), patienceMs: 300 });
    const told = { status, code, message: code };
    expect(outcome).toMatchObject(status === 'unknown' ? { ...told, safeToRetry: true } : told);
  },
);

it.each([
  // It does not say how far the call came.
  [refusedCall('INTERNAL'), 'INTERNAL'],
  [lost, 'No answer came.'],
])('what says nothing of the payment is no refusal: it has no code (%#)', async (answer, message) => {
  const { source } = scripted(refusedCall('RATE_LIMITED'), answer);
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents(), patienceMs: 300 });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true, message, code: undefined });
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

it.each([
  ['`__typename`', { transaction: { id: 'a' } }],
  ['`__typename` under its name', { kind: 'PaySuccess' }],
  // Such as one that an earlier call of the same payment is under way.
  ['`code`', { __typename: 'ConflictError', message: 'Running.' }],
  ['`code` under its name', { __typename: 'ConflictError', reason: 'IDEMPOTENCY_IN_PROGRESS' }],
  ['`code`, as a field of `UserError`', { __typename: 'ConflictError' }],
  // Money out may be made for a day.
  ['`safeToRetry`', { __typename: 'OutcomeUnknown', message: 'It may have happened.' }],
  ['`OutcomeUnknown`', { __typename: 'OutcomeUnknown' }],
])('a mutation that lacks %s is sent once, keeps its key, and says what is missing', async (_, told) => {
  const answer = { data: { pay: told } } as never;
  const { source, keys } = scripted(async () => answer);
  const store = memoryIntents();
  for (const calls of [1, 2]) {
    const outcome = await pay(source, MUTATION, INPUT, { store });
    // Nobody is offered to let go of it.
    expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true });
    expect(outcome).toHaveProperty(
      'message',
      expect.stringContaining('`__typename`, `code` and `safeToRetry`'),
    );
    await outcome.acknowledge();
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

it('a null says the same as no field: it is one payment', async () => {
  const { source, keys } = scripted(lost);
  const store = memoryIntents();
  await pay(source, MUTATION, { ...INPUT, note: null }, { store, patienceMs: 0 });
  await pay(source, MUTATION, INPUT, { store, patienceMs: 0 });
  expect(keys.length).toBeGreaterThan(1);
  expect(new Set(keys).size).toBe(1);
});

it('tells why a payment is unknown, and until when it may still be made', async () => {
  const [reason, retryUntil] = ['NO_ANSWER', '2999-01-01T00:00:00Z'];
  const { source } = scripted(result('OutcomeUnknown', { safeToRetry: true, reason, retryUntil }));
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents(), patienceMs: 0 });
  expect(outcome).toMatchObject({ status: 'unknown', reason, retryUntil });
  expect(outcome.intent.result).toMatchObject({ __typename: 'OutcomeUnknown', reason });
});

const unsafe = result('OutcomeUnknown', { safeToRetry: false, message: 'Look first.' });
const record = (state: string | undefined) => async () =>
  ({ data: { payment: state === undefined ? null : { state } } }) as never;

it.each([
  ['DONE', done, 'done'],
  ['REFUSED', result('PreconditionError', { code: 'INSUFFICIENT_FUNDS', message: 'Too little.' }), 'refused'],
] as const)(
  'what the gateway has learned since to be %s is told, under the key of the first call',
  async (state, end, status) => {
    const { source, keys, looks, states } = scripted(unsafe, end);
    const store = memoryIntents();
    expect(await pay(source, MUTATION, INPUT, { store })).toMatchObject({ status: 'unknown' });
    expect(looks).toEqual([]);
    states.push(record(state));
    expect(await pay(source, MUTATION, INPUT, { store })).toMatchObject({ status });
    expect(keys).toHaveLength(2);
    expect(new Set([...keys, ...looks]).size).toBe(1);
  },
);

it.each([
  ['UNKNOWN', record('UNKNOWN')],
  ['IN_FLIGHT', record('IN_FLIGHT')],
  ['no payment', record(undefined)],
  ['a token without the scope', refusedCall('FORBIDDEN')],
  ['no answer', lost],
])('a payment that is not safe to repeat is not sent while the gateway tells of %s', async (_, told) => {
  const { source, keys, looks, states } = scripted(unsafe, done);
  const store = memoryIntents();
  await pay(source, MUTATION, INPUT, { store });
  states.push(told);
  const outcome = await pay(source, MUTATION, INPUT, { store });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: false, message: 'Look first.' });
  expect(looks).toEqual(keys);
});

it('a refusal behind a call without an answer is told as unknown, with its code and message, and the key stays', async () => {
  const invalid = result('ValidationError', { code: 'AMOUNT_NOT_POSITIVE', message: 'It is -1.00.' });
  const { source, keys } = scripted(lost, ...Array<typeof done>(20).fill(invalid));
  const store = memoryIntents();
  expect(await pay(source, MUTATION, INPUT, { store, patienceMs: 300 })).toMatchObject({
    status: 'unknown',
    safeToRetry: true,
    code: 'AMOUNT_NOT_POSITIVE',
    message: 'It is -1.00.',
  });
  await pay(source, MUTATION, INPUT, { store, patienceMs: 0 });
  expect(new Set(keys).size).toBe(1);
  expect(keys.length).toBeGreaterThan(2);
  // What else is unknown has no such code.
  const silent = await pay(scripted(lost).source, MUTATION, { amount: '2.00' }, { store, patienceMs: 0 });
  expect(silent).toMatchObject({ status: 'unknown', safeToRetry: true, code: undefined });
});

/** A store that fails at each writing that it is told of. */
function failing(...at: number[]): IntentStore {
  let intents: readonly Intent[] = [];
  let writings = 0;
  return {
    load: () => intents,
    save(next) {
      writings += 1;
      if (at.includes(writings)) throw new Error('the disk is full');
      intents = next;
    },
  };
}

it('a store that fails once the answer is there takes nothing back of what was told', async () => {
  for (const [end, status] of [
    [done, 'done'],
    [result('PreconditionError', { code: 'INSUFFICIENT_FUNDS' }), 'refused'],
    [unsafe, 'unknown'],
  ] as const) {
    const { source, keys, states } = scripted(end);
    const refused = async () => ({ data: { payment: { state: 'REFUSED' } } }) as never;
    states.push(refused, refused);
    const store = failing(2);
    expect(await pay(source, MUTATION, INPUT, { store })).toMatchObject({ status });
    // What was not kept is asked for again, and is not another payment.
    expect(await pay(source, MUTATION, INPUT, { store })).toMatchObject({ status });
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  }
});

it('a store that fails before a repetition makes nobody believe that nothing was sent', async () => {
  const { source, keys } = scripted(lost, done);
  expect((await pay(source, MUTATION, INPUT, { store: failing(2) })).status).toBe('done');
  expect(new Set(keys).size).toBe(1);
  const never = failing(...Array.from({ length: 100 }, (_, at) => at + 2));
  const outcome = await pay(scripted(lost).source, MUTATION, INPUT, { store: never, patienceMs: 300 });
  expect(outcome).toMatchObject({ status: 'unknown', safeToRetry: true });
  expect(outcome).toHaveProperty('cause.message', 'the disk is full');
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

it('a form that goes on with its input object makes another payment', async () => {
  const { source, keys } = scripted(done);
  const store = memoryIntents();
  const form = { amount: '1.00' };
  const first = await pay(source, MUTATION, form, { store });
  form.amount = '2.00';
  const second = await pay(source, MUTATION, form, { store });
  expect(new Set(keys).size).toBe(2);
  expect([first, second].map(({ intent }) => intent.input['amount'])).toEqual(['1.00', '2.00']);
});

it('forgets what has ended and was seen, and nothing that another tab enters meanwhile', async () => {
  let intents: readonly Intent[] = [];
  const shared: IntentStore = {
    load: () => intents,
    save(next, before) {
      if (intents !== before) return false;
      intents = next;
      return true;
    },
  };
  const { source } = scripted(done, result('PreconditionError', { code: 'INSUFFICIENT_FUNDS' }), lost);
  await (await pay(source, MUTATION, INPUT, { store: shared })).acknowledge();
  expect((await pay(source, MUTATION, { amount: '2.00' }, { store: shared })).status).toBe('refused');
  const other: Intent = {
    idempotencyKey: 'of another tab',
    mutation: 'pay',
    input: { amount: '3.00' },
    createdAt: new Date().toISOString(),
    unanswered: 1,
  };
  let isFirst = true;
  await forgetSettled({
    async load() {
      const before = intents;
      if (isFirst) intents = [...intents, other];
      isFirst = false;
      return before;
    },
    save: shared.save,
  });
  expect(intents).toEqual([other]);
});

it('a store that fails between two calls that have moved nothing is no doubt about the money', async () => {
  const { source, keys } = scripted(refusedCall('STORE_UNAVAILABLE', { retryable: true }));
  let writings = 0;
  let intents: readonly Intent[] = [];
  const store: IntentStore = {
    load: () => intents,
    save(next) {
      writings += 1;
      // Only the first call is entered, and its answer kept; then what ends it.
      if (writings > 2 && next.every(({ result: end }) => end === undefined)) throw new Error('Full.');
      intents = next;
    },
  };
  const outcome = await pay(source, MUTATION, INPUT, { store, patienceMs: 300 });
  expect(keys).toHaveLength(1);
  expect(outcome).toMatchObject({ status: 'refused', code: 'STORE_UNAVAILABLE', message: 'Full.' });
  expect(await unsettled(store)).toEqual([]);
});

it('mutations that begin with `__typename` are told apart', async () => {
  const { source, keys } = scripted(done);
  const store = memoryIntents();
  const fields = ['createMoneyOut', 'createInternalTransaction'];
  const names: string[] = [];
  for (const field of fields) {
    const text = `mutation Pay($input: PayInput!) { __typename, ${field}(input: $input) { __typename } }`;
    for (const document of [text, parse(text)]) {
      const outcome = await pay(source, document as unknown as typeof MUTATION, INPUT, { store });
      names.push(outcome.intent.mutation);
    }
  }
  expect(names).toEqual(fields.flatMap((field) => [field, field]));
  expect(new Set(keys).size).toBe(2);
});
