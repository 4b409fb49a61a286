type Kept = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** What a page has where its browser blocks storage: it is gone with the page. */
const inMemory = (): Kept =>
  Object.create({
    getItem(this: Record<string, string>, key: string) {
      return this[key] ?? null;
    },
    setItem(this: Record<string, string>, key: string, value: string) {
      this[key] = value;
    },
    removeItem(this: Record<string, string>, key: string) {
      delete this[key];
    },
  });

function storageOf(name: 'localStorage' | 'sessionStorage'): Kept {
  try {
    // The look-up alone throws where it is blocked.
    return globalThis[name];
  } catch {
    return inMemory();
  }
}

/** Kept for all tabs of this browser. */
export const browserStorage = storageOf('localStorage');

/** Kept for this tab of the browser, until it is closed. */
export const tabStorage = storageOf('sessionStorage');
