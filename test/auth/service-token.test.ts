import { describe, expect, it } from 'vitest';
import {
  createServiceToken,
  type ServiceToken,
  type SharedTokenStore,
} from '../../src/auth/service-token.ts';
import { UpstreamError } from '../../src/upstream/call/errors.ts';
import { until } from '../helpers/until.ts';

/** A service that issues tokens of a minute's life, on a clock that the test moves. */
function start(share?: SharedTokenStore, lifeMs: number | undefined = 60_000) {
  const service = { time: 1_000_000, asked: 0, issued: 0, error: undefined as Error | undefined };
  const authorize = createServiceToken({
    issue: async () => {
      service.asked += 1;
      if (service.error !== undefined) throw service.error;
      service.issued += 1;
      return {
        token: `t${service.issued}`,
        expiresAt: lifeMs === undefined ? undefined : service.time + lifeMs,
      };
    },
    share,
    now: () => service.time,
  });
  return { service, authorize, now: async () => (await authorize())?.['authorization'] };
}

/** What several processes share, in this one. */
function shelf(): SharedTokenStore {
  let kept: ServiceToken | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  return {
    read: async () => kept,
    write: async (token) => {
      // As through a connection: others may read meanwhile.
      await new Promise(setImmediate);
      kept = token;
    },
    exclusively: (work) => {
      const mine = turn.then(work);
      turn = mine.catch(() => undefined);
      return mine;
    },
    stop: async () => undefined,
  };
}

describe('the gateway’s own token', () => {
  it('serves until it ends soon, and goes on serving while it is renewed', async () => {
    const { service, now } = start();
    expect(await now()).toBe('Bearer t1');
    service.time += 53_000;
    expect(await now()).toBe('Bearer t1');
    service.time += 2_000;
    expect(await now()).toBe('Bearer t1');
    await until(async () => (await now()) === 'Bearer t2');
    expect(service.issued).toBe(2);
  });

  it('outlives a renewal that fails, up to its end', async () => {
    const { service, now } = start();
    await now();
    service.time += 55_000;
    service.error = new Error('away');
    expect(await now()).toBe('Bearer t1');
    // It fails before anybody else asks.
    await new Promise(setImmediate);
    service.time += 5_000;
    await expect(now()).rejects.toThrow('away');
    service.error = undefined;
    service.time += 1_000;
    expect(await now()).toBe('Bearer t2');
  });

  it('is asked for again ever less often while the service gives none, whoever needs it', async () => {
    const { service, now } = start();
    service.error = new Error('away');
    for (let call = 0; call < 100; call += 1) await expect(now()).rejects.toThrow('away');
    expect(service.asked).toBe(1);
    // 0.5 s, then 1, 2, 4, 8 and 10 s apart.
    for (let second = 0; second < 60; second += 0.5) {
      service.time += 500;
      await expect(now()).rejects.toThrow('away');
    }
    expect(service.asked).toBe(1 + 4 + 5);
    service.error = undefined;
    service.time += 10_000;
    expect(await now()).toBe('Bearer t1');
    // The next failure is a first one again.
    service.time += 60_000;
    service.error = new Error('away');
    await expect(now()).rejects.toThrow('away');
    service.error = undefined;
    service.time += 500;
    expect(await now()).toBe('Bearer t2');
  });

  it('is asked for no earlier than the service says, within half a minute', async () => {
    const { service, now } = start();
    const refuse = (retryAfterMs: number) =>
      new UpstreamError('UPSTREAM_UNAVAILABLE', 'no token', { dispatched: false, retryAfterMs });
    service.error = refuse(20_000);
    await expect(now()).rejects.toThrow('no token');
    service.error = undefined;
    service.time += 19_999;
    // What is left of it, not what it was at first.
    await expect(now()).rejects.toMatchObject({ message: 'no token', dispatched: false, retryAfterMs: 1 });
    service.time += 1;
    expect(await now()).toBe('Bearer t1');
    service.time += 60_000;
    service.error = refuse(100);
    await expect(now()).rejects.toThrow('no token');
    // The pause of half a second is longer than what was asked for.
    service.time += 400;
    await expect(now()).rejects.toMatchObject({ retryAfterMs: 100 });
    service.time += 60_000;
    service.error = refuse(3_600_000);
    await expect(now()).rejects.toThrow('no token');
    service.error = undefined;
    service.time += 30_000;
    expect(await now()).toBe('Bearer t2');
  });

  it('is asked for at once where the clock was put back meanwhile', async () => {
    const { service, now } = start();
    service.error = new Error('away');
    await expect(now()).rejects.toThrow('away');
    service.error = undefined;
    service.time -= 3_600_000;
    expect(await now()).toBe('Bearer t1');
  });

  it('that has ended on arrival, by another clock, serves until it is refused', async () => {
    const { service, now } = start(undefined, -5_000);
    await now();
    service.time += 3_600_000;
    expect(await now()).toBe('Bearer t1');
    expect(service.issued).toBe(1);
  });

  it('is renewed once for a 401, and not again within half a minute', async () => {
    const { service, authorize, now } = start();
    const first = await authorize();
    expect(await authorize(first)).toEqual({ authorization: 'Bearer t2' });
    // Others that were refused with the first one need no renewal.
    expect(await authorize(first)).toEqual({ authorization: 'Bearer t2' });
    service.time += 29_000;
    await expect(authorize({ authorization: 'Bearer t2' })).rejects.toThrow('does not accept');
    service.time += 1_000;
    expect(await authorize({ authorization: 'Bearer t2' })).toEqual({ authorization: 'Bearer t3' });
    expect(await now()).toBe('Bearer t3');
  });

  it('may be renewed for a 401 at once where the clock was put back since, and not where that of another process is ahead', async () => {
    const share = shelf();
    const { service, authorize } = start(share, 600_000);
    const second = await authorize(await authorize());
    service.time -= 60_000;
    await expect(authorize(second)).rejects.toThrow('does not accept');
    service.time -= 3_600_000;
    expect(await authorize(second)).toEqual({ authorization: 'Bearer t3' });
    await expect(authorize({ authorization: 'Bearer t3' })).rejects.toThrow('does not accept');
  });

  it('may be renewed for a 401 half a minute after it was asked for, however long that took', async () => {
    let time = 1_000_000;
    let issued = 0;
    const authorize = createServiceToken({
      async issue() {
        issued += 1;
        time += 20_000;
        return { token: `t${issued}`, expiresAt: undefined };
      },
      share: undefined,
      now: () => time,
    });
    await authorize();
    expect(await authorize({ authorization: 'Bearer t1' })).toEqual({ authorization: 'Bearer t2' });
    time += 11_000;
    expect(await authorize({ authorization: 'Bearer t2' })).toEqual({ authorization: 'Bearer t3' });
  });

  it('is not renewed again for a 401 within half a minute, though it has ended and was renewed meanwhile', async () => {
    const { service, authorize } = start(undefined, 10_000);
    await authorize(await authorize());
    service.time += 10_000;
    const third = await authorize();
    expect(third).toEqual({ authorization: 'Bearer t3' });
    await expect(authorize(third)).rejects.toThrow('does not accept');
    service.time += 20_000;
    expect(await authorize(await authorize())).toEqual({ authorization: 'Bearer t5' });
  });

  it('is not renewed for a 401 within half a minute after another process did so, though what that one got has ended since', async () => {
    const share = shelf();
    const { service, authorize } = start(share, 600_000);
    const first = await authorize();
    const refusedAt = service.time;
    await share.write({ token: 'other', issuedAt: refusedAt, expiresAt: refusedAt + 5_000, refusedAt });
    service.time += 6_000;
    await expect(authorize(first)).rejects.toThrow('does not accept');
    service.time += 24_000;
    expect(await authorize(first)).toEqual({ authorization: 'Bearer t2' });
  });

  it('that has ended when the service refuses it is renewed within half a minute as well', async () => {
    const { service, authorize } = start(undefined, 10_000);
    const second = await authorize(await authorize());
    service.time += 10_000;
    expect(await authorize(second)).toEqual({ authorization: 'Bearer t3' });
  });

  it('is not replaced by an older one of another process, which it may have ended', async () => {
    const share = shelf();
    const older = { token: 'older', issuedAt: 1_000_000, expiresAt: undefined, refusedAt: undefined };
    await share.write(older);
    const { service, authorize } = start({ ...share, write: async () => undefined }, undefined);
    service.time += 120_000;
    const first = await authorize({ authorization: 'Bearer none' });
    expect(first).toEqual({ authorization: 'Bearer older' });
    const second = await authorize(first);
    expect(second).toEqual({ authorization: 'Bearer t1' });
    service.time += 30_000;
    expect(await authorize(second)).toEqual({ authorization: 'Bearer t2' });
    // The one that is shared says nothing of the renewals since.
    await expect(authorize({ authorization: 'Bearer t2' })).rejects.toThrow('does not accept');
  });

  it('that another process has left is not taken over once it has ended', async () => {
    const share = shelf();
    await share.write({ token: 'old', issuedAt: 0, expiresAt: 1_000_000, refusedAt: undefined });
    expect(await start(share).now()).toBe('Bearer t1');
    const newer = start(share);
    expect(await newer.now()).toBe('Bearer t1');
    expect(newer.service.issued).toBe(0);
  });

  it('is renewed by one of several processes, and taken over by the others', async () => {
    const share = shelf();
    const one = start(share);
    const two = start(share);
    expect(await Promise.all([one.now(), two.now()])).toEqual(['Bearer t1', 'Bearer t1']);
    expect(one.service.issued + two.service.issued).toBe(1);
    const refused = { authorization: 'Bearer t1' };
    await Promise.all([one.authorize(refused), two.authorize(refused)]);
    expect(one.service.issued + two.service.issued).toBe(2);
    expect(await one.now()).toBe(await two.now());
  });
});
