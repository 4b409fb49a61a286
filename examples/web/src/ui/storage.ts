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
