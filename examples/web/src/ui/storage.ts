/**
 * What this browser keeps for the page. It is looked up at each call: where a person blocks storage, `localStorage` itself throws, and
 * a page that looks it up while it draws shows nothing.
 */
export const storage = {
  getItem: (key: string): string | null => localStorage.getItem(key),
  setItem: (key: string, value: string): void => localStorage.setItem(key, value),
};

/** The keys that begin with `prefix`. Where storage is blocked nothing was kept, and there are none. */
export function keysWith(prefix: string): string[] {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}

/**
 * Asks the browser to delete nothing of this page by itself, as where the disk is full: with the key of a payment whose end nobody knows
 * gone, the next press would be another payment. A page over plain http cannot ask.
 */
export function askToKeep(): void {
  const { storage: kept } = navigator as Partial<Pick<Navigator, 'storage'>>;
  void kept?.persist().catch(() => {});
}
