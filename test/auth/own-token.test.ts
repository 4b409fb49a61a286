import { describe, expect, it } from 'vitest';
import { createService } from '../../src/auth/service.ts';
import type { ServiceToken, SharedTokenStore } from '../../src/auth/service-token.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import type { Asker } from '../../src/upstream/call/shared-work.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { json, startUpstream } from '../helpers/http-stub.ts';
import { callerToken, serviceForAll } from '../helpers/service.ts';

const CLIENT = { clientId: '11111111-2222-4333-8444-555555555555', apiKey: 'k1', clientSecret: 's1' };
const OTHER = { clientId: '11111111-2222-4333-8444-666666666666', apiKey: 'k2', clientSecret: 's2' };
const ASKER: Asker = {
  requester: { caller: 'one', group: 'one' },
  urgency: 'operations',
  deadline: Date.now() + 600_000,
  leaver: undefined,
};
const RESTLESS = () => {
  throw new Error('is not asked');
};

const jwtOf = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;

/** A gateway's own tokens of two clients, of a service that issues what it is told to. */
async function start(answer: {
  status?: number;
  token?: string;
  expires_at?: string | null;
  never?: boolean;
  retryAfter?: string;
}) {
  const presented: unknown[] = [];
  const upstream = await startUpstream(
    ({ headers, url }, response) => {
      presented.push([headers['x-api-key'], url]);
      const { status = 200, never = false, retryAfter, ...issued } = answer;
      if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
      if (!never) json(response, { id: 't', token: 'plain', ...issued }, status);
    },
    answer.never === true ? { timeoutMs: 100 } : {},
  );
  const written: ServiceToken[] = [];
  const stopped: string[] = [];
  const share = ({ clientId }: { clientId: string }): SharedTokenStore => ({
    read: async () => undefined,
    write: async (token) => void written.push(token),
    exclusively: (work) => work(),
    stop: async () => void stopped.push(clientId),
  });
  const counted: boolean[] = [];
  const log: string[] = [];
  const auth = createService(
    { ...serviceForAll(CLIENT, OTHER), utcOffset: '-06:00' },
    (clientId, authorize) => upstream.restOf({ clientId, authorize }),
    share,
    { tokenRefused: () => {}, keysRead: () => {}, ownTokenAsked: (isIssued) => void counted.push(isIssued) },
    collectingLogger(log),
  );
  const authorize = (clientId = CLIENT.clientId) => auth.authorize('', clientId)();
  return { auth, authorize, presented, written, stopped, upstream, counted, log };
}

describe('the gateway’s own token', () => {
  const inHours = (hours: number) => Math.floor(Date.now() / 3_600_000 + hours) * 3_600_000;
  const end = inHours(3);
  // As the service writes it, six hours behind UTC.
  const written = (hours: number) =>
    new Date(end + hours * 3_600_000).toISOString().slice(0, 19).replace('T', ' ');
  const [local, utc, past] = [written(-6), written(0), written(-10)] as const;
  const ending = (hours: number) => jwtOf({ exp: inHours(hours) / 1_000 });

  it.each([
    ['that is told with it, by the service’s own clock', { expires_at: local, token: 'plain' }, end],
    ['that it says itself, where none is told', { token: jwtOf({ exp: end / 1_000 }) }, end],
    ['that is told with it, where its own has passed', { expires_at: local, token: jwtOf({ exp: 1 }) }, end],
    ['that is told with it, where its own is later', { expires_at: local, token: ending(5) }, end],
    [
      'that it says itself, where it is told in UTC without an offset',
      { expires_at: utc, token: ending(3) },
      end,
    ],
    ['that it says itself, where what is told has passed', { expires_at: past, token: ending(3) }, end],
    [
      'of nobody’s knowledge, where both have passed',
      { expires_at: past, token: jwtOf({ exp: 1 }) },
      undefined,
    ],
    ['of nobody’s knowledge, where nothing says it', { token: 'plain' }, undefined],
    ['of nobody’s knowledge, where it says none', { token: jwtOf({}), expires_at: null }, undefined],
  ])('has the end %s', async (_what, issued, expiresAt) => {
    const { authorize, written: kept, upstream } = await start(issued);
    await using _ = upstream;
    expect(await authorize()).toEqual({ authorization: `Bearer ${issued.token}` });
    expect(kept).toMatchObject([{ token: issued.token, expiresAt }]);
  });

  it.each([
    ['refuses', { status: 403 }, 'UPSTREAM_UNAVAILABLE'],
    ['fails', { status: 500 }, 'UPSTREAM_UNAVAILABLE'],
    ['does not answer in time', { never: true }, 'UPSTREAM_TIMEOUT'],
  ])(
    'that the service %s is the gateway’s trouble, and nothing of the operation has left',
    async (_what, answer, code) => {
      const { authorize, upstream } = await start(answer);
      await using _ = upstream;
      await expect(authorize()).rejects.toMatchObject({ code, dispatched: false });
    },
  );

  it.each(['', 'ends with a line\n', 'ñ'])(
    'is none where the service gives %j, which no header holds',
    async (token) => {
      const { authorize, upstream, written, log } = await start({ token });
      await using _ = upstream;
      await expect(authorize()).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', dispatched: false });
      expect(written).toEqual([]);
      expect(log.join()).toContain('gives the gateway no access token');
    },
  );

  it('that the service gives later is to be asked for no earlier than it says', async () => {
    const { authorize, upstream } = await start({ status: 429, retryAfter: '7' });
    await using _ = upstream;
    await expect(authorize()).rejects.toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      dispatched: false,
      retryAfterMs: 7_000,
    });
  });

  it.each([403, 408, 503])('that the service refuses with %i is told of with that status', async (status) => {
    const { authorize, upstream, log } = await start({ status });
    await using _ = upstream;
    await expect(authorize()).rejects.toThrow();
    expect(log.map((line) => JSON.parse(line))).toMatchObject([{ level: 'warn', status }]);
  });

  it('is counted each time that it is asked for, and told of once when there is none, and once when there is one again', async () => {
    const answer = { status: 403, token: 'plain' };
    const { auth, authorize, upstream, counted, log } = await start(answer);
    await using _ = upstream;
    const now = clock.now();
    let aheadMs = 0;
    // It stands still otherwise: the first pause is half a second long.
    const back = useClock({ ...clock, now: () => now + aheadMs });
    const told = () =>
      log
        .map((line) => JSON.parse(line))
        .map(({ level, message, code, status }) => [level, message, code, status]);
    const none = ['warn', 'the service gives the gateway no access token', 'FORBIDDEN', 403];
    const again = ['info', 'the service gives the gateway an access token again', undefined, undefined];
    try {
      await expect(authorize()).rejects.toThrow();
      // In the pause after that it is not asked for.
      await expect(authorize()).rejects.toThrow();
      expect([counted, told()]).toEqual([[false], [none]]);
      aheadMs += 600;
      await expect(authorize()).rejects.toThrow();
      expect([counted, told()]).toEqual([[false, false], [none]]);
      aheadMs += 1_100;
      answer.status = 200;
      await authorize();
      expect([counted, told()]).toEqual([
        [false, false, true],
        [none, again],
      ]);
      answer.status = 403;
      await expect(auth.authorize('', CLIENT.clientId)({ authorization: 'Bearer plain' })).rejects.toThrow();
      expect([counted, told()]).toEqual([
        [false, false, true, false],
        [none, again, none],
      ]);
    } finally {
      back();
    }
  });

  it('is each client’s own, and let go of with the gateway', async () => {
    const { auth, authorize, presented, stopped, upstream } = await start({});
    await using _ = upstream;
    await authorize(CLIENT.clientId);
    await authorize(OTHER.clientId);
    expect(presented).toEqual([
      ['k1', expect.stringContaining(CLIENT.clientId)],
      ['k2', expect.stringContaining(OTHER.clientId)],
    ]);
    await expect(authorize('of nobody')).rejects.toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      dispatched: false,
    });
    await auth.stop();
    expect(stopped.sort()).toEqual([CLIENT.clientId, OTHER.clientId]);
  });
});

it('a caller is one among clients where several are served, and nobody where its client is none of them', async () => {
  const { auth, upstream } = await start({});
  await using _ = upstream;
  const identify = async (merchant: string | undefined) =>
    auth.identify(await callerToken({ merchant }), RESTLESS, false, ASKER, undefined);
  for (const merchant of [OTHER.clientId, OTHER.clientId.toUpperCase()])
    expect(await identify(merchant)).toMatchObject({ clientId: OTHER.clientId, amongClients: true });
  const refused = await identify('11111111-2222-4333-8444-777777777777').catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: 'UNAUTHENTICATED' });
  // Which clients there are is not told.
  expect(await identify(undefined).catch((error: unknown) => error)).toEqual(refused);
});
