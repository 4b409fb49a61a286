import { afterEach, expect, it } from 'vitest';
import { Party } from '../../src/common/party.ts';
import { Waiters } from '../../src/common/waiters.ts';
import { Budget } from '../../src/operation/budget.ts';
import { Calls, type RestWays } from '../../src/operation/calls.ts';
import { Report } from '../../src/operation/report.ts';
import { fixedCredential } from '../../src/upstream/call/credential.ts';
import type { CallRecord } from '../../src/upstream/call/rest.ts';
import { SharedWork } from '../../src/upstream/call/shared-work.ts';
import { CLIENT_ID, json, startUpstream, type Upstream } from '../helpers/http-stub.ts';
import { stillTime } from '../helpers/still-time.ts';
import { until } from '../helpers/until.ts';

const REQUESTER = { caller: 'alma', group: 'alma' };

let upstream: Upstream;
afterEach(() => upstream[Symbol.asyncDispose]());

/** The calls of an operation that has so long, and what is told of them. */
function operation(operationTimeoutMs = 20_000) {
  const counted: CallRecord[] = [];
  const report = new Report();
  const budget = new Budget({ operationTimeoutMs, maxItems: 1 }, { waiters: undefined }, () => undefined);
  const calls = new Calls(
    { http: upstream.http, upstreamTimeoutMs: 5_000, onCall: (call) => counted.push(call) },
    'request-1',
    'streams',
    budget,
    report,
  );
  const rest = (ways: RestWays = {}) =>
    calls.rest(CLIENT_ID, REQUESTER, fixedCredential({ authorization: 'Bearer t' }), ways);
  return { rest, counted, report };
}

it('carry the id of the operation and the credential of its caller', async () => {
  const seen: unknown[] = [];
  upstream = await startUpstream(({ headers }, response) => {
    seen.push([headers['x-request-id'], headers.authorization]);
    json(response, {});
  });
  const { rest, counted, report } = operation();
  await rest().get('/v1/x');
  expect(seen).toEqual([['request-1', 'Bearer t']]);
  expect(counted).toHaveLength(1);
  expect(report.calls).toEqual(counted);
});

it('are reported and not counted where an answer of before served', async () => {
  upstream = await startUpstream((_request, response) => json(response, {}));
  const { rest, counted, report } = operation();
  rest().served('/v1/banks');
  expect(report.calls).toMatchObject([{ route: '/v1/banks', cached: true }]);
  expect(counted).toEqual([]);
});

it('end when their caller leaves', async () => {
  upstream = await startUpstream(() => undefined);
  const leaver = new Waiters();
  const { rest } = operation();
  const read = rest({ leaver }).get('/v1/x');
  const end = expect(read).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
  await until(() => upstream.requests.length === 1);
  leaver.remove();
  await end;
});

it('are not sent once the time of the operation is over', async () => {
  upstream = await startUpstream((_request, response) => json(response, {}));
  const { rest } = operation(0);
  await expect(rest().get('/v1/x')).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT', dispatched: false });
  expect(upstream.requests).toEqual([]);
});

it('are as pressing as the operation, or as is said of them', async () => {
  upstream = await startUpstream((_request, response) => json(response, {}));
  const urgencies: unknown[] = [];
  const { rest } = operation();
  const coalesce: RestWays['coalesce'] = async (_call, asker) => {
    urgencies.push(asker.urgency);
    return { body: {}, bytes: 2, waits: { queuedMs: 0, unreadMs: 0 } };
  };
  await rest({ coalesce }).get('/v1/x');
  await rest({ coalesce, urgency: 'money' }).get('/v1/x');
  expect(urgencies).toEqual(['streams', 'money']);
});

it('keep work going that nobody waits for no more pressing than streams, and so long', async () => {
  using time = stillTime();
  upstream = await startUpstream((_request, response) => json(response, {}));
  const kept: unknown[] = [];
  const { rest } = operation();
  rest({ urgency: 'money' }).keep({ keep: (waiter) => kept.push(waiter) }, 5_000);
  expect(kept).toEqual([{ requester: REQUESTER, urgency: 'streams', deadline: Date.now() + 5_000 }]);
  await time.pass(0);
});

it('that outlive the operation are counted, and not reported with it', async () => {
  upstream = await startUpstream((_request, response) => json(response, {}));
  const { rest, counted, report } = operation();
  const party = new Party({ requester: REQUESTER, urgency: 'streams', deadline: Date.now() + 5_000 });
  await rest().sharedBy(party, true).get('/v1/x');
  expect([counted.length, report.calls.length]).toEqual([1, 1]);
  await rest().sharedBy(party, false).get('/v1/y');
  expect([counted.length, report.calls.length]).toEqual([2, 1]);
});

it('of work that others may join are made themselves: none is given what another read has got', async () => {
  upstream = await startUpstream((_request, response) => json(response, { read: true }));
  const { rest } = operation();
  const coalesce: RestWays['coalesce'] = async () => ({
    body: { kept: true },
    bytes: 1,
    waits: { queuedMs: 0, unreadMs: 0 },
  });
  const party = new Party({ requester: REQUESTER, urgency: 'streams', deadline: Date.now() + 5_000 });
  expect(await rest({ coalesce }).get('/v1/x')).toEqual({ kept: true });
  expect(await rest({ coalesce }).sharedBy(party, true).get('/v1/x')).toEqual({ read: true });
});

it('of work that others may join go on, and wait for other work, though who began it has left', async () => {
  upstream = await startUpstream((_request, response) => json(response, { read: true }));
  const leaver = new Waiters();
  const { rest } = operation();
  const party = new Party({ requester: REQUESTER, urgency: 'streams', deadline: Date.now() + 5_000 });
  const shared = rest({ leaver }).sharedBy(party, true);
  leaver.remove();
  expect(await shared.get('/v1/x')).toEqual({ read: true });
  const other = new SharedWork<string>();
  const found = shared.within(other, 'too late');
  other.begin(async () => 'found');
  expect(await found).toBe('found');
});
