import { onTestFinished, vi } from 'vitest';

/**
 * Holds the clock that only goes forward, in which the gateway measures how long calls stay suspended, and a refusal is remembered. On a slow
 * machine a test may take longer than that.
 *
 * @returns a function that lets it go on; at the end of the test it does so by itself.
 */
export function holdTime(): () => void {
  const now = performance.now();
  const held = vi.spyOn(performance, 'now').mockReturnValue(now);
  const goOn = () => void held.mockRestore();
  onTestFinished(goOn);
  return goOn;
}
