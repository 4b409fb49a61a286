import { type ExecutionResult, parse } from 'graphql';
import { expect, it, onTestFinished } from 'vitest';
import { clock, useClock } from '../../../src/common/clock.ts';
import type { Full } from '../../../src/common/refusals.ts';
import { Waiters } from '../../../src/common/waiters.ts';
import { type AdmissionOptions, useAdmission } from '../../../src/graphql/plugins/admission.ts';
import type { Budget } from '../../../src/operation/budget.ts';
import { Report } from '../../../src/operation/report.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { control, type RunningGateway, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { connect } from '../../helpers/socket.ts';
import { stillTime } from '../../helpers/still-time.ts';
import { until } from '../../helpers/until.ts';
import { inject, requestsOf } from '../../scenarios/faults/payments.ts';

const WAITING = /^pasarela_operations_waiting (\d+)$/m;
const waitingAt = async ({ url }: RunningGateway): Promise<number> =>
  Number(WAITING.exec(await (await fetch(`${url}/metrics`)).text())?.[1]);

it('an operation whose caller has left waits for no turn', async () => {
  await using gateway = await startGateway({
    webhooks: false,
    config: {
      upstreamCallsPerCaller: 1,
      upstreamTimeoutMs: 60_000,
      operationTimeoutMs: 60_000,
      listsMaxAgeMs: 0,
    },
  });
  const headers = { authorization: `Bearer ${gateway.sandbox.accessToken}` };
  await gateway.query('{ client { id } }');
  await inject(gateway.sandbox, { method: 'GET', path: '/v1/clients/*/accounts' }, 'hang', 1);
  const left = new AbortController();
  const ask = (document: string, signal: AbortSignal) =>
    sendQuery(gateway.graphql, document, {}, headers, signal).catch(() => undefined);
  const waiting = () => waitingAt(gateway);
  const end = new AbortController();
  let isWaiting = true;
  const first = ask('{ client { accounts { totalCount } } }', end.signal).finally(() => {
    isWaiting = false;
  });
  const others = [1, 2].map((number) => ask(`{ n${number}: client { id } }`, left.signal));
  await until(async () => (await waiting()) === others.length);
  left.abort();
  await Promise.all(others);
  // The one that they waited for is not answered yet.
  await until(async () => (await waiting()) === 0);
  expect(isWaiting).toBe(true);
  end.abort();
  await first;
});

/** A query may join the same one for a second: this clock stands still, as a machine may be slow. */
function holdClock(): void {
  const now = clock.monotonic();
  onTestFinished(useClock({ ...clock, monotonic: () => now }));
}

it('a query that joins the same one under way takes no place, and is not refused where there is none', async () => {
  holdClock();
  await using gateway = await startGateway({
    webhooks: false,
    config: {
      upstreamCallsPerCaller: 1,
      operationsQueue: 0,
      upstreamTimeoutMs: 1_000,
      operationTimeoutMs: 2_000,
      listsMaxAgeMs: 0,
    },
  });
  await gateway.query('{ client { id } }');
  await inject(gateway.sandbox, { method: 'GET', path: '/v1/clients/*/accounts' }, 'hang', 1);
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => gateway.query('{ client { accounts { totalCount } } }')),
  );
  const codes = answers.flatMap(({ errors = [] }) => errors.map(({ extensions }) => extensions['code']));
  expect(codes).not.toContain('RATE_LIMITED');
});

const PROBE = 'GET /v1/clients/{clientId}/instruments';

/** A token of the demo client that the gateway has not seen. */
async function freshToken({ sandbox }: RunningGateway): Promise<string> {
  const { url, clientId, clientSecret, apiKey } = sandbox;
  const answer = await fetch(`${url}/v1/clients/${clientId}/auth/credential-tokens`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: clientId, client_secret: clientSecret }),
  });
  return `Bearer ${((await answer.json()) as { token: string }).token}`;
}

it('one who becomes known while its operation waits gives back the place that it was given, each time', async () => {
  await using gateway = await startGateway({
    webhooks: false,
    config: { upstreamCallsPerCaller: 1, upstreamTimeoutMs: 60_000, operationTimeoutMs: 60_000 },
  });
  const ask = (authorization: string, signal: AbortSignal | null = null) =>
    sendQuery(gateway.graphql, '{ client { id } }', {}, { authorization }, signal);
  for (let round = 1; round <= 2; round += 1) {
    const [first, second, third] = [
      await freshToken(gateway),
      await freshToken(gateway),
      await freshToken(gateway),
    ];
    await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
    await inject(gateway.sandbox, { method: 'GET', path: '/v1/clients/*/instruments' }, 'hang', 1);
    const left = new AbortController();
    const holding = ask(first, left.signal).catch(() => undefined);
    await until(async () => (await requestsOf(gateway.sandbox, PROBE)) === 1);
    const waiting = ask(second);
    await until(async () => (await waitingAt(gateway)) === 1);
    const socket = await connect(gateway, second);
    left.abort();
    await holding;
    expect((await waiting).errors).toBeUndefined();
    await socket.close();
    // Nobody knows this one, which comes from the same address.
    expect((await ask(third)).errors).toBeUndefined();
  }
});

it('one who has become known keeps no seat from others of its address, however long its operation lasts', async () => {
  await using gateway = await startGateway({
    webhooks: false,
    config: { upstreamCallsPerCaller: 1, upstreamTimeoutMs: 60_000, operationTimeoutMs: 60_000 },
  });
  const [first, second] = [await freshToken(gateway), await freshToken(gateway)];
  await inject(gateway.sandbox, { method: 'GET', path: '/v1/clients/*/accounts' }, 'hang', 1);
  const left = new AbortController();
  const ask = (document: string, authorization: string) =>
    sendQuery(gateway.graphql, document, {}, { authorization }, left.signal);
  let isHeld = true;
  const holding = ask('{ client { accounts { totalCount } } }', first)
    .catch(() => undefined)
    .finally(() => {
      isHeld = false;
    });
  await until(async () => (await requestsOf(gateway.sandbox, 'GET /v1/clients/{clientId}/accounts')) === 1);
  expect((await ask('{ client { id } }', second)).errors).toBeUndefined();
  // Its own seat it has until it is answered.
  const waiting = ask('{ client { id } }', first).catch(() => undefined);
  await until(async () => (await waitingAt(gateway)) === 1);
  expect(isHeld).toBe(true);
  left.abort();
  await Promise.all([holding, waiting]);
});

const messageOf = (answer: unknown) => (answer as ExecutionResult).errors?.map(({ message }) => message)[0];

/** Passes operations of one caller through the plugin. */
function admitting(options: Partial<AdmissionOptions> = {}) {
  const plugin = useAdmission({
    perCaller: 1,
    queue: 0,
    onWaiting: () => undefined,
    onWaited: () => undefined,
    onRefused: () => undefined,
    ...options,
  });
  return (
    document: string,
    execute: () => unknown,
    given: Partial<Budget> = {},
    identity: object = {
      requester: { caller: 'one', group: 'one' },
      credential: 'one',
      isStranger: false,
      isOverSocket: false,
    },
    report = new Report(),
  ): unknown => {
    let run = execute as (args: object) => unknown;
    const args = {
      document: parse(document),
      contextValue: {
        identity,
        budget: { waiters: undefined, deadline: clock.now() + 60_000, ...given },
        report,
      },
    };
    const setExecuteFn = (fn: typeof run): void => {
      run = fn;
    };
    // Only these members of the hook's payload are used.
    const payload = { args, executeFn: run, setExecuteFn } as unknown as Parameters<
      NonNullable<typeof plugin.onExecute>
    >[0];
    void plugin.onExecute?.(payload);
    return run(args);
  };
}

it('an operation that fails before it has begun gives its place back', async () => {
  const enter = admitting();
  const fail = () => {
    throw new Error('it cannot be executed');
  };
  for (let failed = 0; failed < 3; failed += 1)
    expect(() => enter('{ a }', fail)).toThrow('cannot be executed');
  await expect(enter('{ a }', () => Promise.reject(new Error('it has failed')))).rejects.toThrow(
    'has failed',
  );
  expect(await enter('{ a }', async () => 'executed')).toBe('executed');
});

it('an operation with less than two seconds left waits for half of them', async () => {
  using time = stillTime();
  const enter = admitting({ queue: 2 });
  const ended = Promise.withResolvers<string>();
  const first = enter('{ a }', () => ended.promise);
  const [second, third] = [1_000, 900].map((leftMs) =>
    enter('{ a }', async () => 'executed', { deadline: clock.now() + leftMs }),
  );
  await time.pass(450);
  expect(messageOf(await third)).toMatch(/^No seat became free in time: this caller /);
  ended.resolve('first');
  expect([await first, await second]).toEqual(['first', 'executed']);
});

it('how long an operation waited for its seat is reported of it, whether it had one or was refused, and of none that had one at once', async () => {
  using time = stillTime();
  const enter = admitting({ queue: 2 });
  const ended = Promise.withResolvers<string>();
  const [first, second, third] = [new Report(), new Report(), new Report()];
  const results = [
    enter('{ a }', () => ended.promise, {}, undefined, first),
    enter('{ a }', async () => 'executed', {}, undefined, second),
    enter('{ a }', async () => 'executed', { deadline: clock.now() + 900 }, undefined, third),
  ];
  await time.pass(450);
  expect(messageOf(await results[2])).toMatch(/^No seat became free in time/);
  await time.pass(50);
  ended.resolve('first');
  await Promise.all(results);
  expect([first.seatMs, second.seatMs, third.seatMs]).toEqual([undefined, 500, 450]);
});

it('one who has become known while it waited for a seat of its address takes none of those', async () => {
  const enter = admitting({ queue: 1 });
  const address = {
    requester: { caller: 'address', group: 'address' },
    credential: 'one',
    isStranger: true,
    onceIdentified() {},
  };
  const [ended, begun, held] = [1, 2, 3].map(() => Promise.withResolvers<string>());
  const first = enter('{ a }', () => ended?.promise, {}, address);
  const known = { ...address };
  const execute = () => {
    begun?.resolve('begun');
    return held?.promise;
  };
  const second = enter('{ a }', execute, {}, known);
  Object.assign(known, { requester: { caller: 'person', group: 'client' }, isStranger: false });
  ended?.resolve('first');
  await Promise.all([first, begun?.promise]);
  expect(enter('{ a }', () => 'another', {}, address)).toBe('another');
  held?.resolve('second');
  expect(await second).toBe('second');
});

/** Many operations with one token that nobody has verified, of which two at once may be under way. */
function burst() {
  const ADDRESS = { caller: 'address', group: 'address' };
  const PERSON = { caller: 'person', group: 'client' };
  const enter = admitting({ perCaller: 2, queue: 100 });
  const told: (() => void)[] = [];
  const ends: (() => void)[] = [];
  let isKnown = false;
  let ended = 0;
  let most = 0;
  const identity = {
    credential: 'new',
    isOverSocket: false,
    get requester() {
      return isKnown ? PERSON : ADDRESS;
    },
    get isStranger() {
      return !isKnown;
    },
    onceIdentified: (work: () => void) => void told.push(work),
  };
  const answers = Array.from({ length: 40 }, (_, number) =>
    enter(
      '{ a }',
      () =>
        new Promise((resolve) => {
          ends.push(() => resolve(number));
          most = Math.max(most, ends.length - ended);
        }),
      {},
      identity,
    ),
  );
  return {
    enter,
    address: { ...identity, credential: 'another', requester: ADDRESS, isStranger: true },
    know: () => {
      isKnown = true;
    },
    tell: () => {
      for (const work of told) work();
    },
    /** Ends one after the other, until all are answered. @returns how many were under way at once, at most, from then on */
    async end() {
      let isOver = false;
      const all = Promise.all(answers).finally(() => {
        isOver = true;
      });
      await until(() => {
        for (; ended < ends.length; ended += 1) ends[ended]?.();
        return isOver;
      });
      return { most, answers: await all };
    },
    underWay: () => ends.length - ended,
  };
}

it('a burst under a new token takes no more seats than its caller may have, once the token is verified', async () => {
  const { enter, address, know, tell, underWay, end } = burst();
  know();
  tell();
  // What ran for the address goes on, beside as many as the caller may have.
  await until(() => underWay() === 4);
  // None of them keeps a seat from others of that address.
  const others = ['one', 'two'].map((name) => enter('{ a }', async () => name, {}, address));
  expect(await Promise.all(others)).toEqual(['one', 'two']);
  const { most, answers } = await end();
  expect(most).toBe(4);
  expect(answers).toEqual(Array.from({ length: 40 }, (_, number) => number));
});

it('a burst under a token that was verified elsewhere takes no more either, as its turns come', async () => {
  const { know, end } = burst();
  know();
  const { most, answers } = await end();
  expect(most).toBe(2);
  expect(answers).toHaveLength(40);
});

it('one who has become known while its operations waited may leave one, which waits for no seat then', async () => {
  let waiting = 0;
  const enter = admitting({
    queue: 2,
    onWaiting: (count) => {
      waiting = count;
    },
  });
  let know = (): void => undefined;
  const identity = {
    requester: { caller: 'address', group: 'address' },
    credential: 'one',
    isStranger: true,
    isOverSocket: false,
    onceIdentified(work: () => void) {
      know = work;
    },
  };
  const ended = Promise.withResolvers<string>();
  const waiters = new Waiters();
  let isExecuted = false;
  const execute = async () => {
    isExecuted = true;
  };
  // The first has the seat of its address, and the second the one that its caller may have.
  const others = [1, 2].map(() => enter('{ a }', () => ended.promise, {}, identity));
  const left = enter('{ a }', execute, { waiters }, identity);
  expect(waiting).toBe(2);
  Object.assign(identity, { requester: { caller: 'person', group: 'client' }, isStranger: false });
  know();
  expect(waiting).toBe(1);
  waiters.remove();
  expect(waiting).toBe(0);
  await left;
  ended.resolve('ended');
  expect([await Promise.all(others), isExecuted]).toEqual([['ended', 'ended'], false]);
});

it('one who has become known only after its operation has ended takes no seat by that', async () => {
  const enter = admitting();
  let know = (): void => undefined;
  const caller = { requester: { caller: 'person', group: 'client' }, isStranger: false, isOverSocket: false };
  const stranger = {
    requester: { caller: 'address', group: 'address' },
    isStranger: true,
    onceIdentified(work: () => void) {
      know = work;
    },
  };
  expect(await enter('{ a }', async () => 'first', {}, stranger)).toBe('first');
  Object.assign(stranger, caller);
  know();
  expect(await enter('{ a }', async () => 'second', {}, caller)).toBe('second');
});

it('mutations that wait are told of like queries, and all of them together', async () => {
  const told: number[] = [];
  const enter = admitting({ queue: 2, onWaiting: (count) => told.push(count) });
  const ended = Promise.withResolvers<string>();
  const under = Array.from({ length: 64 }, () => enter('mutation { pay }', () => ended.promise));
  const others = ['mutation { pay }', '{ a }', '{ a }'].map((document) =>
    enter(document, () => ended.promise),
  );
  expect(told).toEqual([1, 2]);
  ended.resolve('done');
  expect(await Promise.all([...under, ...others])).toEqual(Array(67).fill('done'));
  expect(told).toEqual([1, 2, 1, 0]);
});

it('who is refused is told how long those before it take, as many of its kind as run at once', async () => {
  using time = stillTime();
  const enter = admitting({ queue: 2 });
  const slow = Promise.withResolvers<string>();
  const first = enter('{ a }', () => slow.promise);
  await time.pass(100_000);
  slow.resolve('done');
  await first;
  const ended = Promise.withResolvers<string>();
  const documents = [...Array(66).fill('mutation { pay }'), ...Array(3).fill('{ a }')];
  const held = documents.map((document) => enter(document, () => ended.promise));
  const waits = ['mutation { pay }', '{ a }'].map((document) => {
    const { errors } = enter(document, () => 'executed') as {
      errors: readonly { extensions: { retryAfterMs: number } }[];
    };
    return errors.map(({ extensions }) => extensions.retryAfterMs);
  });
  // The mean is a twentieth of what the first took. Of mutations 64 run at once, and of queries one.
  expect(waits).toEqual([[5_000], [15_000]]);
  ended.resolve('done');
  await Promise.all(held);
});

it('who waits in vain is told that no seat became free, and who leaves meanwhile is not counted as refused', async () => {
  using time = stillTime();
  let refused = 0;
  const enter = admitting({ queue: 2, onRefused: () => (refused += 1) });
  const ended = Promise.withResolvers<string>();
  const first = enter('{ a }', () => ended.promise);
  const leaving = new Waiters();
  const left = enter('{ a }', () => 'executed', { waiters: leaving });
  const waiting = enter('{ a }', () => 'executed');
  expect(messageOf(enter('{ a }', () => 'executed'))).toBe(
    'Too many operations of this caller are waiting; ask again later.',
  );
  expect(refused).toBe(1);
  leaving.remove();
  await left;
  expect(refused).toBe(1);
  await time.pass(60_000);
  expect(messageOf(await waiting)).toMatch(/^No seat became free in time/);
  expect(refused).toBe(2);
  ended.resolve('done');
  await first;
});

it.each([
  ['caller', { caller: 'one', group: 'one' }, 'this caller has'],
  [
    'group',
    { caller: 'another', group: 'one' },
    'the callers of this client, customer or address together have',
  ],
  ['process', { caller: 'one', group: 'another' }, 'all callers together have'],
])(
  'who waits in vain is told that the seats of the %s are taken, and so is the operator, with the wait',
  async (full, requester, message) => {
    using time = stillTime();
    const told: (Full | number)[] = [];
    const enter = admitting({
      perCaller: 64,
      queue: 1,
      onWaited: (milliseconds) => told.push(milliseconds),
      onRefused: (_group, what) => told.push(what),
    });
    const ended = Promise.withResolvers<string>();
    const enterAs = (one: object) => {
      const identity = { requester: one, credential: 'one', isStranger: false, isOverSocket: false };
      return enter('{ a }', () => ended.promise, {}, identity);
    };
    const hold = (count: number, one: object) => Array.from({ length: count }, () => enterAs(one));
    const held = hold(64, { caller: 'one', group: 'one' });
    // The group has 192 seats, and all have 256.
    if (full !== 'caller')
      for (const caller of ['two', 'three']) held.push(...hold(64, { caller, group: 'one' }));
    if (full === 'process') held.push(...hold(64, { caller: 'one', group: 'two' }));
    const waiting = enterAs(requester);
    await time.pass(60_000);
    expect(messageOf(await waiting)).toContain(`No seat became free in time: ${message} `);
    expect(told).toEqual([59_000, full]);
    ended.resolve('done');
    await Promise.all(held);
  },
);

it('the same query asked several times takes one place among those that wait, and is executed once', async () => {
  holdClock();
  await using gateway = await startGateway({
    webhooks: false,
    config: {
      upstreamCallsPerCaller: 1,
      operationsQueue: 1,
      upstreamTimeoutMs: 60_000,
      operationTimeoutMs: 60_000,
    },
  });
  const socket = await connect(gateway, `Bearer ${gateway.sandbox.accessToken}`);
  await inject(gateway.sandbox, { method: 'GET', path: '/v1/clients/*/accounts' }, 'hang', 1);
  socket.ask('holding', '{ client { accounts { totalCount } } }');
  const same = ['one', 'two', 'three'];
  for (const id of same) socket.ask(id, '{ banks { id } }');
  socket.ask('other', '{ client { id } }');
  await socket.end('other');
  // Its seat becomes free only now, however late the others came.
  socket.send({ type: 'complete', id: 'holding' });
  await Promise.all(same.map((id) => socket.end(id)));
  const codes = socket.got.flatMap(({ id, payload }) =>
    (payload?.errors ?? []).map((error: { extensions: { code: string } }) => [id, error.extensions.code]),
  );
  expect(codes).toEqual([['other', 'RATE_LIMITED']]);
  const calls = 'pasarela_upstream_request_duration_seconds_count';
  expect(await readMetric(gateway.url, calls, 'route="/v1/banks"')).toBe(1);
  await socket.close();
});
