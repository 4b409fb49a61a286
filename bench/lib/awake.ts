/**
 * Does work without letting this process sleep, where it would wait for answers. Over loopback, a server that answers a sleeper pays for
 * waking it, and one that is faster than its reader never meets it asleep; over a network none does. It takes a core of its own.
 */
export async function awake<T>(work: () => Promise<T>): Promise<T> {
  let waiting = true;
  const poll = (): void => {
    if (waiting) setImmediate(poll);
  };
  poll();
  try {
    return await work();
  } finally {
    waiting = false;
  }
}
