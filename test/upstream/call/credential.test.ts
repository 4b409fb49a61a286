import { expect, it } from 'vitest';
import { Party } from '../../../src/common/party.ts';
import { leaverOf } from '../../../src/common/waiters.ts';
import { type AuthHeaders, underCredential } from '../../../src/upstream/call/credential.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';
import { stillTime } from '../../helpers/still-time.ts';

const ROUTE = '/v1/clients/{clientId}/accounts';

it('a call waits for a renewal until its own deadline, and the renewal goes on for others', async () => {
  await using upstream = await startUpstream((_request, response) => json(response, { ok: true }));
  const renewal = Promise.withResolvers<AuthHeaders>();
  const authorize = () => renewal.promise;
  const late = upstream.restOf({ authorize, deadline: Date.now() + 50 });
  const inTime = upstream.restOf({ authorize }).get(ROUTE);
  await expect(late.get(ROUTE)).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT', dispatched: false });
  expect(upstream.requests).toEqual([]);
  renewal.resolve({ authorization: 'Bearer new' });
  expect(await inTime).toEqual({ ok: true });
  expect(upstream.requests).toHaveLength(1);
});

it('a change waits for a renewal until its own deadline, and is not sent after it', async () => {
  await using upstream = await startUpstream((_request, response) => json(response, {}));
  const renewal = Promise.withResolvers<AuthHeaders>();
  const rest = upstream.restOf({ authorize: () => renewal.promise, deadline: Date.now() + 50 });
  const attempt = await rest.send('POST', ROUTE, { body: '{}' });
  expect(attempt).toMatchObject({ kind: 'failed', error: { code: 'UPSTREAM_TIMEOUT', dispatched: false } });
  renewal.resolve({ authorization: 'Bearer new' });
  await renewal.promise;
  expect(upstream.requests).toEqual([]);
});

it('a call whose caller leaves waits for no renewal', async () => {
  await using upstream = await startUpstream((_request, response) => json(response, {}));
  const leaving = new AbortController();
  const renewal = Promise.withResolvers<AuthHeaders>();
  const asked = upstream
    .restOf({ authorize: () => renewal.promise, leaver: leaverOf(leaving.signal) })
    .get(ROUTE);
  leaving.abort();
  await expect(asked).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
  // Nobody hears of its failure.
  renewal.reject(new Error('no token'));
});

it('a service that refuses each renewed credential is the gateway’s trouble, not the caller’s', async () => {
  await using upstream = await startUpstream((_request, response) => json(response, {}, 401));
  let renewed = 0;
  const authorize = () => {
    renewed += 1;
    return { authorization: `Bearer ${renewed}` };
  };
  await expect(upstream.restOf({ authorize }).get(ROUTE)).rejects.toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    message: "The service does not accept the gateway's own access token.",
  });
  expect(upstream.requests).toHaveLength(3);
});

it('a caller’s own credential that the service refuses is told to the caller', async () => {
  await using upstream = await startUpstream((_request, response) => json(response, {}, 401));
  await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  expect(upstream.requests).toHaveLength(1);
});

it('a call waits for a renewal until the deadline of the last who waits for it, also of one who has come later', async () => {
  using time = stillTime();
  const renewal = Promise.withResolvers<AuthHeaders>();
  const party = new Party();
  const waiter = { requester: { caller: 'caller', group: 'caller' }, urgency: 'operations' } as const;
  const first = party.join({ ...waiter, deadline: Date.now() + 50 });
  const sent: unknown[] = [];
  const answer = underCredential(
    () => renewal.promise,
    async (credential) => {
      sent.push(credential);
      return { kind: 'answered', status: 200, body: {}, text: '{}', bytes: 2, retryAfterMs: undefined };
    },
    party,
  );
  party.join({ ...waiter, deadline: Date.now() + 20_000 });
  await time.pass(60);
  party.leave(first);
  renewal.resolve({ authorization: 'Bearer new' });
  expect(await answer).toMatchObject({ kind: 'answered', status: 200 });
  expect(sent).toEqual([{ authorization: 'Bearer new' }]);
});
