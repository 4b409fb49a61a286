import { useEffect, useState } from 'react';
import { endOf } from '../session.ts';

/** Longer waits overflow, and end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Whether a token has expired, as soon as it does. */
export function useTokenEnd(token: string | undefined): boolean {
  const end = (token === undefined ? undefined : endOf(token))?.getTime() ?? Number.POSITIVE_INFINITY;
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const wait = end - Date.now();
    if (wait > LONGEST_TIMER_MS) return;
    const timer = setTimeout(() => setNow(Date.now()), Math.max(0, wait));
    return () => clearTimeout(timer);
  }, [end]);
  return end <= now;
}
