import { describe, expect, it } from 'vitest';
import { UnauthenticatedError } from '../../src/auth/authenticator.ts';
import { type Caller, SCOPES } from '../../src/auth/caller.ts';
import { untilExpiry } from '../../src/auth/credential-expiry.ts';
import type { AlarmClock } from '../../src/common/alarms.ts';
import { UpstreamError } from '../../src/upstream/call/errors.ts';
import { until } from '../helpers/until.ts';

const caller = (expiresAt: number | undefined): Caller => ({
  clientId: 'c',
  customerId: undefined,
  subject: undefined,
  keyOwner: undefined,
  scopes: SCOPES,
  expiresAt,
});

/** A clock that stands still until the test lets a sleep end. */
function startClock() {
  const slept: number[] = [];
  let wake: (() => void) | undefined;
  let time = 1_000_000;
  const clock: AlarmClock = {
    now: () => time,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        slept.push(ms);
        wake = resolve;
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  };
  return {
    clock,
    slept,
    async pass() {
      await until(() => wake !== undefined);
      time += slept.at(-1) ?? 0;
      const current = wake;
      wake = undefined;
      current?.();
    },
  };
}

const never = () => Promise.reject(new Error('is not asked'));
const open = new AbortController().signal;

describe('a credential', () => {
  it('lapses at its end, not before', async () => {
    const { clock, slept, pass } = startClock();
    const lapse = untilExpiry(caller(clock.now() + 5_000), never, clock, open);
    await pass();
    expect(await lapse).toBeInstanceOf(UnauthenticatedError);
    expect(slept).toEqual([5_000]);
  });

  it('with an end far off is waited for in parts that timers can take', async () => {
    const { clock, slept, pass } = startClock();
    const lapse = untilExpiry(caller(clock.now() + 9_000_000), never, clock, open);
    for (let part = 0; part < 3; part += 1) await pass();
    expect(await lapse).toBeInstanceOf(UnauthenticatedError);
    expect(slept).toEqual([3_600_000, 3_600_000, 1_800_000]);
  });

  it('without an end is asked about every minute, and lapses when it is refused', async () => {
    const { clock, slept, pass } = startClock();
    const answers = [
      async () => caller(undefined),
      () => Promise.reject(new UpstreamError('UPSTREAM_UNAVAILABLE', 'away')),
      () => Promise.reject(new UnauthenticatedError('revoked')),
    ];
    const lapse = untilExpiry(caller(undefined), () => (answers.shift() ?? never)(), clock, open);
    for (let probe = 0; probe < 3; probe += 1) await pass();
    expect(await lapse).toMatchObject({ message: 'revoked' });
    expect(slept).toEqual([60_000, 60_000, 60_000]);
  });

  it('whose end is told later ends then', async () => {
    const { clock, slept, pass } = startClock();
    const told = async () => caller(clock.now() + 5_000);
    const lapse = untilExpiry(caller(undefined), told, clock, open);
    for (let part = 0; part < 2; part += 1) await pass();
    expect(await lapse).toMatchObject({ message: expect.stringContaining('expired') });
    expect(slept).toEqual([60_000, 5_000]);
  });

  it.each(['UNAUTHENTICATED', 'FORBIDDEN'] as const)('lapses where the service says %s', async (code) => {
    const { clock, pass } = startClock();
    const refused = () => Promise.reject(new UpstreamError(code, 'no'));
    const lapse = untilExpiry(caller(undefined), refused, clock, open);
    await pass();
    expect(await lapse).toMatchObject({ code });
  });

  it('with an end is asked about before where it may be withdrawn, until it is refused or ends', async () => {
    const { clock, slept, pass } = startClock();
    const end = clock.now() + 25_000;
    const answers = [
      async () => caller(end),
      () => Promise.reject(new UpstreamError('UPSTREAM_UNAVAILABLE', 'the keys are away')),
    ];
    const lapse = untilExpiry(caller(end), () => (answers.shift() ?? never)(), clock, open, 10_000);
    for (let part = 0; part < 3; part += 1) await pass();
    expect(await lapse).toMatchObject({ message: expect.stringContaining('expired') });
    expect(slept).toEqual([10_000, 10_000, 5_000]);
    const refused = () => Promise.reject(new UnauthenticatedError('withdrawn'));
    const other = untilExpiry(caller(clock.now() + 25_000), refused, clock, open, 10_000);
    await pass();
    expect(await other).toMatchObject({ message: 'withdrawn' });
  });

  it('is watched no longer once nobody listens', async () => {
    const { clock, slept } = startClock();
    const gone = new AbortController();
    const lapse = untilExpiry(caller(undefined), never, clock, gone.signal);
    await until(() => slept.length === 1);
    gone.abort();
    expect(await lapse).toBeUndefined();
  });
});
