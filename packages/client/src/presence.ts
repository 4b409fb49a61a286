import { ambient, type Timer } from './ambient.ts';

/** Called when the app and its network come and go. */
export interface Present {
  suspend(): void;
  resume(): void;
}

/** Watches the app and its network. @returns a function that stops that. */
export type Presence = (present: Present) => () => void;

/** How often the clock is read, and by how much it must leap for the machine to have slept, in milliseconds. */
const TICK_MS = 5_000;
const SLEPT_MS = 15_000;

/**
 * Watches a browser. It tells when its network is back, and when a page is shown again. A leap of the clock shows that the
 * machine has slept, or that the page was frozen. Where neither is available, only the tries of the feed find out.
 */
export const presence: Presence = (present) => {
  let seen = ambient.now();
  const { document, addEventListener, removeEventListener } = globalThis as Partial<typeof globalThis>;
  /** A hidden page is woken now and then. That is no reason to connect. */
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
    // Node's timers must not keep the process from ending.
    (timer as { unref?(): void }).unref?.();
  };
  tick();
  // Without a page there is nothing to capture before, and Cloudflare's workers throw where they are asked to.
  const events = { online: () => present.resume(), pageshow: look, visibilitychange: look };
  for (const [name, listener] of Object.entries(events)) addEventListener?.(name, listener, !!document);
  return () => {
    ambient.clearTimeout(timer);
    for (const [name, listener] of Object.entries(events)) removeEventListener?.(name, listener, !!document);
  };
};
