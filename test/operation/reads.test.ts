import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import type { Authenticator } from '../../src/auth/authenticator.ts';
import { type Caller, SCOPES, type Scope } from '../../src/auth/caller.ts';
import { createExpiryWatch } from '../../src/auth/expiry-watch.ts';
import { Guesses, KEY_GUESSES } from '../../src/auth/guesses.ts';
import { systemAlarmClock } from '../../src/common/alarms.ts';
import { Turns } from '../../src/common/turns.ts';
import { Waiters } from '../../src/common/waiters.ts';
import type { EventLog } from '../../src/events/log.ts';
import { CallerKeys } from '../../src/operation/caller-keys.ts';
import { type Context, type ContextOptions, createContextFactory } from '../../src/operation/context.ts';
import type { Incoming } from '../../src/operation/incoming.ts';
import type { Services } from '../../src/operation/services.ts';
import { clientAccounts, clientInstruments } from '../../src/resolvers/client.ts';
import { BANK_FIELD_NAMES } from '../../src/upstream/banks.ts';
import { createBreaker } from '../../src/upstream/call/breaker.ts';
import { type Coalescer, createCoalescer } from '../../src/upstream/call/coalesce.ts';
import { fixedCredential } from '../../src/upstream/call/credential.ts';
import { createHttp, type UpstreamHttp } from '../../src/upstream/call/http.ts';
import { createClientLists } from '../../src/upstream/lists/client-lists.ts';
import { createBankCache } from '../../src/upstream/session/session.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

const now = () => performance.now();

let sandbox: Sandbox;
let http: UpstreamHttp;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  http = createHttp(sandbox.url, createBreaker(now), {
    connectTimeoutMs: 5_000,
    maxAnswerBytes: 1_000_000,
    callsPerCaller: 16,
    onWaiting: () => undefined,
    turns: new Turns(now),
  });
});
afterAll(async () => {
  await http.close();
  await sandbox.stop();
});

/** An operation of the sandbox's client whose caller is identified. */
async function operation(
  given: Partial<Caller> = {},
  more: Partial<Omit<ContextOptions, 'auth'>> & {
    readonly auth?: Partial<Authenticator>;
    readonly incoming?: Partial<Incoming>;
  } = {},
) {
  const caller: Caller = {
    clientId: sandbox.clientId,
    customerId: undefined,
    subject: 'alma',
    keyOwner: undefined,
    scopes: SCOPES,
    expiresAt: undefined,
    ...given,
  };
  const auth: Authenticator = {
    identify: () => caller,
    strangerOf: (_token, address) => ({ caller: address, group: address }),
    authorize: (token) => fixedCredential({ authorization: `Bearer ${token}` }),
    upstreamIdentity: (credential) => credential,
    sharesIdentity: false,
    verifiesItself: true,
    verifiedAgainMs: undefined,
    servesBootstrap: true,
    async stop() {},
    ...more.auth,
  };
  const log: string[] = [];
  const logger = collectingLogger(log);
  const invalidated: string[] = [];
  // Nothing here reads the log or pays: what is handed on is compared by identity.
  const events = { head: async () => null } as unknown as EventLog;
  const services = { logger } as unknown as Services;
  const { auth: _auth, incoming, ...options } = more;
  const createContext = createContextFactory({
    http,
    auth,
    banks: createBankCache(BANK_FIELD_NAMES, 60_000, now),
    lists: createClientLists({ maxAgeMs: 0, now, logger, onOutdated: () => undefined }),
    listsMaxAgeMs: 0,
    utcOffset: '-06:00',
    maxItems: 10,
    turns: new Turns(now),
    events,
    services,
    upstreamTimeoutMs: 10_000,
    operationTimeoutMs: 30_000,
    reads: createCoalescer(now),
    keyGuesses: new Guesses(KEY_GUESSES),
    callerKeys: new CallerKeys(),
    expiries: createExpiryWatch({ clock: systemAlarmClock, identify: async () => caller }),
    onInvalidate: (credential) => invalidated.push(credential),
    clock: systemAlarmClock,
    onCall: () => undefined,
    ...options,
  });
  const context: Context = createContext({
    requestId: 'reads-test',
    authorization: `Bearer ${sandbox.accessToken}`,
    apiKey: undefined,
    lastEventId: undefined,
    waiters: undefined,
    closeSockets: undefined,
    ...incoming,
  });
  return { context, events, invalidated };
}

const paths = ({ report }: Context) => report.calls.map(({ route }) => route);

it('are the caller’s alone: before somebody is identified there are none', async () => {
  const { context } = await operation();
  expect(() => context.reads.session).toThrow('before it is identified');
  expect(() => context.reads.events).toThrow('before it is identified');
});

it('read nothing twice in one operation, and everything again after a change', async () => {
  const { context, invalidated } = await operation();
  await context.identity.identify();
  const { session } = context.reads;
  await session.webhooks.all();
  await context.reads.session.webhooks.all();
  expect(paths(context)).toHaveLength(1);

  context.reads.forget();
  expect(invalidated).toEqual([sandbox.accessToken]);
  expect(context.reads.session).not.toBe(session);
  await context.reads.session.webhooks.all();
  // What the operation read before the change stays in its report.
  expect(paths(context)).toHaveLength(2);
});

it('begin anew with each event of a stream, with a deadline and a report of its own', async () => {
  const { context, invalidated } = await operation();
  await context.identity.identify();
  await context.reads.session.webhooks.all();
  context.budget.countItems(3);
  for (const time of [1, 2]) {
    const { deadline } = context.budget;
    await until(() => Date.now() + 30_000 > deadline);
    context.reads.renew();
    expect(context.budget.deadline).toBeGreaterThan(deadline);
    expect(invalidated).toHaveLength(time);
    expect(context.report.calls).toEqual([]);
    expect(context.budget.countItems(1)).toBe(1);
    await context.reads.session.webhooks.all();
    expect(paths(context)).toHaveLength(1);
  }
});

it('deliver nothing more once the credential has ended', async () => {
  const { context, invalidated } = await operation({ expiresAt: 1 });
  await context.identity.identify();
  expect(() => context.reads.renew()).toThrow('expired');
  expect(invalidated).toEqual([]);
});

it('are read ahead for who may read the graph, and for nobody else', async () => {
  const ahead = await operation();
  await ahead.context.identity.identify();
  ahead.context.reads.prefetch(['banks']);
  expect(ahead.context.reads.prefetched).toBeUndefined();
  void ahead.context.reads.session;
  await until(() => ahead.context.reads.prefetched === undefined);
  expect(paths(ahead.context)).toEqual(['/v1/banks']);

  const eventsOnly = await operation({ scopes: new Set<Scope>(['events:read']) });
  await eventsOnly.context.identity.identify();
  eventsOnly.context.reads.prefetch(['banks']);
  void eventsOnly.context.reads.session;
  expect(eventsOnly.context.reads.prefetched).toBeUndefined();
});

it('that are read ahead keep no page waiting, where they do not come', async () => {
  const { context } = await operation({}, { banks: { read: () => new Promise(() => undefined) } });
  await context.identity.identify();
  context.reads.prefetch(['banks']);
  for (const page of [clientAccounts({ first: 3 }, context), clientInstruments({ first: 3 }, context)])
    expect((await page).nodes).toHaveLength(3);
  expect(context.reads.prefetched).toBeDefined();
});

it('seal the cursors of a caller who sees a part of the log', async () => {
  const whole = await operation();
  await whole.context.identity.identify();
  expect(whole.context.reads.events).toBe(whole.events);
  const narrowed = await operation({ customerId: '7c9e6679-7425-40de-944b-e07fc1f90ae7' });
  await narrowed.context.identity.identify();
  expect(narrowed.context.reads.events).not.toBe(narrowed.events);
});

/** What is asked of the reads that operations share. */
function watchedReads() {
  const asked: { readonly caller: string; readonly path: string; readonly keptMs: number | undefined }[] = [];
  const shared = createCoalescer(now);
  const reads: Coalescer = {
    ...shared,
    read(read) {
      asked.push({ caller: read.caller, path: read.path, keptMs: read.keptMs });
      return shared.read(read);
    },
  };
  return { asked, reads };
}

it('of lists are kept for others only where all callers are one to the service', async () => {
  for (const sharesIdentity of [true, false]) {
    const { asked, reads } = watchedReads();
    const auth = { sharesIdentity, upstreamIdentity: () => 'all of them' };
    const { context } = await operation({}, { auth, reads, listsMaxAgeMs: 5_000 });
    await context.identity.identify();
    await context.reads.session.accounts.find('id', '11111111-2222-4333-8444-555555555555');
    await context.reads.session.transactions.get('11111111-2222-4333-8444-555555555555');
    expect(new Set(asked.map(({ caller }) => caller))).toEqual(new Set(['all of them']));
    const keptOf = (name: string) => asked.find(({ path }) => path.includes(name))?.keptMs;
    expect(keptOf('accounts')).toBe(sharesIdentity ? 5_000 : 0);
    expect(keptOf('transactions')).toBe(0);
  }
});

it('that were made for another operation are reported with their own beginning and waits, and as kept ones where they were over', async () => {
  const reads = createCoalescer(now);
  const auth = { sharesIdentity: true, upstreamIdentity: () => 'all of them' };
  const waits = { queuedMs: 40, unreadMs: 20 };
  const waiting: UpstreamHttp = {
    ...http,
    send: async (request) => {
      const attempt = await http.send(request);
      Object.assign(request, waits);
      return attempt;
    },
  };
  const read = async () => {
    const { context } = await operation({}, { auth, reads, http: waiting, listsMaxAgeMs: 600_000 });
    await context.identity.identify();
    await context.reads.session.webhooks.all();
    return context.report;
  };
  const began = now();
  const { calls } = await read();
  const over = now();
  expect(calls).toMatchObject([{ cached: false }]);
  const kept = await read();
  expect(kept.calls).toEqual([]);
  const [{ startedAt, milliseconds, ...shared } = { startedAt: 0, milliseconds: 0 }] = kept.sharedCalls;
  expect(kept.sharedCalls).toHaveLength(1);
  expect(shared).toMatchObject({ route: calls[0]?.route, status: 200, ...waits, cached: true });
  expect(startedAt).toBeGreaterThanOrEqual(began);
  expect(startedAt + milliseconds).toBeLessThanOrEqual(over);
});

it('before a payment are made afresh, and shared with nobody', async () => {
  const { asked, reads } = watchedReads();
  const sent: unknown[] = [];
  const watched: UpstreamHttp = {
    ...http,
    send: (request) => {
      sent.push([request.over, request.party.urgency]);
      return http.send(request);
    },
  };
  const { context } = await operation({}, { reads, http: watched });
  await context.identity.identify();
  await context.reads.session.original('11111111-2222-4333-8444-555555555555').catch(() => undefined);
  expect(context.report.calls.length).toBeGreaterThan(0);
  expect(asked).toEqual([]);
  // They are as pressing as the payment, and wait behind no other reads.
  expect(sent).toEqual(sent.map(() => ['money', 'money']));
});

it.each([undefined, '11111111-2222-4333-8444-555555555555'])(
  'doubt the lists of that client after an account may have been opened, whoever of it has done so (customer %s)',
  async (customerId) => {
    const changed: string[] = [];
    const lists = createClientLists({
      maxAgeMs: 0,
      now,
      logger: collectingLogger([]),
      onOutdated: () => undefined,
    });
    const noted = { ...lists, markChanged: (clientId: string) => changed.push(clientId) };
    const { context } = await operation({ customerId }, { lists: noted });
    await context.identity.identify();
    context.reads.renew();
    expect(changed).toEqual([]);
    // A payment opens no account, and would have the ends of all lists read again.
    context.reads.forget();
    expect(changed).toEqual([]);
    context.reads.forgetLists();
    expect(changed).toEqual([sandbox.clientId]);
  },
);

it('under a key of the caller’s own are guesses of the address that it came from', async () => {
  const keyGuesses = new Guesses(1);
  const id = '11111111-2222-4333-8444-555555555555';
  const ask = async (key: string, address: string) => {
    const { context } = await operation({}, { keyGuesses, incoming: { addressOf: () => address } });
    // Whoever brings a token as well guesses no more often for it.
    await context.identity.identify();
    return context.reads
      .underKey(key, id)
      .get('/v1/clients/{clientId}/credentials')
      .catch(({ code }: { code: string }) => code);
  };
  const refused = await ask('wrong', '192.0.2.1');
  expect(refused).not.toBe('UPSTREAM_RATE_LIMITED');
  expect(await ask('other', '192.0.2.1')).toBe('UPSTREAM_RATE_LIMITED');
  expect(await ask('other', '192.0.2.2')).toBe(refused);
});

it('under a key of the caller’s own are given up once it has left', async () => {
  const waiters = new Waiters();
  const { context } = await operation({}, { incoming: { waiters } });
  waiters.remove();
  const asked = context.reads
    .underKey('wrong', '11111111-2222-4333-8444-555555555555')
    .get('/v1/clients/{clientId}/credentials');
  await expect(asked).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
});
