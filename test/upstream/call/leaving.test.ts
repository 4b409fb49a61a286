import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { KnownCallers } from '../../../src/auth/known-callers.ts';
import { silentLogger } from '../../../src/common/logger.ts';
import type { Party } from '../../../src/common/party.ts';
import { leaverOf } from '../../../src/common/waiters.ts';
import { ACCOUNT_LIST } from '../../../src/upstream/accounts.ts';
import type { RestOptions } from '../../../src/upstream/call/rest.ts';
import { SharedWork } from '../../../src/upstream/call/shared-work.ts';
import { createClientLists } from '../../../src/upstream/lists/client-lists.ts';
import { createPlacedLoader } from '../../../src/upstream/lists/placed-list.ts';
import { ListReader } from '../../../src/upstream/lists/reader.ts';
import { HTTP, json, startUpstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';

const ROUTE = '/v1/clients/{clientId}/accounts';
const requesterOf = (caller: string) => ({ caller, group: caller });

it('one who leaves while a repeat is waited for waits no longer, and nothing more is sent', async () => {
  await using upstream = await startUpstream(
    (_request, response) => response.writeHead(429, { 'retry-after': '25' }).end(),
    { operationTimeoutMs: 20_000 },
  );
  const left = new AbortController();
  const calls: unknown[] = [];
  const rest = upstream.restOf({
    leaver: leaverOf(left.signal),
    deadline: Date.now() + 3_600_000,
    onCall: (call) => calls.push(call),
  });
  const read = rest.get(ROUTE);
  await until(() => upstream.requests.length === 1);
  // The answer has been read once its connection serves another.
  await upstream.rest.get('/v1/banks').catch(() => undefined);
  left.abort();
  await expect(read).rejects.toMatchObject({ name: 'UpstreamError' });
  expect(upstream.requests).toEqual([expect.stringContaining('/accounts'), 'GET /v1/banks']);
  // Nor is a call counted that was not made.
  expect(calls).toHaveLength(1);
});

it('a change is waited for no longer once its signal says so', async () => {
  await using upstream = await startUpstream(() => undefined);
  const left = new AbortController();
  const change = upstream.rest.send('POST', ROUTE, { body: '{}', signal: left.signal });
  await until(() => upstream.requests.length === 1);
  left.abort();
  expect(await change).toMatchObject({
    kind: 'failed',
    error: { code: 'UPSTREAM_UNAVAILABLE', dispatched: true },
  });
});

it('a call without an answer says whether the service is the reason', async () => {
  await using upstream = await startUpstream((request, response) => {
    if (request.url !== '/busy') response.destroy();
  });
  const dropped: [string, string | undefined][] = [];
  const left = new AbortController();
  const restOf = (options: Partial<RestOptions> = {}) =>
    upstream.restOf({ onCall: (call) => dropped.push([call.path, call.dropped]), ...options });
  await restOf().send('POST', '/fails');
  // It has its operation's time, which is less than the service's own.
  const cut = await restOf({ deadline: Date.now() + 6_000 }).send('POST', '/busy');
  expect(cut).toMatchObject({
    error: {
      code: 'UPSTREAM_TIMEOUT',
      dispatched: true,
      message: expect.stringContaining('of the operation'),
    },
  });
  const busy = Array.from({ length: HTTP.callsPerCaller }, (_, index) =>
    restOf(index === 0 ? { leaver: leaverOf(left.signal) } : { deadline: Date.now() + 3_600_000 }).get(
      '/busy',
    ),
  );
  await until(() => upstream.requests.length === 2 + busy.length);
  await restOf({ deadline: Date.now() + 20 }).send('POST', '/late');
  const gone = new AbortController();
  const waiting = restOf({ leaver: leaverOf(gone.signal) }).get('/gone');
  gone.abort();
  await expect(waiting).rejects.toMatchObject({ dispatched: false });
  left.abort();
  await expect(busy[0]).rejects.toMatchObject({ dispatched: true });
  for (let failures = 0; failures < 20; failures += 1) {
    upstream.breaker.admit('reads', 'caller')?.end('failed');
  }
  await restOf().send('POST', '/suspended');
  expect(dropped).toEqual([
    ['/fails', undefined],
    ['/busy', 'given_up'],
    ['/late', 'unsent'],
    ['/gone', 'unsent'],
    ['/busy', 'given_up'],
    ['/suspended', 'unsent'],
  ]);
  await upstream.http.close();
  await Promise.allSettled(busy);
});

it('one who has its answer is not listened to any more', async () => {
  await using upstream = await startUpstream((_request, response) => json(response, {}));
  const left = new AbortController();
  const rest = upstream.restOf({ leaver: leaverOf(left.signal) });
  await rest.get(ROUTE);
  await rest.send('POST', ROUTE, { body: '{}', signal: left.signal });
  expect(getEventListeners(left.signal, 'abort')).toEqual([]);
});

it('one who leaves while its call waits for its turn is never sent, and keeps nobody waiting', async () => {
  const held: ServerResponse[] = [];
  await using upstream = await startUpstream((_request, response) => held.push(response));
  const busy = Array.from({ length: HTTP.callsPerCaller }, () => upstream.rest.get(ROUTE));
  await until(() => held.length === busy.length);
  const left = new AbortController();
  const gone = upstream.restOf({ leaver: leaverOf(left.signal) }).get('/v1/gone');
  const next = upstream.rest.get('/v1/next');
  left.abort();
  await expect(gone).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', dispatched: false });
  for (const response of held.splice(0)) json(response, {});
  await until(() => held.length === 1);
  for (const response of held) json(response, {});
  await Promise.all([next, ...busy]);
  expect(upstream.requests).not.toContain('GET /v1/gone');
});

it('a walk over a list goes on in the place of one who joins, where the one who began it has none', async () => {
  const held: ServerResponse[] = [];
  const items = Array.from({ length: 300 }, (_, index) => ({ id: `account-${index}` }));
  await using upstream = await startUpstream((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    const [page, perPage] = [
      Number(query.get('page') ?? 1),
      Math.min(100, Number(query.get('per_page') ?? 50)),
    ];
    const data = items.slice((page - 1) * perPage, page * perPage);
    if (request.url?.startsWith('/held') === true) held.push(response);
    else json(response, { data, currentPage: page, perPage, totalItem: items.length });
  });
  const lists = createClientLists({
    maxAgeMs: 5_000,
    now: () => 0,
    logger: silentLogger,
    onOutdated: () => undefined,
  });
  const ask = (caller: string, id: string) => {
    const rest = upstream.restOf({
      requester: requesterOf(caller),
      urgency: caller === 'slow' ? 'streams' : 'operations',
    });
    return {
      reader: new ListReader(rest, ACCOUNT_LIST, lists.paging(ACCOUNT_LIST)),
      found: () => createPlacedLoader(rest, ACCOUNT_LIST, { lists }).find('id', id),
    };
  };
  const [slow, quick] = [ask('slow', 'account-7'), ask('quick', 'account-250')];
  // What the list is like is known, and where its items stand is not.
  await slow.found();
  const places = lists.of(slow.reader.rest.clientId, ACCOUNT_LIST, '');
  places.markChanged();
  const busy = Array.from({ length: HTTP.callsPerCaller }, () => slow.reader.rest.get('/held'));
  await until(() => held.length === busy.length);
  const walked = places.walk(slow.reader);
  await places.walk(quick.reader);
  await walked;
  expect(held).toHaveLength(busy.length);
  for (const response of held) json(response, {});
  await Promise.all(busy);
});

it.each(['done', 'over by a failure'])(
  'kept work waits for nothing more once it is %s: what it has begun besides is given up',
  async (end) => {
    const work = new SharedWork<string>();
    let waiting: Party | undefined;
    work.keep({ requester: requesterOf('caller'), urgency: 'streams', deadline: Date.now() + 60_000 });
    work.begin(async (party) => {
      waiting = party;
      expect(party.isGone).toBe(false);
      if (end !== 'done') throw new Error(end);
      return end;
    });
    expect(await work.result.catch(({ message }: Error) => message)).toBe(end);
    expect(waiting?.isGone).toBe(true);
  },
);

it('one who has left before waiting is told so, and keeps no work going', async () => {
  const work = new SharedWork<string>();
  const left = new AbortController();
  left.abort();
  const asker = {
    requester: requesterOf('caller'),
    urgency: 'streams',
    deadline: Date.now() + 60_000,
  } as const;
  const waiting = work.wait({ ...asker, leaver: leaverOf(left.signal) }, 'took too long');
  await expect(waiting).rejects.toMatchObject({ name: 'UpstreamError', code: 'UPSTREAM_UNAVAILABLE' });
  let party: Party | undefined;
  work.begin(async (joined) => {
    party = joined;
    return 'done';
  });
  expect(party?.isGone).toBe(true);
});

it('who asks whom a token stands for may leave: it is found out for the others, and given up with the last', async () => {
  const callers = new KnownCallers();
  const asked: { readonly party: Party; readonly answer: PromiseWithResolvers<never> }[] = [];
  const ask = (signal: AbortSignal) =>
    callers.find(
      'token',
      (party) => {
        const answer = Promise.withResolvers<never>();
        asked.push({ party, answer });
        return answer.promise;
      },
      false,
      {
        requester: requesterOf('address'),
        urgency: 'operations',
        deadline: Date.now() + 60_000,
        leaver: leaverOf(signal),
      },
    );
  for (let round = 1; round <= 2; round += 1) {
    const leaving = [new AbortController(), new AbortController()];
    const waiting = leaving.map(({ signal }) => Promise.resolve(ask(signal)).catch(() => 'gone'));
    expect(asked).toHaveLength(round);
    leaving[0]?.abort();
    expect(await waiting[0]).toBe('gone');
    expect(asked.at(-1)?.party.isGone).toBe(false);
    leaving[1]?.abort();
    expect(await waiting[1]).toBe('gone');
    expect(asked.at(-1)?.party.isGone).toBe(true);
  }
});
