/** What comes and goes with the app and its network. */
export interface Present {
  suspend(): void;
  resume(): void;
}

/** Watches for that. @returns stops watching. */
export type Presence = (present: Present) => () => void;

/** A browser tells when its network is back; where nothing tells, tries alone find out. */
export const presence: Presence = (present) => {
  if (typeof globalThis.addEventListener !== 'function') return () => {};
  const resume = () => present.resume();
  globalThis.addEventListener('online', resume);
  return () => globalThis.removeEventListener('online', resume);
};
