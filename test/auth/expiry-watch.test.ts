import { describe, expect, it } from 'vitest';
import { UnauthenticatedError } from '../../src/auth/authenticator.ts';
import { assertHolds } from '../../src/auth/credential-expiry.ts';
import { createExpiryWatch, type Expiring } from '../../src/auth/expiry-watch.ts';
import type { AlarmClock } from '../../src/common/alarms.ts';
import { UpstreamError } from '../../src/upstream/call/errors.ts';
import { until } from '../helpers/until.ts';

const MINUTE = 60_000;
const REFUSED = new UnauthenticatedError('refused');

class Socket implements Expiring {
  expiresAt: number | undefined;
  closed = 0;
  reason: Error | undefined;

  expired(reason: Error): void {
    this.closed += 1;
    this.reason = reason;
  }
}

type Found = number | undefined | Error;

/** A watch on a clock that is moved by hand. A credential that is asked about again is found to end as `ends` says, or to be refused. */
function start(
  ends: (asked: number) => Found | Promise<Found> = () => new Error('nobody asks'),
  againMs?: number,
) {
  let now = 1_000_000;
  let timers = 0;
  let sleeping: { readonly until: number; wake(): void } | undefined;
  const asked = new Map<string | undefined, number>();
  const clock: AlarmClock = {
    now: () => now,
    monotonic: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        timers += 1;
        const own = { until: now + ms, wake: resolve };
        sleeping = own;
        signal.addEventListener('abort', () => {
          timers -= 1;
          if (sleeping === own) sleeping = undefined;
          reject(signal.reason);
        });
      }),
  };
  const watch = createExpiryWatch({
    clock,
    againMs,
    async identify(authorization) {
      const count = (asked.get(authorization) ?? 0) + 1;
      asked.set(authorization, count);
      const end = await ends(count);
      if (end instanceof Error) throw end;
      return { expiresAt: end };
    },
  });
  return {
    watch,
    asked,
    now: () => now,
    timers: () => timers,
    isAsleep: () => sleeping !== undefined,
    async pass(ms: number) {
      await until(() => sleeping !== undefined);
      now += ms;
      if (sleeping === undefined || sleeping.until > now) return;
      const { wake } = sleeping;
      sleeping = undefined;
      timers -= 1;
      wake();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

it('a credential has ended at the moment that it names', () => {
  expect(() => assertHolds({ expiresAt: 5_000 }, 4_999)).not.toThrow();
  expect(() => assertHolds({ expiresAt: 5_000 }, 5_000)).toThrow(UnauthenticatedError);
  expect(() => assertHolds({ expiresAt: undefined }, 5_000)).not.toThrow();
});

describe('the credentials of sockets and streams', () => {
  it('end each at its own time, on one timer, and those of one credential together', async () => {
    const { watch, now, pass, timers, isAsleep, asked } = start();
    const sockets = ['3000', '1000', '2000', '1000'].map((authorization) => {
      const socket = new Socket();
      watch.watch(socket, authorization, { expiresAt: 1_000_000 + Number(authorization) });
      return socket;
    });
    expect(timers()).toBe(1);
    const closed = () => sockets.map((socket) => socket.closed);
    await pass(1_000);
    expect([now(), closed()]).toEqual([1_001_000, [0, 1, 0, 1]]);
    await pass(1_000);
    expect(closed()).toEqual([0, 1, 1, 1]);
    await pass(1_000);
    expect(closed()).toEqual([1, 1, 1, 1]);
    expect([isAsleep(), asked.size]).toEqual([false, 0]);
  });

  it('without an end are asked about again every minute, until they are refused', async () => {
    const { watch, asked, pass } = start((count) => {
      if (count === 2) return new Error('away');
      return count === 3 ? REFUSED : undefined;
    });
    const socket = new Socket();
    watch.watch(socket, 'one', { expiresAt: undefined });
    for (const count of [1, 2]) {
      await pass(MINUTE);
      await until(() => asked.get('one') === count);
      expect(socket.closed).toBe(0);
    }
    await pass(MINUTE);
    await until(() => socket.closed === 1);
  });

  it('with an end are asked about before where they may be withdrawn, until they are refused or end', async () => {
    const { watch, asked, pass, now } = start((count) => {
      if (count === 2) return new Error('away');
      return count === 3 ? REFUSED : 9_000_000;
    }, 2 * MINUTE);
    const [socket, ending] = [new Socket(), new Socket()];
    watch.watch(socket, 'one', { expiresAt: 9_000_000 });
    watch.watch(ending, 'two', { expiresAt: now() + MINUTE });
    await pass(MINUTE);
    expect([ending.closed, asked.size]).toEqual([1, 0]);
    await pass(MINUTE);
    await until(() => asked.get('one') === 1);
    await pass(2 * MINUTE);
    await until(() => asked.get('one') === 2);
    expect(socket.closed).toBe(0);
    // It could not be found out: it is asked about a minute later.
    await pass(MINUTE);
    await until(() => socket.closed === 1);
  });

  it('end at their own time also where it could not be found out shortly before whether they hold', async () => {
    const { watch, asked, pass, now } = start(() => new Error('away'), 2 * MINUTE);
    const [socket, doubted] = [new Socket(), new Socket()];
    watch.watch(socket, 'one', { expiresAt: now() + 2 * MINUTE + 10_000 });
    watch.watch(doubted, 'two', { expiresAt: now() + 2 * MINUTE + 10_000 });
    await pass(2 * MINUTE);
    await until(() => asked.size === 2);
    expect(await watch.doubt('two')).toBe(false);
    expect([socket.closed, doubted.closed]).toEqual([0, 0]);
    await pass(10_000);
    expect([socket.closed, doubted.closed, asked.get('one')]).toEqual([1, 1, 1]);
  });

  it('end at their own time also while it is being asked whether they hold', async () => {
    const { watch, asked, pass, now } = start(() => new Promise<Found>(() => {}), 2 * MINUTE);
    const socket = new Socket();
    watch.watch(socket, 'one', { expiresAt: now() + 2 * MINUTE + 10_000 });
    await pass(2 * MINUTE);
    await until(() => asked.get('one') === 1);
    expect(socket.closed).toBe(0);
    await pass(10_000);
    expect([socket.closed, asked.get('one')]).toEqual([1, 1]);
  });

  it.each(['Bearer one', 'bearer  one', 'Bearer one '])(
    'that an operation was refused for are asked about at once, each time, and once for all who want to know: %j',
    async (written) => {
      const { watch, asked } = start((count) => {
        if (count === 1) return 9_000_000;
        return count === 2 ? new Error('away') : REFUSED;
      });
      const sockets = [new Socket(), new Socket()];
      for (const socket of sockets) watch.watch(socket, written, { expiresAt: 9_000_000 });
      const doubt = () => Promise.all([watch.doubt(written), watch.doubt(written)]);
      // One endpoint alone refuses it, or nobody can tell.
      for (const count of [1, 2]) {
        expect([await doubt(), asked.get(written)]).toEqual([[false, false], count]);
        expect(sockets.map(({ closed }) => closed)).toEqual([0, 0]);
      }
      expect([await doubt(), asked.get(written)]).toEqual([[true, true], 3]);
      const closed = sockets.map(({ closed, reason }) => [closed, reason]);
      expect(closed).toEqual(sockets.map(() => [1, REFUSED]));
      expect(watch.isWatched(written)).toBe(false);
    },
  );

  it('that the service takes again after it refused them once are asked about at each later refusal', async () => {
    const { watch, asked } = start((count) => (count === 2 ? 9_000_000 : REFUSED));
    const [before, after] = [new Socket(), new Socket()];
    watch.watch(before, 'one', { expiresAt: 9_000_000 });
    expect([await watch.doubt('one'), before.closed]).toEqual([true, 1]);
    watch.watch(after, 'one', { expiresAt: 9_000_000 });
    expect([await watch.doubt('one'), after.closed, asked.get('one')]).toEqual([false, 0, 2]);
    expect([await watch.doubt('one'), after.closed, asked.get('one')]).toEqual([true, 1, 3]);
  });

  it('are asked about anew where a question of before has no answer yet: that may be older than the refusal', async () => {
    const first = Promise.withResolvers<undefined>();
    const { watch, asked, pass } = start((count) => (count === 1 ? first.promise : REFUSED));
    const socket = new Socket();
    watch.watch(socket, 'Bearer one', { expiresAt: undefined });
    await pass(MINUTE);
    await until(() => asked.get('Bearer one') === 1);
    expect(await watch.doubt('Bearer one')).toBe(true);
    expect(socket.closed).toBe(1);
    first.resolve(undefined);
  });

  it('that nobody has are asked about as well, as they may be believed', async () => {
    const { watch, asked, isAsleep } = start((count) => (count === 1 ? undefined : REFUSED));
    watch.watch(new Socket(), 'Bearer another', { expiresAt: undefined });
    // The scheme has no case.
    expect([watch.isWatched('bearer  another'), watch.isWatched('one')]).toEqual([true, false]);
    for (const hasEnded of [false, true]) expect(await watch.doubt('one')).toBe(hasEnded);
    expect([asked.get('one'), isAsleep()]).toEqual([2, true]);
  });

  it.each(['UNAUTHENTICATED', 'FORBIDDEN'] as const)('end where the service says %s', async (code) => {
    const { watch } = start(() => new UpstreamError(code, 'no'));
    const socket = new Socket();
    watch.watch(socket, 'one', { expiresAt: undefined });
    expect([await watch.doubt('one'), socket.reason]).toEqual([true, expect.objectContaining({ code })]);
  });

  it('are not waited for once their sockets are gone', async () => {
    const { watch, isAsleep } = start();
    const [one, other] = [new Socket(), new Socket()];
    for (const socket of [one, other]) watch.watch(socket, 'one', { expiresAt: 2_000_000 });
    expect(isAsleep()).toBe(true);
    watch.leave(one, 'one');
    expect(isAsleep()).toBe(true);
    watch.leave(other, 'one');
    expect(isAsleep()).toBe(false);
  });

  it('are waited for on where one leaves that never had them, or has left before', () => {
    const { watch, isAsleep } = start();
    const [staying, left, other] = [new Socket(), new Socket(), new Socket()];
    watch.watch(left, 'one', { expiresAt: 2_000_000 });
    watch.leave(left, 'one');
    watch.watch(staying, 'one', { expiresAt: 2_000_000 });
    for (const socket of [left, other]) watch.leave(socket, 'one');
    expect([watch.isWatched('one'), isAsleep()]).toEqual([true, true]);
    watch.leave(staying, 'one');
    expect([watch.isWatched('one'), isAsleep()]).toEqual([false, false]);
  });

  it('are the same however the scheme is written, until their sockets are gone', () => {
    const { watch, isAsleep } = start();
    const [one, other] = [new Socket(), new Socket()];
    watch.watch(one, 'bearer  one', { expiresAt: 2_000_000 });
    watch.watch(other, 'Bearer one', { expiresAt: 2_000_000 });
    expect(watch.isWatched('BEARER one')).toBe(true);
    watch.leave(one, 'bearer  one');
    expect(watch.isWatched('Bearer one')).toBe(true);
    watch.leave(other, 'bEARER one');
    expect([watch.isWatched('Bearer one'), isAsleep()]).toEqual([false, false]);
  });

  it('end on a socket that writes spaces behind them, where another that does not was refused', async () => {
    const { watch } = start(() => REFUSED);
    const socket = new Socket();
    watch.watch(socket, 'Bearer one  ', { expiresAt: 2_000_000 });
    expect(await watch.doubt('bearer  one')).toBe(true);
    expect([socket.closed, watch.isWatched('Bearer one  ')]).toEqual([1, false]);
  });

  it('tell their end to each socket that has them, also to one that comes later', async () => {
    const { watch, asked, pass } = start(() => 2_000_000);
    const [one, later] = [new Socket(), new Socket()];
    watch.watch(one, 'one', { expiresAt: undefined });
    await pass(MINUTE);
    await until(() => one.expiresAt === 2_000_000);
    watch.watch(later, 'one', { expiresAt: undefined });
    expect([later.expiresAt, asked.get('one')]).toEqual([2_000_000, 1]);
    watch.end('one');
    watch.end('one');
    expect([one.closed, later.closed]).toEqual([1, 1]);
    expect(one.reason?.message).toContain('has expired');
  });

  it('are waited for no more where their sockets leave while they are asked about', async () => {
    const socket = new Socket();
    const { watch, asked, isAsleep, pass } = start(() => {
      watch.leave(socket, 'one');
      return 2_000_000;
    });
    watch.watch(socket, 'one', { expiresAt: undefined });
    await pass(MINUTE);
    await until(() => asked.get('one') === 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect([isAsleep(), socket.expiresAt]).toEqual([false, undefined]);
  });
});
