import { describe, expect, it } from 'vitest';
import { type Authenticator, UnauthenticatedError } from '../../src/auth/authenticator.ts';
import { type Caller, SCOPES } from '../../src/auth/caller.ts';
import { createExpiryWatch } from '../../src/auth/expiry-watch.ts';
import { type AlarmClock, systemAlarmClock } from '../../src/common/alarms.ts';
import { Party } from '../../src/common/party.ts';
import { Waiters } from '../../src/common/waiters.ts';
import { Budget } from '../../src/operation/budget.ts';
import { CallerKeys } from '../../src/operation/caller-keys.ts';
import { Calls } from '../../src/operation/calls.ts';
import { Identity } from '../../src/operation/identity.ts';
import type { Incoming } from '../../src/operation/incoming.ts';
import { Report } from '../../src/operation/report.ts';
import { fixedCredential } from '../../src/upstream/call/credential.ts';
import type { CallKind } from '../../src/upstream/call/exchange.ts';
import type { UpstreamHttp } from '../../src/upstream/call/http.ts';
import type { Asker } from '../../src/upstream/call/shared-work.ts';
import { json, startUpstream } from '../helpers/http-stub.ts';
import { until } from '../helpers/until.ts';

const ALMA: Caller = {
  clientId: 'c1',
  customerId: undefined,
  subject: 'alma',
  keyOwner: undefined,
  scopes: SCOPES,
  expiresAt: undefined,
};

const BROUGHT: Incoming = {
  requestId: 'r1',
  authorization: 'Bearer t1',
  apiKey: undefined,
  lastEventId: undefined,
  waiters: undefined,
  addressOf: () => '192.0.2.1',
  closeSockets: undefined,
};

/** Whom a token stands for, and how often that was asked. */
function operation(
  given: {
    incoming?: Partial<Incoming>;
    caller?: Caller;
    servesBootstrap?: boolean;
    clock?: AlarmClock;
    /** Why it cannot be told who is calling. */
    failure?: Error;
    /** Where the credential is asked about again. */
    identify?: (authorization: string | undefined) => Promise<Caller>;
    sharesIdentity?: boolean;
    http?: UpstreamHttp;
  } = {},
) {
  const { incoming = {}, caller = ALMA, servesBootstrap = true, clock = systemAlarmClock, failure } = given;
  const { identify = async () => caller, sharesIdentity = false } = given;
  const askers: Asker[] = [];
  const asked: { readonly fresh: boolean; readonly stranger: string | undefined }[] = [];
  const auth: Authenticator = {
    async identify(_token, _restFor, fresh, asker, stranger) {
      askers.push(asker);
      asked.push({ fresh, stranger });
      if (failure !== undefined) throw failure;
      return caller;
    },
    strangerOf: (token, address) => ({ caller: `${address} ${token}`, group: address }),
    authorize: () => async () => undefined,
    upstreamIdentity: (credential) => credential,
    sharesIdentity,
    verifiesItself: true,
    verifiedAgainMs: undefined,
    servesBootstrap,
    async stop() {},
  };
  const callerKeys = new CallerKeys();
  const budget = new Budget(
    { operationTimeoutMs: 60_000, maxItems: 1 },
    { ...BROUGHT, ...incoming },
    () => undefined,
  );
  // Who is calling is known here without a REST call.
  const { http = undefined as never } = given;
  const callsOptions = { http, upstreamTimeoutMs: 5_000, onCall: () => undefined };
  const calls = new Calls(callsOptions, 'r1', 'streams', budget, new Report());
  const expiries = createExpiryWatch({ clock, identify });
  const options = { auth, callerKeys, expiries, clock };
  const identity = new Identity(options, { ...BROUGHT, ...incoming }, 'streams', budget, calls);
  return { identity, calls, asked, askers, callerKeys, budget, expiries };
}

it('asks once who is calling, and again only where it is to', async () => {
  const { identity, asked } = operation();
  expect(identity.isIdentified).toBe(false);
  expect(() => identity.caller).toThrow('before it is identified');
  expect(await identity.identify()).toBe(ALMA);
  expect(await identity.identify()).toBe(ALMA);
  expect(identity.caller).toBe(ALMA);
  expect(asked).toEqual([{ fresh: false, stranger: 'address 192.0.2.1' }]);
  // A stream that watches the credential asks only once that is due.
  await identity.untilExpiry(AbortSignal.abort());
  expect(asked).toHaveLength(1);
  await identity.identify(true);
  // Its token was verified by now: it counts for no address any more.
  expect(asked).toHaveLength(2);
  expect(asked[1]).toEqual({ fresh: true, stranger: undefined });
});

it('counts as its address’s until its credential is verified, and then as its caller’s', async () => {
  const { identity } = operation();
  expect(identity.requester).toEqual({ caller: 'address 192.0.2.1 t1', group: 'address 192.0.2.1' });
  expect(identity.turnKey).toBe('address 192.0.2.1');
  expect(identity.isStranger).toBe(true);
  await identity.identify();
  expect(identity.isStranger).toBe(false);
  expect(identity.requester.caller).toBe('subject alma');
  expect(identity.turnKey).toBe('subject alma');
});

it.each([
  [undefined, 'An access token is needed'],
  ['Basic YTpi', 'must have the form'],
])('refuses who brings no bearer token: %s', async (authorization, message) => {
  const { identity, asked } = operation({ incoming: { authorization } });
  await expect(identity.identify()).rejects.toThrow(UnauthenticatedError);
  await expect(identity.identify()).rejects.toThrow(message);
  expect(asked).toEqual([]);
});

it('asks nobody where the caller is known already', async () => {
  const { identity, asked } = operation({ incoming: { caller: ALMA, authorization: undefined } });
  expect(await identity.identify()).toBe(ALMA);
  expect(asked).toEqual([]);
  // Its calls count for those who share it, not for the address of the one who came first.
  expect(identity.requester).toEqual({ caller: 'subject alma', group: 'subject alma' });
});

it('has no REST calls for a stream of several callers, also where the gateway has a token of its own', async () => {
  const shared = operation({ incoming: { caller: ALMA, authorization: undefined }, sharesIdentity: true });
  await shared.identity.identify();
  expect(() => shared.identity.authorize).toThrow('no credential');
  const own = operation({ sharesIdentity: true });
  await own.identity.identify();
  expect(own.identity.authorize).toBeTypeOf('function');
});

it('tells who is narrowed to a customer of no REST calls, nor who may be', async () => {
  const whole = operation();
  expect(whole.identity.seesCalls).toBe(true);
  const held = operation({ servesBootstrap: false });
  expect(held.identity.seesCalls).toBe(false);
  await held.identity.identify();
  expect(held.identity.seesCalls).toBe(true);
  const narrowed = operation({ caller: { ...ALMA, customerId: 'k1' } });
  await narrowed.identity.identify();
  expect(narrowed.identity.seesCalls).toBe(false);
});

it('records the subject as it is, and what has none, a long one or half a character by its digest', async () => {
  const named = operation();
  await named.identity.identify();
  expect(named.identity.requestedBy).toBe('alma');
  // A script of Redis cannot read half a character, and left the payment out of all lists.
  for (const subject of [undefined, 'x'.repeat(129), 'alma \ud83d']) {
    const { identity } = operation({ caller: { ...ALMA, subject } });
    await identity.identify();
    expect(identity.requestedBy).toMatch(/^sha256:[\w-]{43}$/);
  }
});

it('records one who has a long subject as the same, whichever token was brought', async () => {
  const recorded = await Promise.all(
    ['t1', 't2'].map(async (token) => {
      const caller = { ...ALMA, subject: 'x'.repeat(129) };
      const { identity } = operation({ incoming: { authorization: `Bearer ${token}` }, caller });
      await identity.identify();
      return identity.requestedBy;
    }),
  );
  expect(recorded[0]).toBe(recorded[1]);
});

it('closes the socket of a credential that has ended', async () => {
  let closed = 0;
  const incoming = {
    closeSockets: () => {
      closed += 1;
    },
  };
  const lasting = operation({ incoming });
  await lasting.identity.identify();
  lasting.identity.assertHolds();
  expect(closed).toBe(0);
  const over = operation({ incoming, caller: { ...ALMA, expiresAt: 1 } });
  await over.identity.identify();
  expect(() => over.identity.assertHolds()).toThrow(UnauthenticatedError);
  expect(closed).toBe(1);
});

it('asks in its own place: until its deadline, as pressing as it is, and no longer than somebody waits', async () => {
  const waiters = new Waiters();
  const { identity, askers, budget } = operation({ incoming: { waiters } });
  await identity.identify();
  expect(askers).toEqual([
    {
      requester: { caller: 'address 192.0.2.1 t1', group: 'address 192.0.2.1' },
      urgency: 'streams',
      deadline: budget.deadline,
      leaver: waiters,
    },
  ]);
});

it('does what waits for somebody to be identified once, however often that is asked', async () => {
  const { identity } = operation();
  const done: string[] = [];
  identity.onceIdentified(() => done.push('before'));
  expect(done).toEqual([]);
  await identity.identify();
  await identity.identify(true);
  expect(done).toEqual(['before']);
  identity.onceIdentified(() => done.push('after'));
  expect(done).toEqual(['before', 'after']);
});

it('does what waits for the right to a change once, and not for a caller who is identified alone', async () => {
  const { identity } = operation();
  const done: string[] = [];
  identity.onceMayChange(() => done.push('before'));
  await identity.identify();
  expect(done).toEqual([]);
  identity.noteMayChange();
  identity.noteMayChange();
  expect(done).toEqual(['before']);
  identity.onceMayChange(() => done.push('after'));
  expect(done).toEqual(['before', 'after']);
});

it('tells callers apart by their tokens, however these are written, and whichever API key comes with them', () => {
  const credentialsOf = (brought: readonly Partial<Incoming>[]) =>
    new Set(brought.map((incoming) => operation({ incoming }).identity.credential));
  const ofOne = [{}, { authorization: 'bearer  t1 ' }, { apiKey: 'k1' }, { apiKey: 'k2' }];
  expect(credentialsOf(ofOne).size).toBe(1);
  const ofSeveral = [{}, ...['Bearer t2', 'Basic t1', undefined].map((authorization) => ({ authorization }))];
  expect(credentialsOf(ofSeveral).size).toBe(ofSeveral.length);
});

const REFUSED = new UnauthenticatedError('no');
const TOKEN = 'Bearer t1';

it('has its credential watched until it ends, or until the stream does', async () => {
  const refuse = async () => {
    throw REFUSED;
  };
  const { identity, expiries } = operation({ identify: refuse });
  const left = new AbortController();
  const [leaving, staying] = [
    identity.untilExpiry(left.signal),
    identity.untilExpiry(new AbortController().signal),
  ];
  await until(() => expiries.isWatched(TOKEN));
  left.abort();
  expect(await leaving).toBeUndefined();
  expect(await identity.hasEnded()).toBe(true);
  expect(await staying).toBe(REFUSED);
});

it('has its credential watched no longer than its streams last', async () => {
  const { identity, expiries } = operation();
  const left = new AbortController();
  const stream = identity.untilExpiry(left.signal);
  await until(() => expiries.isWatched(TOKEN));
  left.abort();
  expect(await stream).toBeUndefined();
  expect(expiries.isWatched(TOKEN)).toBe(false);
});

it('has its credential watched for no stream that has ended before it was known who is calling', async () => {
  const { identity, expiries } = operation();
  const left = new AbortController();
  const stream = identity.untilExpiry(left.signal);
  left.abort();
  await identity.identify();
  await new Promise((resolve) => setImmediate(resolve));
  expect(expiries.isWatched(TOKEN)).toBe(false);
  expect(await stream).toBeUndefined();
});

describe('a credential that the service refuses in an operation', () => {
  const start = async (given: {
    /** What the service answers, one call after the other. */
    statuses?: readonly number[];
    over?: CallKind;
    isDetached?: boolean;
    failure?: Error;
    sharesIdentity?: boolean;
  }) => {
    const { statuses = [401], over, isDetached = false, ...others } = given;
    const answers = [...statuses];
    let asked = 0;
    await using upstream = await startUpstream((_request, response) => json(response, {}, answers.shift()));
    const one = operation({
      ...others,
      http: upstream.http,
      async identify() {
        asked += 1;
        return ALMA;
      },
    });
    const own = one.calls.rest('c1', one.identity.requester, fixedCredential({}), { over });
    const party = new Party();
    party.join({ requester: one.identity.requester, urgency: 'operations', deadline: one.budget.deadline });
    const rest = isDetached ? own.sharedBy(party, false) : own;
    for (const _ of statuses) await rest.get('/v1/x').catch(() => undefined);
    return { ...one, asked: () => asked };
  };

  it.each([
    ['a 401', {}, 1],
    ['a 401 to a payment', { over: 'money' }, 1],
    ['a 401 to work that may outlive the operation', { isDetached: true }, 1],
    ['a 401 before another answer', { statuses: [401, 200] }, 1],
    ['a 403', { statuses: [403] }, 0],
    ['a 401 to a question who is calling, or to an API key', { over: 'probes' }, 0],
    ["a 401 to the gateway's own credential", { sharesIdentity: true }, 0],
  ] as const)('is asked about again after %s: %o, %i times', async (_, given, times) => {
    const { identity, asked } = await start(given);
    await identity.identify();
    identity.doubtIfRefused();
    expect(asked()).toBe(times);
  });
});

it('is asked about again where it stands for nobody any more, and has sockets or streams', async () => {
  let asked = 0;
  const { identity, expiries } = operation({
    failure: REFUSED,
    async identify() {
      asked += 1;
      return ALMA;
    },
  });
  await expect(identity.identify()).rejects.toBe(REFUSED);
  identity.doubtIfRefused();
  // A stranger's made-up token asks the service no second question.
  expect(asked).toBe(0);
  expiries.watch({ expiresAt: undefined, expired: () => undefined }, TOKEN, ALMA);
  identity.doubtIfRefused();
  expect(asked).toBe(1);
});
