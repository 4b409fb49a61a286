import { useEffect, useState } from 'react';

/**
 * What is said for a while. What is said next, the same once more too, has its whole time again.
 *
 * @returns the text, undefined once its time is over, and what says another.
 */
export function useSaid(milliseconds: number): [string | undefined, (text: string) => void] {
  const [said, say] = useState<{ readonly text: string }>();
  useEffect(() => {
    if (said === undefined) return;
    const timer = setTimeout(() => say(undefined), milliseconds);
    return () => clearTimeout(timer);
  }, [said, milliseconds]);
  return [said?.text, (text) => say({ text })];
}
