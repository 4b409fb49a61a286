import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { Party } from '../../../src/common/party.ts';
import { createBreaker, type ServiceSign } from '../../../src/upstream/call/breaker.ts';
import { HTTP, json, startUpstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';

const TO_OPEN = 20;

/** A breaker whose clock stands still until the test moves it. */
function startBreaker() {
  let now = 0;
  const told: string[] = [];
  const breaker = createBreaker(
    () => now,
    ({ kind, caller = 'everybody', isSuspended }) =>
      told.push(`${kind} of ${caller}: ${isSuspended ? 'suspended' : 'made'}`),
  );
  return {
    breaker,
    told,
    pass: (ms: number) => {
      now += ms;
    },
    admits: (caller: string) => breaker.admit('reads', caller) !== undefined,
    /** One call from beginning to end. */
    call: (caller: string, sign: ServiceSign) => breaker.admit('reads', caller)?.end(sign),
    fail(caller: string, times = TO_OPEN, sign: ServiceSign = 'failed') {
      for (let failure = 0; failure < times; failure += 1) this.call(caller, sign);
    },
  };
}

describe('the circuit breaker', () => {
  it('opens after 20 failures in a row and lets one call through two seconds later', () => {
    const { breaker, admits, pass, ...calls } = startBreaker();
    for (let failure = 0; failure < TO_OPEN; failure += 1) {
      expect(breaker.isOpen()).toBe(false);
      calls.call('one', 'failed');
    }
    expect(breaker.isOpen()).toBe(true);
    expect(admits('one')).toBe(false);
    pass(2_000);
    const probe = breaker.admit('reads', 'one');
    expect(probe).toBeDefined();
    expect(admits('one')).toBe(false);
    probe?.end('failed');
    expect(admits('one')).toBe(false);
    pass(2_000);
    breaker.admit('reads', 'one')?.end('answered');
    expect(breaker.isOpen()).toBe(false);
    expect(admits('one')).toBe(true);
  });

  it('says how long calls are suspended: until the next try, and while one is made as long as after one that fails', () => {
    const { breaker, pass, ...calls } = startBreaker();
    const waitMs = () => breaker.waitMs('reads', 'one');
    expect(waitMs()).toBe(0);
    calls.fail('one');
    expect(waitMs()).toBe(2_000);
    pass(500);
    expect(waitMs()).toBe(1_500);
    expect(breaker.waitMs('reads', 'two')).toBe(0);
    expect(breaker.waitMs('money', 'one')).toBe(0);
    pass(1_500);
    expect(waitMs()).toBe(0);
    const tried = breaker.admit('reads', 'one');
    expect(waitMs()).toBe(2_000);
    tried?.end('answered');
    expect(waitMs()).toBe(0);
    calls.fail('two', TO_OPEN, 'unreachable');
    expect(waitMs()).toBe(2_000);
  });

  it('tells when calls begin to be suspended, and when they are made again, whose they are', () => {
    const { breaker, told, pass, ...calls } = startBreaker();
    calls.fail('one');
    expect([told, breaker.isOpen(), breaker.isOpenForAll()]).toEqual([
      ['reads of one: suspended'],
      true,
      false,
    ]);
    pass(2_000);
    calls.call('one', 'failed');
    calls.call('two', 'answered');
    expect(told.splice(0)).toEqual(['reads of one: suspended']);
    pass(2_000);
    calls.call('one', 'answered');
    expect(told.splice(0)).toEqual(['reads of one: made']);
    calls.fail('two', TO_OPEN, 'unreachable');
    expect([breaker.isOpen(), breaker.isOpenForAll()]).toEqual([true, true]);
    pass(2_000);
    calls.call('two', 'answered');
    expect(told).toEqual([
      'reads of everybody: suspended',
      'reads of two: suspended',
      'reads of everybody: made',
      'reads of two: made',
    ]);
  });

  it('is told of for half a minute after the last failure, where nobody calls, and again after the next', () => {
    const { breaker, pass, ...calls } = startBreaker();
    calls.fail('one');
    for (let round = 0; round < 2; round += 1) {
      pass(29_999);
      expect(breaker.isOpen()).toBe(true);
      pass(1);
      expect(breaker.isOpen()).toBe(false);
      calls.call('one', 'failed');
      expect(breaker.isOpen()).toBe(true);
    }
  });

  it('learns nothing while one call tries from those that began before it opened', () => {
    const { breaker, admits, pass, ...calls } = startBreaker();
    const late = breaker.admit('reads', 'one');
    calls.fail('one');
    pass(2_000);
    const probe = breaker.admit('reads', 'one');
    late?.end('failed');
    pass(2_000);
    expect(admits('one')).toBe(false);
    probe?.end('answered');
    expect(admits('one')).toBe(true);
  });

  it('forgets failures at the first success', () => {
    const { admits, call, ...calls } = startBreaker();
    for (let round = 0; round < 5; round += 1) {
      calls.fail.call({ call }, 'one', TO_OPEN - 1);
      call('one', 'answered');
    }
    expect(admits('one')).toBe(true);
  });

  it.each([
    ['its caller’s', 'one', 'failed'],
    ['everybody’s', 'another', 'unreachable'],
  ] as const)(
    'tries again when the one call of %s circuit that it let through has told nothing, twice',
    (_, next, outcome) => {
      const started = startBreaker();
      started.fail('one', TO_OPEN, outcome);
      expect(started.admits(next)).toBe(false);
      started.pass(2_000);
      for (let round = 0; round < 2; round += 1) {
        const probe = started.breaker.admit('reads', next);
        expect(probe).toBeDefined();
        expect(started.admits(next)).toBe(false);
        probe?.end(undefined);
      }
      expect(started.breaker.admit('reads', next)).toBeDefined();
    },
  );

  it('goes on trying when the service that could not be reached is reached, and fails', () => {
    const started = startBreaker();
    started.fail('one', TO_OPEN, 'unreachable');
    started.pass(2_000);
    started.call('another', 'failed');
    const next = started.breaker.admit('reads', 'a third');
    expect(next).toBeDefined();
    next?.end('answered');
    expect(started.admits('another')).toBe(true);
  });

  it('lets no second call through when one ends that had begun before it opened', () => {
    const started = startBreaker();
    const older = [started.breaker.admit('reads', 'one'), started.breaker.admit('reads', 'one')];
    started.fail('one');
    started.pass(2_000);
    expect(started.admits('one')).toBe(true);
    older[0]?.end(undefined);
    older[1]?.end('failed');
    expect(started.admits('one')).toBe(false);
  });

  it('is not put off by calls that had begun before it opened and fail later', () => {
    const started = startBreaker();
    const older = started.breaker.admit('reads', 'one');
    started.fail('one');
    started.pass(1_900);
    older?.end('failed');
    started.pass(100);
    expect(started.admits('one')).toBe(true);
  });

  it('counts callers together only as long as nobody is answered', () => {
    const started = startBreaker();
    for (const caller of ['one', 'two']) started.call(caller, 'failed');
    started.call('three', 'answered');
    started.fail('four');
    expect(started.admits('four')).toBe(false);
    expect(started.admits('three')).toBe(true);
  });

  it('lets another caller try where the one who would is suspended for itself', () => {
    const started = startBreaker();
    const older = Array.from({ length: TO_OPEN }, () => started.breaker.admit('reads', 'one'));
    started.fail('two', TO_OPEN, 'unreachable');
    started.pass(1_500);
    for (const permit of older) permit?.end('failed');
    started.pass(500);
    // Everybody's time is over, that of its own is not.
    expect(started.admits('one')).toBe(false);
    expect(started.admits('two')).toBe(true);
  });

  it('suspends nobody but the caller whose calls fail', () => {
    const started = startBreaker();
    started.fail('one', 100);
    expect(started.admits('one')).toBe(false);
    expect(started.admits('another')).toBe(true);
  });

  it('suspends no calls of another kind', () => {
    const { breaker, ...started } = startBreaker();
    for (const caller of ['one', 'two', 'three', 'four']) started.fail.call({ call: started.call }, caller);
    expect(started.admits('five')).toBe(false);
    for (const caller of ['one', 'five']) {
      expect(breaker.admit('money', caller)).toBeDefined();
      expect(breaker.admit('probes', caller)).toBeDefined();
    }
  });

  it('suspends everybody once the calls of several callers fail, and nobody else’s succeed', () => {
    const started = startBreaker();
    for (let failure = 0; failure < 24; failure += 1) started.call(`caller ${failure % 4}`, 'failed');
    expect(started.admits('a caller that has not called yet')).toBe(false);
  });

  it('suspends everybody once the service cannot be reached, whoever tried', () => {
    const started = startBreaker();
    started.fail('one', TO_OPEN, 'unreachable');
    expect(started.admits('another')).toBe(false);
  });
});

describe('calls that say nothing of the service', () => {
  const send = (upstream: Awaited<ReturnType<typeof startUpstream>>, caller: Party, timeoutMs = 30_000) =>
    upstream.http.send({ party: caller, method: 'GET', path: '/', headers: {}, timeoutMs });
  const party = (forMs = 60_000, caller = 'caller'): Party =>
    new Party({
      requester: { caller, group: caller },
      urgency: 'operations',
      deadline: Date.now() + forMs,
    });

  it('open nothing when their answers are too long, however many', async () => {
    await using upstream = await startUpstream((_request, response) => {
      response.end(Buffer.alloc(HTTP.maxAnswerBytes + 1, 'x'));
    });
    for (let call = 0; call < TO_OPEN + 5; call += 1) {
      expect(await send(upstream, party())).toMatchObject({
        kind: 'failed',
        error: { code: 'UPSTREAM_INVALID', message: expect.stringContaining('UPSTREAM_ANSWER_BYTES') },
      });
    }
  });

  it('open nothing when they cannot be sent, as one client’s API key holds a line break', async () => {
    await using upstream = await startUpstream((_request, response) => json(response, {}));
    const headers = { 'x-api-key': 'key\n' };
    for (let call = 0; call < TO_OPEN + 5; call += 1) {
      const made = upstream.http.send({
        party: party(),
        method: 'POST',
        path: '/',
        headers,
        timeoutMs: 30_000,
      });
      expect(await made).toMatchObject({
        kind: 'failed',
        error: { dispatched: false, message: expect.stringContaining('holds a line break') },
      });
    }
    expect(upstream.breaker.isOpen()).toBe(false);
    expect(await send(upstream, party(60_000, 'another'))).toMatchObject({ kind: 'answered' });
  });

  it('open nothing when their operation had less time than the service is promised', async () => {
    let hangs = true;
    await using upstream = await startUpstream((_request, response) => {
      if (!hangs) json(response, {});
    });
    for (let round = 0; round < 4; round += 1) {
      const callers = Array.from({ length: 10 }, (_, index) => party(200, `caller ${index}`));
      const made = await Promise.all(callers.map((caller) => send(upstream, caller)));
      expect(made.map(({ kind }) => kind)).toEqual(callers.map(() => 'failed'));
    }
    expect(upstream.breaker.isOpen()).toBe(false);
    hangs = false;
    expect(await send(upstream, party())).toMatchObject({ kind: 'answered', status: 200 });
  });

  it('open it when the service had all of its time', async () => {
    await using upstream = await startUpstream(() => {});
    await Promise.all(Array.from({ length: 16 }, () => send(upstream, party(), 50)));
    await Promise.all(Array.from({ length: 16 }, () => send(upstream, party(), 50)));
    expect(upstream.breaker.isOpen()).toBe(true);
  });

  it('open nothing when their callers have left', async () => {
    const held: ServerResponse[] = [];
    await using upstream = await startUpstream((_request, response) => held.push(response));
    for (let call = 0; call < TO_OPEN + 5; call += 1) {
      const caller = party();
      const made = send(upstream, caller);
      await until(() => held.length > call);
      for (const waiter of caller.waiters) caller.leave(waiter);
      expect(await made).toMatchObject({ kind: 'failed', error: { dispatched: true } });
    }
    expect(upstream.breaker.isOpen()).toBe(false);
  });

  it('keep nobody from trying when the one that tries whether the service is back is left by its caller, twice', async () => {
    const held: ServerResponse[] = [];
    let status: number | undefined = 503;
    await using upstream = await startUpstream((_request, response) => {
      if (status === undefined) held.push(response);
      else json(response, {}, status);
    });
    for (let call = 0; call < TO_OPEN; call += 1) await send(upstream, party());
    status = undefined;
    for (let round = 0; round < 2; round += 1) {
      const caller = await until(async () => {
        const own = party();
        const made = send(upstream, own);
        const first = await Promise.race([made, until(() => held.length > round)]);
        if (first !== true) return undefined;
        return { own, made };
      });
      expect(await send(upstream, party())).toMatchObject({
        error: { name: 'UpstreamError', dispatched: false },
      });
      for (const waiter of caller.own.waiters) caller.own.leave(waiter);
      expect(await caller.made).toMatchObject({ kind: 'failed' });
    }
    status = 200;
    expect(await send(upstream, party())).toMatchObject({ kind: 'answered', status: 200 });
    expect(upstream.breaker.isOpen()).toBe(false);
  });
});

it('what a payment reads first suspends no payment where it fails, and hides no payment that fails', async () => {
  const failing = new Set(['GET']);
  await using upstream = await startUpstream(({ method = '' }, response) =>
    json(response, {}, failing.has(method) ? 503 : 201),
  );
  const send = (method: 'GET' | 'POST') =>
    upstream.http.send({
      ...{ method, path: '/', headers: {}, over: 'money', timeoutMs: 30_000 },
      party: new Party({
        requester: { caller: 'caller', group: 'caller' },
        urgency: 'money',
        deadline: Date.now() + 60_000,
      }),
    });
  const SUSPENDED = { error: { name: 'UpstreamError', dispatched: false } };
  for (let call = 0; call < TO_OPEN; call += 1) expect(await send('GET')).toMatchObject({ status: 503 });
  expect(await send('GET')).toMatchObject(SUSPENDED);
  expect(await send('POST')).toMatchObject({ status: 201 });
  failing.clear();
  failing.add('POST');
  for (let call = 0; call < TO_OPEN; call += 1) {
    expect(await send('POST')).toMatchObject({ status: 503 });
    // It is answered, or it is still suspended: neither says anything of payments.
    await send('GET');
  }
  expect(await send('POST')).toMatchObject(SUSPENDED);
});
