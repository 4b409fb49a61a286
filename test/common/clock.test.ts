import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { afterEach, expect, it } from 'vitest';
import { ambient as clients, useAmbient as useClients } from '../../packages/client/src/ambient.ts';
import { ambient as sandboxes, useAmbient as useSandboxes } from '../../packages/sandbox/src/ambient.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { entropy, useEntropy } from '../../src/common/entropy.ts';

const undo: (() => void)[] = [];

afterEach(() => {
  for (const put of undo.splice(0)) put();
});

it('whoever asks for the time is told by the clock that was put in the place of the system’s, until it is put back', () => {
  const before = clock.now();
  const back = useClock({ ...clock, now: () => 7, monotonic: () => 8 });
  expect([clock.now(), clock.monotonic()]).toEqual([7, 8]);
  back();
  expect(clock.now()).toBeGreaterThanOrEqual(before);
});

it('whoever asks for chance is given that of another source, until it is taken away', () => {
  const back = useEntropy({ uuid: () => 'u', bytes: (count) => Buffer.alloc(count, 1), random: () => 0.5 });
  expect([entropy.uuid(), entropy.bytes(2), entropy.random()]).toEqual(['u', Buffer.from([1, 1]), 0.5]);
  back();
  expect(entropy.uuid()).toMatch(/^[0-9a-f-]{36}$/);
});

it('the client and the sandbox have one source each', () => {
  undo.push(useClients({ ...clients, now: () => 1 }), useSandboxes({ ...sandboxes, now: () => 2 }));
  expect([clients.now(), sandboxes.now()]).toEqual([1, 2]);
});

it('a container that shows its own start has the time since the start of its machine told all the same', () => {
  const told = os.uptime;
  undo.push(() => {
    os.uptime = told;
    syncBuiltinESMExports();
  });
  const shownAs = (seconds: number): number => {
    os.uptime = () => seconds;
    syncBuiltinESMExports();
    return clock.uptime();
  };
  expect(shownAs(0)).toBeGreaterThan(0);
  expect(shownAs(1e9)).toBe(1e12);
});

it('a wait of the system’s clock ends with the signal that it was given', async () => {
  const leaving = new AbortController();
  const waiting = clock.sleep(60_000, { signal: leaving.signal });
  leaving.abort();
  await expect(waiting).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
});
