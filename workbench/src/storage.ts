import { withNewKeys } from './story.ts';

const PREFIX = 'pasarela:';

/** What GraphiQL keeps of tabs, history and sizes, apart from what else is kept under this origin. */
export const storage = {
  get length(): number {
    return ownKeys().length;
  },
  getItem: (key: string): string | null => localStorage.getItem(PREFIX + key),
  setItem: (key: string, value: string): void => localStorage.setItem(PREFIX + key, value),
  removeItem: (key: string): void => localStorage.removeItem(PREFIX + key),
  clear: (): void => {
    for (const key of ownKeys()) localStorage.removeItem(key);
  },
};

const ownKeys = (): string[] => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));

/** Where GraphiQL keeps what its tabs hold. */
const TABS = ['graphiql:tabState', 'graphiql:query', 'graphiql:variables'];

/** Called before GraphiQL reads its tabs. */
export function renewKeys(): void {
  const state = TABS.map((key) => storage.getItem(key) ?? '');
  const renewed = withNewKeys(state.join('\u0000')).split('\u0000');
  for (const [index, key] of TABS.entries()) {
    const value = renewed[index] ?? '';
    if (value !== '' && value !== state[index]) storage.setItem(key, value);
  }
}

/** The next page begins with the story. */
export function forgetTabs(): void {
  for (const key of TABS) storage.removeItem(key);
}
