import { useEffect } from 'react';
import { endOf, endToken } from '../session.ts';

/** Longer waits overflow, and end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Has another token asked for as soon as this one has expired by the browser's clock. */
export function useTokenEnd(token: string | undefined): void {
  useEffect(() => {
    const end = token === undefined ? undefined : endOf(token)?.getTime();
    if (token === undefined || end === undefined) return;
    const wait = end - Date.now();
    if (wait > LONGEST_TIMER_MS) return;
    const timer = setTimeout(() => endToken(token, 'clock'), Math.max(0, wait));
    return () => clearTimeout(timer);
  }, [token]);
}
