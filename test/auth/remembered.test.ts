import { describe, expect, it, vi } from 'vitest';
import { UnauthenticatedError } from '../../src/auth/authenticator.ts';
import { type Caller, SCOPES } from '../../src/auth/caller.ts';
import { Guesses, guessing } from '../../src/auth/guesses.ts';
import { KnownCallers } from '../../src/auth/known-callers.ts';
import { createPassthrough } from '../../src/auth/passthrough.ts';
import { createRefusedKeys } from '../../src/auth/refused-keys.ts';
import { clock } from '../../src/common/clock.ts';
import { Party } from '../../src/common/party.ts';
import { CutShortError, UpstreamError } from '../../src/upstream/call/errors.ts';
import { MalformedIdError } from '../../src/upstream/call/path.ts';
import type { Rest } from '../../src/upstream/call/rest.ts';
import type { Asker } from '../../src/upstream/call/shared-work.ts';
import { json, startUpstream } from '../helpers/http-stub.ts';
import { stillTime } from '../helpers/still-time.ts';
import { until } from '../helpers/until.ts';

const MINUTE = 60_000;

const ASKER: Asker = {
  requester: { caller: 'one', group: 'one' },
  urgency: 'operations',
  deadline: Date.now() + 24 * 60 * MINUTE,
  leaver: undefined,
};

const callerUntil = (expiresAt: number | undefined): Caller => ({
  clientId: 'c',
  customerId: undefined,
  subject: undefined,
  keyOwner: undefined,
  scopes: SCOPES,
  expiresAt,
});

describe('whom a token stands for', () => {
  const start = (expiresAt?: number) => {
    const known = new KnownCallers();
    let asked = 0;
    const find = async (token = 't', fresh = false): Promise<number> => {
      const ask = async () => {
        asked += 1;
        return callerUntil(expiresAt);
      };
      await known.find(token, ask, fresh, ASKER);
      return asked;
    };
    return find;
  };

  it.each([
    ['names no end', undefined],
    ['holds for longer', 10 * MINUTE],
  ])('is believed for a minute, of that token alone, where it %s', async (_what, holdsMs) => {
    using time = stillTime();
    const find = start(holdsMs && clock.now() + holdsMs);
    expect([await find(), await find(), await find('other')]).toEqual([1, 1, 2]);
    await time.pass(MINUTE - 1_000);
    expect(await find()).toBe(2);
    await time.pass(2_000);
    expect(await find()).toBe(3);
  });

  it('is believed no longer than the token holds', async () => {
    using time = stillTime();
    const find = start(clock.now() + 5_000);
    expect([await find(), await find()]).toEqual([1, 1]);
    await time.pass(6_000);
    expect(await find()).toBe(2);
  });

  it('is found out again where that is asked for, though it is known', async () => {
    const find = start();
    expect([await find(), await find('t', true), await find()]).toEqual([1, 2, 2]);
  });

  /** Questions that the test answers. */
  const answered = () => {
    const known = new KnownCallers();
    const asked: PromiseWithResolvers<Caller>[] = [];
    const find = async (fresh = false) => {
      const ask = () => {
        const question = Promise.withResolvers<Caller>();
        asked.push(question);
        return question.promise;
      };
      return known.find('t', ask, fresh, ASKER);
    };
    const accept = () => asked.at(-1)?.resolve(callerUntil(undefined));
    return { asked, find, accept };
  };

  it('is believed on where it is asked about again and there is no answer, and not where it is refused', async () => {
    const { asked, find, accept } = answered();
    const first = find();
    accept();
    const caller = await first;
    const away = find(true);
    expect(await find()).toBe(caller);
    asked[1]?.reject(new UpstreamError('UPSTREAM_UNAVAILABLE', 'away'));
    await expect(away).rejects.toThrow('away');
    expect([await find(), asked.length]).toEqual([caller, 2]);
    const refused = find(true);
    asked[2]?.reject(new UnauthenticatedError('withdrawn'));
    await expect(refused).rejects.toThrow('withdrawn');
    void find().catch(() => undefined);
    expect(asked).toHaveLength(4);
  });

  it('is asked about again for whoever has time left, however many questions of others were cut short before', async () => {
    const { asked, find, accept } = answered();
    const [first, second, patient] = [find(), find(), find()];
    const told = Promise.allSettled([first, second]);
    for (const count of [1, 2]) {
      await until(() => asked.length === count);
      asked.at(-1)?.reject(new CutShortError(200, new Error('late'), true));
    }
    await Promise.race([until(() => asked.length === 3), patient]);
    accept();
    expect(await patient).toMatchObject({ clientId: 'c' });
    expect(await told).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
    expect(asked).toHaveLength(3);
  });

  it('is not told by an answer that may be older than the doubt about it', async () => {
    const { asked, find } = answered();
    const [before, again] = [find(), find(true)];
    expect(asked).toHaveLength(2);
    asked[1]?.reject(new UnauthenticatedError('withdrawn'));
    await expect(again).rejects.toThrow('withdrawn');
    asked[0]?.resolve(callerUntil(undefined));
    expect(await before).toMatchObject({ clientId: 'c' });
    void find().catch(() => undefined);
    expect(asked).toHaveLength(3);
  });

  it('is believed on where it was accepted afresh, and a question from before that is refused', async () => {
    const { asked, find, accept } = answered();
    const [before, again] = [find(), find(true)];
    accept();
    const caller = await again;
    asked[0]?.reject(new UnauthenticatedError('not yet valid'));
    await expect(before).rejects.toThrow('not yet valid');
    expect([await find(), asked.length]).toEqual([caller, 2]);
  });
});

describe('guesses of one source', () => {
  const tooMany = () => new Error('too many');
  const refuse = (guesses: Guesses, source = 'one') =>
    guesses.make(
      source,
      async () => 'refused',
      () => true,
      tooMany,
    );

  it('that fail without a refusal give their places back, and count for nothing', async () => {
    const guesses = new Guesses(2);
    const fail = () =>
      guesses.make(
        'one',
        async () => {
          throw new Error('away');
        },
        () => false,
        tooMany,
      );
    for (let made = 0; made < 5; made += 1) await expect(fail()).rejects.toThrow('away');
    expect(await refuse(guesses)).toBe('refused');
    expect(await refuse(guesses)).toBe('refused');
    await expect(refuse(guesses)).rejects.toThrow('too many');
  });

  it('are counted from the first of a minute, and begin anew after it', async () => {
    using time = stillTime();
    const guesses = new Guesses(2);
    await refuse(guesses);
    await time.pass(40_000);
    await refuse(guesses);
    await expect(refuse(guesses)).rejects.toThrow('too many');
    await time.pass(21_000);
    expect(await refuse(guesses)).toBe('refused');
  });

  it.each([401, 403])('are refused by the status %i, of a read and of a change', async (status) => {
    await using upstream = await startUpstream((_request, response) => json(response, {}, status));
    for (const what of ['read', 'change']) {
      const rest = guessing(upstream.rest, new Guesses(1), 'one');
      const make = async () =>
        what === 'read'
          ? rest.get('/v1/x').catch((error: unknown) => error)
          : await rest.send('POST', '/v1/x', { body: '{}' });
      await make();
      const sent = upstream.requests.length;
      const second = await make();
      expect(upstream.requests).toHaveLength(sent);
      const limited = { code: 'UPSTREAM_RATE_LIMITED', dispatched: false };
      expect(second).toMatchObject(what === 'read' ? limited : { kind: 'failed', error: limited });
    }
  });

  it('are not what is not sent, such as a change of something whose id is none', async () => {
    await using upstream = await startUpstream((_request, response) => json(response, {}));
    const rest = guessing(upstream.rest, new Guesses(1), 'one');
    const params = { id: '../x' };
    for (const _time of [1, 2]) {
      await expect(rest.send('POST', '/v1/{id}', { params })).rejects.toBeInstanceOf(MalformedIdError);
      await expect(rest.get('/v1/{id}', { params })).rejects.toBeInstanceOf(MalformedIdError);
    }
    expect(upstream.requests).toEqual([]);
    expect(await rest.get('/v1/x')).toEqual({});
  });

  it('count as well where others wait for them too', async () => {
    await using upstream = await startUpstream((_request, response) => json(response, {}, 401));
    const rest = guessing(upstream.rest, new Guesses(1), 'one').sharedBy(new Party(ASKER), true);
    await expect(rest.get('/v1/x')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    await expect(rest.get('/v1/x')).rejects.toMatchObject({ code: 'UPSTREAM_RATE_LIMITED' });
  });

  it.each([404, 429])('are not refused by the status %i', async (status) => {
    await using upstream = await startUpstream((_request, response) => json(response, {}, status));
    const rest = guessing(upstream.rest, new Guesses(1), 'one');
    for (let sent = 1; sent <= 2; sent += 1) {
      expect(await rest.send('POST', '/v1/x', { body: '{}' })).toMatchObject({ status });
      expect(upstream.requests).toHaveLength(sent);
    }
  });
});

it('a key that the service has refused is refused for a minute with the secret that it came with, and may come with another', async () => {
  using time = stillTime();
  const keys = createRefusedKeys();
  const key = (apiKey: string, clientSecret?: string, clientId = 'c') => ({ clientId, apiKey, clientSecret });
  keys.add(key('k', 'one'));
  expect([key('k', 'one'), key('k', 'one', 'C')].every(keys.has)).toBe(true);
  expect([key('k', 'two'), key('k'), key('other', 'one'), key('k', 'one', 'd')].some(keys.has)).toBe(false);
  await time.pass(61_000);
  expect(keys.has(key('k', 'one'))).toBe(false);
});

describe('a token that the service decides on', () => {
  const CLIENT = '11111111-2222-4333-8444-555555555555';
  const OTHER = '11111111-2222-4333-8444-666666666666';
  const tokenOf = (claims: object, name: string) =>
    `e30.${Buffer.from(JSON.stringify({ ...claims, name })).toString('base64url')}.x`;

  /** A service that accepts and refuses as it is told. */
  const start = async () => {
    const service: {
      status: number;
      held?: Promise<void> | undefined;
      refusal: object;
      refuses: string;
      instruments: object[];
    } = { status: 200, refusal: {}, refuses: '', instruments: [] };
    const upstream = await startUpstream(
      async ({ url = '' }, response) => {
        const { status, held, instruments } = service;
        await held;
        const found = { data: instruments, currentPage: 1, perPage: 1, totalItems: instruments.length };
        const accepts = status === 200 || !url.includes(service.refuses);
        json(response, accepts ? found : service.refusal, accepts ? 200 : status);
      },
      // What is held is given up by nothing but the test, however slow the machine is.
      { timeoutMs: 60_000 },
    );
    const auth = createPassthrough(['client_id', 'sub']);
    /** In whose queues each call has stood, and of which share. */
    const queues: string[][] = [];
    const watched = (rest: Rest): Rest => {
      const sharedBy: Rest['sharedBy'] = (party, isReported) => {
        queues.push([...party.waiters].map(({ requester }) => `${requester.caller} of ${requester.group}`));
        return rest.sharedBy(party, isReported);
      };
      return Object.assign(Object.create(rest), { sharedBy });
    };
    const identify = (
      token: string,
      fresh = false,
      stranger = 'address 192.0.2.1',
      deadline = ASKER.deadline,
    ) =>
      Promise.resolve(
        auth.identify(
          token,
          (clientId, authorize) =>
            watched(upstream.restOf({ clientId, authorize, deadline: Date.now() + 500 })),
          fresh,
          { ...ASKER, deadline },
          stranger === 'known' ? undefined : stranger,
        ),
      );
    return { service, upstream, identify, queues, auth };
  };

  it('is refused with the reason where the service writes the id of its client in other letters', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const named = 'A1B2C3D4-2222-4333-8444-55555555ABCD';
    const listed = async (clientId: unknown, name: string, claims: object = { client_id: named }) => {
      service.instruments = [{ id: 'one', ownerId: clientId, clientId }];
      return identify(tokenOf(claims, name));
    };
    const small = named.toLowerCase();
    const refused = (reason: string) => ({
      code: 'UNAUTHENTICATED',
      message: expect.stringContaining(reason),
    });
    await expect(listed(small, 'small')).rejects.toMatchObject(refused('in other letters'));
    expect(await listed(named, 'the same')).toMatchObject({ clientId: named });
    expect(await listed(small, 'both', { client_id: named, sub: small })).toMatchObject({ clientId: small });
    for (const clientId of [OTHER, undefined, null]) {
      await expect(listed(clientId, `of ${clientId}`)).rejects.toMatchObject(refused('does not accept'));
    }
  });

  it('is asked about again where that is asked for, though it was refused a moment ago', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const token = tokenOf({ client_id: CLIENT }, 'one');
    service.status = 403;
    await expect(identify(token)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    service.status = 200;
    await expect(identify(token)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(await identify(token, true)).toMatchObject({ clientId: CLIENT });
  });

  it('is asked about once, though it was accepted before, and is no guess of its address', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const token = tokenOf({ client_id: CLIENT, sub: OTHER }, 'one');
    service.status = 401;
    for (let round = 0; round < 120; round += 1) {
      await expect(identify(token, false, 'known')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    }
    // One for each client that it names.
    expect(upstream.requests).toHaveLength(2);
    await expect(identify(token, true, 'known')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(upstream.requests).toHaveLength(4);
    service.status = 200;
    expect(await identify(tokenOf({ client_id: CLIENT }, 'new'))).toMatchObject({ clientId: CLIENT });
  });

  it('is asked about once more, together, for those who joined a question of one with little time left', async () => {
    using time = stillTime();
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const hang = Promise.withResolvers<void>();
    service.held = hang.promise;
    const token = tokenOf({ client_id: CLIENT }, 'one');
    const hurried = identify(token, false, undefined, Date.now() + 100);
    const late = expect(hurried).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
    await until(() => upstream.requests.length === 1);
    const others = [identify(token), identify(token)];
    await time.pass(100);
    await late;
    await Promise.race([until(() => upstream.requests.length === 2), ...others]);
    hang.resolve();
    for (const other of others) expect(await other).toMatchObject({ clientId: CLIENT });
    expect(upstream.requests).toHaveLength(2);
  });

  it('keeps nobody waiting beyond the time of its operation for guesses that hang', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const hang = Promise.withResolvers<void>();
    service.held = hang.promise;
    const hanging = Array.from({ length: 100 }, (_one, at) =>
      identify(tokenOf({ client_id: CLIENT }, `${at}`)),
    );
    const late = identify(tokenOf({ client_id: CLIENT }, 'late'), false, undefined, Date.now() + 50);
    const others = Promise.race(hanging).then(() => 'after others');
    await expect(Promise.race([late, others])).rejects.toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      dispatched: false,
      message: expect.stringContaining('who is calling'),
    });
    hang.resolve();
    await Promise.allSettled(hanging);
    // It has left its place to others.
    expect(await identify(tokenOf({ client_id: CLIENT }, 'next'))).toMatchObject({ clientId: CLIENT });
  });

  it('is not refused because the service has too much to do', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const token = tokenOf({ client_id: CLIENT }, 'one');
    for (const status of [429, 503]) {
      service.status = status;
      await expect(identify(token)).rejects.not.toMatchObject({ code: 'UNAUTHENTICATED' });
    }
    service.status = 200;
    expect(await identify(token)).toMatchObject({ clientId: CLIENT });
  });

  it.each([408, 425])(
    'is not refused however often something on the way gives the question up with %i',
    async (status) => {
      using time = stillTime();
      const { service, upstream, identify } = await start();
      await using _ = upstream;
      const token = tokenOf({ client_id: CLIENT }, 'one');
      service.status = status;
      for (let minute = 0; minute < 3; minute += 1) {
        const before = upstream.requests.length;
        const asked = identify(token, true).catch(({ code }: { code: string }) => code);
        // It is asked three times, after pauses.
        await until(() => upstream.requests.length > before);
        while ((await Promise.race([asked, time.pass(500).then(() => 'waits')])) === 'waits');
        expect(await asked).toBe('UPSTREAM_UNAVAILABLE');
        await time.pass(MINUTE);
      }
      service.status = 200;
      expect(await identify(token, true)).toMatchObject({ clientId: CLIENT });
    },
  );

  it.each([400, 404])('is not refused by one %i that a proxy may have given', async (status) => {
    using time = stillTime();
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const token = tokenOf({ client_id: CLIENT }, 'one');
    service.status = status;
    const unclear = { code: 'UPSTREAM_UNAVAILABLE' };
    for (const fresh of [false, true]) await expect(identify(token, fresh)).rejects.toMatchObject(unclear);
    service.status = 200;
    await time.pass(5_000);
    expect(await identify(token)).toMatchObject({ clientId: CLIENT });
    // The service may have no other refusal: it counts once it has come for a minute.
    service.status = status;
    await expect(identify(token, true)).rejects.toMatchObject(unclear);
    await time.pass(MINUTE - 1);
    await expect(identify(token, true)).rejects.toMatchObject(unclear);
    await time.pass(1);
    await expect(identify(token, true)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  it('is not refused as a clock leaps that a proxy has refused it by once', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const token = tokenOf({ client_id: CLIENT }, 'meets a clock that is set');
    service.status = 404;
    const unclear = { code: 'UPSTREAM_UNAVAILABLE' };
    await expect(identify(token, true)).rejects.toMatchObject(unclear);
    const leap = Date.now() + 3_600_000;
    using _set = vi.spyOn(Date, 'now').mockReturnValue(leap);
    await expect(identify(token, true)).rejects.toMatchObject(unclear);
  });

  it('is a guess of its address, also where the service refuses it in no documented form', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    service.status = 404;
    const guesses = Array.from({ length: 101 }, (_, index) =>
      identify(tokenOf({ client_id: CLIENT }, `${index}`)).catch(({ code }: { code: string }) => code),
    );
    expect(new Set((await Promise.all(guesses)).slice(0, 100))).toEqual(new Set(['UPSTREAM_UNAVAILABLE']));
    expect(await guesses.at(-1)).toBe('UPSTREAM_RATE_LIMITED');
    expect(upstream.requests).toHaveLength(100);
  });

  it('waits for no place of another address from which it comes as well', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const held = Promise.withResolvers<void>();
    service.held = held.promise;
    const crowd = Array.from({ length: 100 }, (_, index) =>
      identify(tokenOf({ client_id: CLIENT }, `${index}`)),
    );
    const token = tokenOf({ client_id: OTHER }, 'moves');
    const both = [identify(token), identify(token, false, 'address 192.0.2.2')];
    const over = Promise.allSettled([...crowd, ...both]);
    // A question of the crowd that ends gives its place to the next.
    await Promise.race([until(() => upstream.requests.some((url) => url.includes(OTHER))), ...crowd]);
    expect(upstream.requests.some((url) => url.includes(OTHER))).toBe(true);
    held.resolve();
    expect((await Promise.all(both)).map(({ clientId }) => clientId)).toEqual([OTHER, OTHER]);
    await over;
  });

  it('is not asked about at once again where a proxy refuses it, by a stranger', async () => {
    using time = stillTime();
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const token = tokenOf({ client_id: CLIENT }, 'long');
    service.status = 431;
    for (let round = 0; round < 50; round += 1) {
      await expect(identify(token)).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    }
    expect(upstream.requests).toHaveLength(1);
    // Its streams, and who had it verified before, hear what the service says now.
    await expect(identify(token, true)).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    await expect(identify(token, false, 'known')).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    expect(upstream.requests).toHaveLength(3);
    service.status = 200;
    await time.pass(5_000);
    expect(await identify(token)).toMatchObject({ clientId: CLIENT });
  });

  it('is not refused by an answer to a question from before it was accepted', async () => {
    using time = stillTime();
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const token = tokenOf({ client_id: CLIENT, exp: Math.ceil(clock.now() / 1_000) + 1 }, 'ends');
    const held = Promise.withResolvers<void>();
    Object.assign(service, { status: 401, held: held.promise });
    const before = identify(token);
    await until(() => upstream.requests.length === 1);
    Object.assign(service, { status: 200, held: undefined });
    expect(await identify(token, true)).toMatchObject({ clientId: CLIENT });
    held.resolve();
    await expect(before).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    await time.pass(3_000);
    expect(await identify(token)).toMatchObject({ clientId: CLIENT });
  });

  it('is refused on where it was refused afresh, and a question from before that is answered by then', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    const token = tokenOf({ client_id: CLIENT }, 'withdrawn');
    const held = Promise.withResolvers<void>();
    Object.assign(service, { status: 200, held: held.promise });
    const before = identify(token);
    await until(() => upstream.requests.length === 1);
    Object.assign(service, { status: 401, held: undefined });
    await expect(identify(token, true)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    held.resolve();
    expect(await before).toMatchObject({ clientId: CLIENT });
    await expect(identify(token)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(upstream.requests).toHaveLength(2);
  });

  it('is refused no longer once it was accepted', async () => {
    using time = stillTime();
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    // Believed for a second, and by the service's clock for longer.
    const token = tokenOf({ client_id: CLIENT, exp: Math.ceil(clock.now() / 1_000) + 1 }, 'ends');
    service.status = 401;
    await expect(identify(token)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    service.status = 200;
    expect(await identify(token, true)).toMatchObject({ clientId: CLIENT });
    await time.pass(3_000);
    expect(await identify(token)).toMatchObject({ clientId: CLIENT });
    expect(upstream.requests).toHaveLength(3);
  });

  it.each([401, 403, 404])('is refused by a %i in the form that is documented for one', async (status) => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    service.status = status;
    const details = [{ reason: 'FAILED_PRECONDITION', domain: 'CORE', metadata: {} }];
    if (status === 404) service.refusal = { code: 5, message: 'no such client', details };
    await expect(identify(tokenOf({ client_id: CLIENT }, 'one'))).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    });
  });

  it('is that client’s for which it is accepted, whatever form the refusal of another has', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    Object.assign(service, { status: 404, refuses: OTHER });
    const token = tokenOf({ client_id: CLIENT, sub: OTHER }, 'one');
    expect(await identify(token)).toMatchObject({ clientId: CLIENT });
  });

  it('is asked about for five minutes after its end, by the service’s own clock, and not after that', async () => {
    const { upstream, identify } = await start();
    await using _ = upstream;
    const ended = (msAgo: number) =>
      tokenOf({ client_id: CLIENT, exp: Math.floor((Date.now() - msAgo) / 1_000) }, `ended ${msAgo} ago`);
    expect(await identify(ended(4 * MINUTE))).toMatchObject({ clientId: CLIENT });
    expect(upstream.requests).toHaveLength(1);
    await expect(identify(ended(6 * MINUTE))).rejects.toThrow('has expired');
    expect(upstream.requests).toHaveLength(1);
  });

  it('that the service accepts for two clients is nobody’s', async () => {
    const { upstream, identify } = await start();
    await using _ = upstream;
    await expect(identify(tokenOf({ client_id: CLIENT, sub: OTHER }, 'two'))).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    });
  });

  it('and that names a client with callers is in nobody’s way at the same address who names another', async () => {
    const { service, upstream, identify, queues, auth } = await start();
    await using _ = upstream;
    await identify(tokenOf({ client_id: CLIENT }, 'known'));
    service.status = 401;
    const refused = (client: string, count: number) =>
      Promise.allSettled(
        Array.from({ length: count }, (_, index) => identify(tokenOf({ client_id: client }, `${index}`))),
      );
    await refused(OTHER, 100);
    await expect(identify(tokenOf({ client_id: OTHER }, 'more'))).rejects.toMatchObject({
      code: 'UPSTREAM_RATE_LIMITED',
      retryAfterMs: 60_000,
    });
    service.status = 200;
    // A stranger has used up what nobody's clients may be guessed for from there.
    expect(await identify(tokenOf({ client_id: CLIENT }, 'new'))).toMatchObject({ clientId: CLIENT });
    // Nor does it wait behind the calls of that one.
    const known = `address 192.0.2.1 ${CLIENT}`;
    expect(queues.at(-1)).toEqual([`${known} of ${known}`]);
    const address = 'address 192.0.2.1';
    const strangerOf = (client: string, sub?: string) =>
      auth.strangerOf(tokenOf({ client_id: client, sub }, 'newer'), address);
    expect(strangerOf(CLIENT)).toEqual({ caller: known, group: address });
    // Any of its claims may name the client.
    expect(strangerOf(OTHER, CLIENT)).toEqual({ caller: known, group: address });
    expect(strangerOf(OTHER)).toEqual({ caller: address, group: address });
    expect(queues).toContainEqual(['address 192.0.2.1 of address 192.0.2.1']);
  });

  it.each(['with', 'without'])(
    'of a client %s callers, for which alone the service fails, from many networks, is in the way of no other client’s',
    async (callers) => {
      const { service, upstream, identify } = await start();
      await using _ = upstream;
      if (callers === 'with') await identify(tokenOf({ client_id: CLIENT }, 'known'));
      Object.assign(service, { status: 503, refuses: CLIENT });
      const failed = Array.from({ length: 40 }, (_, phone) =>
        identify(tokenOf({ client_id: CLIENT }, `${phone}`), false, `address 192.0.2.${phone % 4}`),
      );
      for (const { status } of await Promise.allSettled(failed)) expect(status).toBe('rejected');
      expect(upstream.breaker.isOpen()).toBe(true);
      expect(await identify(tokenOf({ client_id: OTHER }, 'other'))).toMatchObject({ clientId: OTHER });
    },
  );

  it('of a client with callers is in the way of those of one address alone', async () => {
    const { service, upstream, identify } = await start();
    await using _ = upstream;
    await identify(tokenOf({ client_id: CLIENT }, 'known'));
    service.status = 401;
    const guesses = Array.from({ length: 101 }, (_, index) =>
      identify(tokenOf({ client_id: CLIENT }, `${index}`), false, 'address 192.0.2.7').catch(
        ({ code }: { code: string }) => code,
      ),
    );
    expect((await Promise.all(guesses)).at(-1)).toBe('UPSTREAM_RATE_LIMITED');
    service.status = 200;
    expect(await identify(tokenOf({ client_id: CLIENT }, 'new'), false, 'address 192.0.2.8')).toMatchObject({
      clientId: CLIENT,
    });
  });
});
