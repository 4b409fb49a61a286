import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { useAmbient as useClientAmbient } from '../../packages/client/src/ambient.ts';
import { useAmbient as useSandboxAmbient } from '../../packages/sandbox/src/ambient.ts';
import { type Clock, type Timer, useClock } from '../../src/common/clock.ts';
import { useDisk } from '../../src/common/disk.ts';
import { useEntropy } from '../../src/common/entropy.ts';
import { type Alarm, beside, currentProcess, type Process, type Simulation } from './core.ts';

/** A timer as Node's code expects it. */
class SimulatedTimer implements Timer {
  alarm: Alarm | undefined;
  unref(): this {
    return this;
  }
  ref(): this {
    return this;
  }
}

/** The databases that simulated processes have opened, by path: one that a gateway keeps to itself can be read by its own handle alone. */
const opened = new Map<string, DatabaseSync>();

/** The database that a simulated process has open at a path. */
export const databaseAt = (path: string): DatabaseSync | undefined => {
  const database = opened.get(path);
  return database?.isOpen ? database : undefined;
};

const alarmOf = (timer: unknown): Alarm | undefined =>
  timer instanceof SimulatedTimer ? timer.alarm : undefined;

/** Time and chance of the simulation, for whichever process runs. */
function clockOf(sim: Simulation): Clock {
  const skew = (): number => currentProcess()?.skewMs ?? 0;
  const after = (ms: number, work: () => void): SimulatedTimer => {
    const timer = new SimulatedTimer();
    timer.alarm = sim.after(ms, currentProcess(), work);
    return timer;
  };
  const clock: Clock = {
    now: () => Math.floor(sim.now + skew()),
    monotonic: () => sim.elapsed + 1,
    uptime: () => sim.elapsed + 1_000_000,
    setTimeout: (callback, ms, ...args) => after(Math.max(1, ms), () => callback(...args)),
    clearTimeout: (timer) => alarmOf(timer)?.cancel(),
    setInterval(callback, ms) {
      const timer = new SimulatedTimer();
      const again = (): void => {
        timer.alarm = sim.after(Math.max(1, ms), currentProcess(), () => {
          again();
          callback();
        });
      };
      again();
      return timer;
    },
    clearInterval: (timer) => alarmOf(timer)?.cancel(),
    setImmediate: (callback) => void after(0, callback),
    immediate: () => new Promise((resolve) => after(0, resolve)),
    sleep: (ms, { signal } = {}) =>
      new Promise((resolve, reject) => {
        const leave = (): void => {
          alarmOf(timer)?.cancel();
          reject(new DOMException('The operation was aborted', 'AbortError'));
        };
        const timer = after(Math.max(1, ms), () => {
          signal?.removeEventListener('abort', leave);
          resolve();
        });
        if (signal?.aborted) leave();
        else signal?.addEventListener('abort', leave, { once: true });
      }),
    timeoutSignal(ms) {
      const controller = new AbortController();
      after(ms, () => controller.abort(new DOMException('The operation timed out', 'TimeoutError')));
      return controller.signal;
    },
  };
  return clock;
}

/** Puts the simulation's time and chance, and disks that outlive processes, in the place of the system's. @returns puts them back. */
export function installAmbient(sim: Simulation): () => void {
  const clock = clockOf(sim);
  const chance = sim.chance('entropy');
  const handles = new WeakMap<Process, Set<DatabaseSync>>();
  const undo = [
    useClock(clock),
    useEntropy({
      uuid: () => chance.uuid(),
      bytes: (count) => chance.bytes(count),
      random: () => chance.number(),
    }),
    useSandboxAmbient({ ...clock, sleep: (ms) => clock.sleep(ms), uuid: () => chance.uuid() }),
    useClientAmbient({
      ...clock,
      setTimeout: (callback, ms = 0) => clock.setTimeout(callback, ms),
      // Only timers of this clock get there.
      clearTimeout: (timer) => clock.clearTimeout(timer as Timer),
      random: () => chance.number(),
    }),
    useDisk({
      open(path, busyTimeoutMs) {
        const database = new DatabaseSync(path, busyTimeoutMs === undefined ? {} : { timeout: 0 });
        opened.set(path, database);
        const process = currentProcess();
        if (process !== undefined) {
          const own = handles.get(process) ?? new Set();
          own.add(database);
          handles.set(process, own);
          // The operating system ends the locks of a process with it.
          process.atEnd(() => database.isOpen && database.close());
        }
        return database;
      },
      async replace(path, text) {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(`${path}.new`, text);
        renameSync(`${path}.new`, path);
      },
      // Here no machine loses its power.
      async sync() {},
    }),
    installGlobals(clock),
    installCryptography(),
    installLocks(),
  ];
  return () => {
    for (const put of undo.reverse()) put();
    opened.clear();
  };
}

/**
 * What this project depends on takes its timers from the globals: graphql-ws, ws, lru-cache. Theirs are simulated for code that runs as
 * a simulated process; for all other code, and for Node's own, nothing changes.
 */
function installGlobals(clock: Clock): () => void {
  const real = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
  };
  const monotonic = performance.now.bind(performance);
  const now = Date.now;
  const isSimulated = (): boolean => currentProcess() !== undefined;
  const simulated = {
    setTimeout: (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
      isSimulated() ? clock.setTimeout(callback, ms, ...args) : real.setTimeout(callback, ms, ...args),
    clearTimeout: (timer: unknown) =>
      timer instanceof SimulatedTimer
        ? clock.clearTimeout(timer)
        : real.clearTimeout(timer as NodeJS.Timeout),
    setInterval: (callback: () => void, ms = 0) =>
      isSimulated() ? clock.setInterval(callback, ms) : real.setInterval(callback, ms),
    clearInterval: (timer: unknown) =>
      timer instanceof SimulatedTimer
        ? clock.clearInterval(timer)
        : real.clearInterval(timer as NodeJS.Timeout),
  };
  Object.assign(globalThis, simulated);
  performance.now = () => (isSimulated() ? clock.monotonic() : monotonic());
  Date.now = () => (isSimulated() ? clock.now() : now());
  const RealDate = Date;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, given: ConstructorParameters<typeof Date>, newTarget) =>
      Reflect.construct(
        target,
        isSimulated() && Reflect.get(given, 0) === undefined ? [clock.now()] : given,
        newTarget,
      ),
  });
  return () => {
    Object.assign(globalThis, real);
    globalThis.Date = RealDate;
    // The method of the prototype is there again.
    Reflect.deleteProperty(performance, 'now');
    Date.now = now;
  };
}

/** What a runtime does beside its thread, of what tokens are signed and verified with. */
const BESIDE = ['importKey', 'sign', 'verify', 'digest'] as const;

/** Tokens are signed and verified beside the thread: the simulation waits for that. */
function installCryptography(): () => void {
  const { subtle } = globalThis.crypto;
  for (const name of BESIDE) {
    const real = subtle[name].bind(subtle) as (...given: never[]) => Promise<unknown>;
    const value = (...given: never[]): Promise<unknown> =>
      currentProcess() === undefined ? real(...given) : beside(() => real(...given));
    Object.defineProperty(subtle, name, { value, configurable: true });
  }
  return () => {
    for (const name of BESIDE) Reflect.deleteProperty(subtle, name);
  };
}

/** Web Locks, as a device gives them to its tabs: what a process holds, or waits for, ends with it. Node's own would outlive it. */
function installLocks(): () => void {
  /** Resolves once a lock is free, by device and name. */
  const free = new Map<string, Promise<void>>();
  const request = (name: string, work: () => Promise<void>): Promise<void> => {
    const process = currentProcess();
    const key = `${process?.device} ${name}`;
    const before = free.get(key) ?? Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    process?.atEnd(resolve);
    free.set(key, promise);
    const mine = before.then(() =>
      process?.isAlive === false ? Promise.withResolvers<void>().promise : work(),
    );
    return mine.finally(resolve);
  };
  Object.defineProperty(globalThis.navigator, 'locks', { value: { request }, configurable: true });
  return () => void Reflect.deleteProperty(globalThis.navigator, 'locks');
}
