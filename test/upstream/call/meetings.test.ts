import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { Party, type PartyWatcher } from '../../../src/common/party.ts';
import { Turns, type Urgency } from '../../../src/common/turns.ts';
import { createBreaker } from '../../../src/upstream/call/breaker.ts';
import { createHttp, type HttpOptions } from '../../../src/upstream/call/http.ts';
import { HTTP, json, startUpstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';

/** Enough failures in a row to suspend a caller's calls. */
const TO_OPEN = 20;

const partyOf = (caller = 'caller', group = caller, deadline = Date.now() + 600_000): Party =>
  new Party({ requester: { caller, group }, urgency: 'operations', deadline });

const leave = (party: Party): void => {
  for (const waiter of party.waiters) party.leave(waiter);
};

/** Calls as the gateway makes them, with a breaker of their own, to a server that answers as the test says. */
async function start(
  answer: Parameters<typeof startUpstream>[0],
  options: Partial<HttpOptions> = {},
  now: () => number = () => performance.now(),
) {
  const upstream = await startUpstream(answer);
  const breaker = createBreaker(now);
  const http = createHttp(upstream.url, breaker, { ...HTTP, ...options });
  type Call = Parameters<typeof http.send>[0];
  return {
    breaker,
    requests: upstream.requests,
    close: () => http.close(),
    send: (party: Party, more: Partial<Call> = {}) =>
      http.send({ party, method: 'GET', path: '/', headers: {}, timeoutMs: 30_000, ...more }),
    async [Symbol.asyncDispose]() {
      await http.close();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

/** Lets the answers wait for their turns until the test lets them go on. */
class HeldTurns extends Turns {
  readonly asked: { readonly urgency: Urgency; readonly key: unknown }[] = [];
  #held: PromiseWithResolvers<void> | undefined;

  hold(): void {
    this.#held = Promise.withResolvers();
  }

  release(): void {
    this.#held?.resolve();
    this.#held = undefined;
  }

  override turn(urgency: Urgency, key: unknown): Promise<void> | undefined {
    this.asked.push({ urgency, key });
    return this.#held?.promise;
  }
}

describe('the breaker and the calls', () => {
  it('take all that stand for one client for one caller', async () => {
    await using service = await start((_request, response) => json(response, {}, 503));
    for (let call = 0; call < TO_OPEN; call += 1) await service.send(partyOf(`person ${call}`, 'client'));
    const suspended = await service.send(partyOf('another person', 'client'));
    expect(suspended).toMatchObject({ kind: 'failed', error: { dispatched: false } });
    expect(await service.send(partyOf('a person', 'another client'))).toMatchObject({ status: 503 });
  });

  it('count the failures of a client together, whatever its customers’ shares of the calls', async () => {
    await using service = await start((_request, response) => json(response, {}, 503));
    const of = (customer: string, failureDomain: string) =>
      new Party({
        requester: { caller: customer, group: customer, failureDomain },
        urgency: 'operations',
        deadline: Date.now() + 600_000,
      });
    for (let call = 0; call < TO_OPEN; call += 1) await service.send(of(`customer ${call}`, 'client'));
    expect(await service.send(of('another customer', 'client'))).toMatchObject({
      kind: 'failed',
      error: { dispatched: false },
    });
    // Of twenty clients everybody would be suspended.
    expect(await service.send(of('a customer', 'another client'))).toMatchObject({ status: 503 });
  });

  it('have a suspended call wait for no seat, and say when it may be made', async () => {
    await using service = await start(
      (request, response) => request.url === '/hangs' || json(response, {}, 503),
      { callsPerCaller: 1 },
      () => 0,
    );
    const hangs = partyOf('caller', 'client');
    void service.send(hangs, { path: '/hangs' });
    await until(() => service.requests.includes('GET /hangs'));
    for (let call = 0; call < TO_OPEN; call += 1) await service.send(partyOf('another', 'client'));
    // Its caller's only seat is taken, and stays so.
    expect(await service.send(partyOf('caller', 'client'))).toMatchObject({
      kind: 'failed',
      error: { dispatched: false, code: 'UPSTREAM_UNAVAILABLE', retryAfterMs: 2_000 },
    });
    leave(hangs);
  });

  describe('after an outage', () => {
    /** A service that has been away, whose first answer afterwards comes when the test lets it. */
    async function back(more: object = {}, options: Partial<HttpOptions> = {}) {
      let now = 0;
      let held: ServerResponse | undefined;
      let isBack = false;
      const service = await start(
        (_request, response) => {
          if (!isBack) return json(response, {}, 503);
          if (held === undefined) held = response;
          else json(response, {});
        },
        options,
        () => now,
      );
      for (let call = 0; call < TO_OPEN; call += 1) await service.send(partyOf(), more);
      now += 2_000;
      isBack = true;
      const sent = service.requests.length + 1;
      const party = partyOf();
      const tried = service.send(party, more);
      await until(() => held !== undefined);
      return {
        service,
        tried,
        leaveTrial: () => leave(party),
        /** How many calls the service has got since it is back. */
        got: () => service.requests.length - sent + 1,
        answer: (status: number) => held && json(held, {}, status),
      };
    }

    it('have the other reads of an operation wait for the one that tries', async () => {
      const { service, tried, got, answer } = await back();
      await using _service = service;
      const others = [service.send(partyOf()), service.send(partyOf())];
      expect(got()).toBe(1);
      answer(200);
      for (const one of [tried, ...others]) expect(await one).toMatchObject({ status: 200 });
      expect(got()).toBe(3);
    });

    it('have reads beyond the seats of their caller wait for it as well', async () => {
      const { service, tried, got, answer } = await back({}, { callsPerCaller: 2 });
      await using _service = service;
      const others = Array.from({ length: 6 }, () => service.send(partyOf()));
      // It waits for nothing with a time of its own that is over.
      const late = partyOf('caller', 'caller', Date.now());
      expect(await service.send(late)).toMatchObject({ kind: 'failed', error: { dispatched: false } });
      expect(got()).toBe(1);
      answer(200);
      for (const one of [tried, ...others]) expect(await one).toMatchObject({ status: 200 });
      expect(got()).toBe(7);
    });

    it('make none of the reads beyond the seats where it fails, or where it takes long', async () => {
      const { service, tried, got, answer } = await back({}, { callsPerCaller: 1 });
      await using _service = service;
      const suspended = { kind: 'failed', error: { dispatched: false, retryAfterMs: 2_000 } };
      expect(await service.send(partyOf())).toMatchObject(suspended);
      const others = [service.send(partyOf()), service.send(partyOf())];
      const leaver = partyOf();
      const left = service.send(leaver);
      leave(leaver);
      answer(503);
      expect(await tried).toMatchObject({ status: 503 });
      for (const one of others) expect(await one).toMatchObject(suspended);
      expect(await left).toMatchObject({ kind: 'failed', error: { dispatched: false } });
      expect(got()).toBe(1);
    });

    it('make none of those that waited where it fails, or where it takes long', async () => {
      const { service, tried, got, answer } = await back();
      await using _service = service;
      const suspended = { kind: 'failed', error: { dispatched: false, retryAfterMs: 2_000 } };
      // Nobody answers the one that tries meanwhile.
      expect(await service.send(partyOf())).toMatchObject(suspended);
      const other = service.send(partyOf());
      answer(503);
      expect(await tried).toMatchObject({ status: 503 });
      expect(await other).toMatchObject(suspended);
      expect(got()).toBe(1);
    });

    it('make none of those whose caller has left meanwhile', async () => {
      const { service, tried, got, answer } = await back();
      await using _service = service;
      const party = partyOf();
      const other = service.send(party);
      leave(party);
      answer(200);
      await tried;
      expect(await other).toMatchObject({ kind: 'failed', error: { dispatched: false } });
      expect(got()).toBe(1);
    });

    it('have one of those that waited try where the one that tried was left', async () => {
      const { service, leaveTrial, got } = await back();
      await using _service = service;
      const others = [service.send(partyOf()), service.send(partyOf())];
      leaveTrial();
      for (const one of others) expect(await one).toMatchObject({ status: 200 });
      expect(got()).toBe(3);
    });

    it('have no call that moves money wait', async () => {
      const payment = { over: 'money', method: 'POST' } as const;
      const { service, tried, got, answer } = await back(payment);
      await using _service = service;
      const other = service.send(partyOf(), payment);
      answer(200);
      expect(await tried).toMatchObject({ status: 200 });
      expect(await other).toMatchObject({ kind: 'failed', error: { dispatched: false } });
      expect(got()).toBe(1);
    });
  });

  it('refuse no payment where reads fail, nor a credential that is tried', async () => {
    await using service = await start((_request, response) => json(response, {}, 503));
    for (let call = 0; call < TO_OPEN; call += 1) await service.send(partyOf());
    expect(await service.send(partyOf())).toMatchObject({ kind: 'failed' });
    for (const over of ['money', 'probes'] as const)
      expect(await service.send(partyOf(), { over })).toMatchObject({ kind: 'answered', status: 503 });
  });

  it('take a 500 for an answer, however often it comes', async () => {
    await using service = await start((_request, response) => json(response, {}, 500));
    for (let call = 0; call < TO_OPEN + 5; call += 1) {
      expect(await service.send(partyOf())).toMatchObject({ kind: 'answered', status: 500 });
    }
    expect(service.breaker.isOpen()).toBe(false);
  });

  it('believe an answer that has come, though nobody waits for it any more', async () => {
    let now = 0;
    let status = 503;
    const turns = new HeldTurns(() => 0);
    await using service = await start(
      (_request, response) => json(response, {}, status),
      { turns },
      () => now,
    );
    for (let call = 0; call < TO_OPEN; call += 1) await service.send(partyOf());
    expect(service.breaker.isOpen()).toBe(true);
    now += 2_000;
    status = 200;
    turns.hold();
    const [party, seen] = [partyOf(), turns.asked.length];
    const tried = service.send(party);
    await until(() => turns.asked.length > seen);
    leave(party);
    turns.release();
    expect(await tried).toMatchObject({ kind: 'answered', status: 200 });
    expect(service.breaker.isOpen()).toBe(false);
  });
});

it('answers take their turns as one client’s, however many stand for it', async () => {
  const turns = new HeldTurns(() => 0);
  await using service = await start((_request, response) => json(response, {}), { turns });
  for (const person of ['one', 'another']) await service.send(partyOf(person, 'client'));
  expect(turns.asked.map(({ key }) => key)).toEqual(['client', 'client']);
});

describe('those who wait for a call', () => {
  it('have it sent for as long as one of them is there', async () => {
    const held: ServerResponse[] = [];
    await using service = await start((_request, response) => held.push(response));
    const party = partyOf();
    const other = party.join({
      requester: { caller: 'other', group: 'other' },
      urgency: 'operations',
      deadline: 0,
    });
    const made = service.send(party);
    const response = await until(() => held[0]);
    party.leave(other);
    json(response, {});
    expect(await made).toMatchObject({ kind: 'answered', status: 200 });
  });

  it('are heard no more once it has its answer, or has failed', async () => {
    /** Tells who listens. */
    class Heard extends Party {
      readonly listening = new Set<PartyWatcher>();
      override watch(watcher: PartyWatcher): () => void {
        this.listening.add(watcher);
        const end = super.watch(watcher);
        return () => {
          this.listening.delete(watcher);
          end();
        };
      }
    }
    await using service = await start((request, response) => {
      if (request.url === '/broken') request.socket.destroy();
      else json(response, {});
    });
    const [waiter] = partyOf().waiters;
    const party = new Heard(waiter);
    await service.send(party);
    await service.send(party, { path: '/broken' });
    await service.send(party, { timeoutMs: 0 });
    expect(party.listening.size).toBe(0);
  });

  it('end its connection where they leave, or its time is over', async () => {
    const ended: (string | undefined)[] = [];
    const held: ServerResponse[] = [];
    await using service = await start(({ url }, response) => {
      if (url === '/other') {
        json(response, {});
        return;
      }
      held.push(response);
      response.once('close', () => ended.push(url));
    });
    // What is open still, where this fails, would be waited for.
    using _ = { [Symbol.dispose]: () => held.forEach((response) => void response.destroy()) };
    const endsSoon = async (path: string) => {
      for (let call = 0; call < 20 && !ended.includes(path); call += 1)
        await service.send(partyOf(), { path: '/other' });
      expect(ended).toContain(path);
    };
    const party = partyOf();
    const left = service.send(party, { path: '/left' });
    await until(() => held.length === 1);
    leave(party);
    expect(await left).toMatchObject({ kind: 'failed', error: { dispatched: true } });
    await endsSoon('/left');
    const late = await service.send(partyOf(), { path: '/late', timeoutMs: 300 });
    expect(late).toMatchObject({ kind: 'failed', error: { code: 'UPSTREAM_TIMEOUT' } });
    await endsSoon('/late');
  });

  it('have nothing sent when they leave before there is a connection', async () => {
    await using service = await start((_request, response) => json(response, {}));
    const party = partyOf();
    const made = service.send(party, { method: 'POST', body: '{}', over: 'money' });
    leave(party);
    expect(await made).toMatchObject({ kind: 'failed', error: { dispatched: false } });
    // The connection has been made by then, and carries this one.
    expect(await service.send(partyOf(), { path: '/next', over: 'money' })).toMatchObject({ status: 200 });
    expect(service.requests).toEqual(['GET /next']);
  });

  it('have nothing sent when the last of them leaves in the very moment of its turn', async () => {
    const held: ServerResponse[] = [];
    const party = partyOf();
    let isLeft = false;
    await using service = await start((_request, response) => held.push(response), {
      callsPerCaller: 1,
      // It waits no more: its turn has come, and it goes on at the end of this step.
      onWaiting: (count) => {
        if (count === 0 && isLeft) leave(party);
      },
    });
    const busy = service.send(partyOf(), { over: 'money' });
    const response = await until(() => held[0]);
    const made = service.send(party, { method: 'POST', path: '/pay', body: '{}', over: 'money' });
    isLeft = true;
    json(response, {});
    expect(await made).toMatchObject({
      error: { code: 'UPSTREAM_UNAVAILABLE', dispatched: false },
    });
    await busy;
    expect(service.requests).toEqual(['GET /']);
  });
});

describe('connections of a kind', () => {
  it('read the answers to payments before all others', async () => {
    const turns = new HeldTurns(() => 0);
    await using service = await start((_request, response) => json(response, {}), { turns });
    await service.send(partyOf(), { over: 'money' });
    await service.send(partyOf());
    expect(turns.asked.map(({ urgency }) => urgency)).toEqual(['money', 'operations']);
  });

  it('are ended with those of the others', async () => {
    const held: ServerResponse[] = [];
    await using service = await start((_request, response) => held.push(response));
    const calls = (['reads', 'money', 'probes'] as const).map((over) => service.send(partyOf(), { over }));
    await until(() => held.length === 3);
    await service.close();
    for (const call of calls)
      expect(await call).toMatchObject({ kind: 'failed', error: { code: 'UPSTREAM_UNAVAILABLE' } });
  });

  it('have those that wait for one counted with those of the others', async () => {
    const held: ServerResponse[] = [];
    const counts: number[] = [];
    await using service = await start((_request, response) => held.push(response), {
      callsPerCaller: 1,
      onWaiting: (count) => counts.push(count),
    });
    const calls = (['reads', 'money'] as const).flatMap((over) =>
      [1, 2].map(() => service.send(partyOf(), { over })),
    );
    await until(() => held.length === 2);
    expect(counts).toEqual([1, 2]);
    for (const response of held.splice(0)) json(response, {});
    await until(() => held.length === 2);
    for (const response of held) json(response, {});
    await Promise.all(calls);
    expect(counts).toEqual([1, 2, 1, 0]);
  });

  it('carry 96 probes of one address at once, and leave some for the others', async () => {
    const held: ServerResponse[] = [];
    await using service = await start((_request, response) => held.push(response));
    const probes = Array.from({ length: 97 }, () => service.send(partyOf('address'), { over: 'probes' }));
    await until(() => held.length === 96);
    const other = service.send(partyOf('another address'), { over: 'probes', path: '/other' });
    await until(() => held.length === 97);
    expect(service.requests.at(-1)).toBe('GET /other');
    expect(held).toHaveLength(97);
    // The last of the first address comes once another of its own is over.
    for (const response of held.splice(0)) json(response, {});
    const last = await until(() => held[0]);
    json(last, {});
    await Promise.all([...probes, other]);
  });
});
