import { readFileSync } from 'node:fs';
import { clock } from '../common/clock.ts';

/**
 * The clock of the kernel. It counts the time since the machine was started, including its sleep and times in which no
 * process ran, and it cannot be set. Two readings can be compared only if the machine was not started again in between.
 */
export interface BootClock {
  /** Names this start of the machine. */
  readonly id: string;
  /** Ms since then. */
  now(): number;
}

/** @returns undefined on systems that do not name the start of the machine: only Linux does. */
export function systemBootClock(): BootClock | undefined {
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return { id, now: () => Math.floor(clock.uptime()) };
  } catch {
    return undefined;
  }
}

/** The clocks of one process. */
export interface Clocks {
  /** Ms since the epoch, by the clock of the machine, which may be set. */
  now(): number;
  readonly boot: BootClock | undefined;
}

export const systemClocks = (): Clocks => ({ now: () => clock.now(), boot: systemBootClock() });

/** A moment as two clocks of a process showed it. */
export interface Stamp {
  readonly wall: number;
  readonly bootId: string;
  readonly bootMs: number;
}

export const stampOf = ({ now, boot }: Clocks): Stamp => ({
  wall: now(),
  bootId: boot?.id ?? '',
  bootMs: boot?.now() ?? 0,
});

/** Returns how long ago a moment was, in ms, by the clock that gives the longer time. */
export function ageOf(stamp: Stamp, { now, boot }: Clocks): number {
  const byWall = now() - stamp.wall;
  return boot === undefined || boot.id !== stamp.bootId
    ? byWall
    : Math.max(byWall, boot.now() - stamp.bootMs);
}
