/** Calls each listener. What one throws, the platform reports as an unhandled rejection: it stops nothing here. */
export function tellAll(listeners: Iterable<() => void>): void {
  for (const listener of listeners) {
    try {
      listener();
    } catch (cause) {
      void Promise.reject(cause);
    }
  }
}
