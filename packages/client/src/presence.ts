import { ambient, type Timer } from './ambient.ts';

/** What comes and goes with the app and its network. */
export interface Present {
  suspend(): void;
  resume(): void;
}

/** Watches for that. @returns stops watching. */
export type Presence = (present: Present) => () => void;

/** How often the clock is looked at, and what it has to leap by, in milliseconds, for the machine to have slept. */
const TICK_MS = 5_000;
const SLEPT_MS = 15_000;

/**
 * A browser tells when its network is back, and when a page is shown again; a clock that leaps tells that the machine has slept,
 * or that the page was frozen. Where nothing tells, tries alone find out.
 */
export const presence: Presence = (present) => {
  let seen = ambient.now();
  const { document, addEventListener, removeEventListener } = globalThis as Partial<typeof globalThis>;
  /** A page that nobody sees is woken now and then: that is no reason to come back. */
  const look = () => {
    if (document?.hidden) return;
    const slept = ambient.now() - seen > SLEPT_MS;
    seen = ambient.now();
    if (slept) present.resume();
  };
  let timer: Timer;
  const tick = () => {
    look();
    timer = ambient.setTimeout(tick, TICK_MS);
    // Node's own timers, which keep nobody from ending.
    (timer as { unref?(): void }).unref?.();
  };
  tick();
  const events = { online: () => present.resume(), pageshow: look, visibilitychange: look };
  for (const [name, listener] of Object.entries(events)) addEventListener?.(name, listener, true);
  return () => {
    ambient.clearTimeout(timer);
    for (const [name, listener] of Object.entries(events)) removeEventListener?.(name, listener, true);
  };
};
