import type { TabsState } from '@graphiql/react';
import { browserStorage } from './browser-storage.ts';
import { WATCH_RECEIPT, withNewKeys } from './story.ts';

const PREFIX = 'pasarela:';

/** What GraphiQL keeps of tabs, history and sizes, apart from what else is kept under this origin. */
export const storage = {
  get length(): number {
    return ownKeys().length;
  },
  getItem: (key: string): string | null => browserStorage.getItem(placeOf(key)),
  setItem: (key: string, value: string): void => {
    if (key === TABS && areForgotten) return;
    browserStorage.setItem(placeOf(key), HISTORY.includes(key) ? withoutHeaders(value) : value);
  },
  removeItem: (key: string): void => browserStorage.removeItem(placeOf(key)),
  clear: (): void => {
    for (const key of ownKeys()) browserStorage.removeItem(key);
  },
};

const ownKeys = (): string[] => Object.keys(browserStorage).filter((key) => key.startsWith(PREFIX));

/** Where GraphiQL keeps its tabs, and apart from them what the open one holds. */
const TABS = 'graphiql:tabState';
const OPEN_TAB = ['query', 'variables'] as const;
const OF_TABS: readonly string[] = [TABS, ...OPEN_TAB.map((name) => `graphiql:${name}`)];

/**
 * Whether this page is in front of a sandbox, whose tabs are kept apart: their keys are renewed, and the key of a payment that a real
 * service has, at the same address before, has to stay.
 */
let isOfSandbox = false;

const placeOf = (key: string): string =>
  PREFIX + (isOfSandbox && OF_TABS.includes(key) ? 'sandbox:' : '') + key;

/** Validations whose ids the page has filled into a receipt's watch, the latest first. */
const FILLED_IN = 'filled-in';
/** More than there are tabs to fill. */
const MOST_FILLED_IN = 50;

const filledIn = (): readonly string[] => storage.getItem(FILLED_IN)?.split(' ') ?? [];

/** Whether the page has filled in this id, on this visit or one before; any other was written by a person, and stays. */
export const isFilledIn = (id: string): boolean => id === '' || filledIn().includes(id);

/** Remembers an id that the page fills in. */
export const rememberFilledIn = (id: string): void =>
  storage.setItem(FILLED_IN, [...new Set([id, ...filledIn()])].slice(0, MOST_FILLED_IN).join(' '));
/** GraphiQL keeps these to itself, and so does what is written here. */
const NOT_KEPT = ['hash', 'response', 'headers'];

/** Where GraphiQL keeps what was played, with the headers that it was sent with: these may hold a token. */
const HISTORY = ['graphiql:queries', 'graphiql:favorites'];

function withoutHeaders(history: string): string {
  try {
    return JSON.stringify(JSON.parse(history), (key, value) => (key === 'headers' ? undefined : value));
  } catch {
    // GraphiQL reads this as none.
    return '';
  }
}

/** Whether this page begins anew: it writes no tabs then as it is left. */
let areForgotten = false;

/** Writes the tabs down in GraphiQL's own form. */
export function writeTabs(state: TabsState): void {
  storage.setItem(
    TABS,
    JSON.stringify(state, (key, value) => (NOT_KEPT.includes(key) ? null : value)),
  );
}

/**
 * Called before GraphiQL reads its history and its tabs. It writes the tabs and what the open one holds at different moments: a page
 * that is left between them would come back with that tab twice. The tabs hold everything. In front of a sandbox no receipt of the visit
 * before is watched either.
 *
 * @param isSandbox In front of a real service a key stays: the payment that it stands for may be unclear, and another one would pay again.
 */
export function renewKeys(isSandbox: boolean): void {
  for (const key of HISTORY) {
    // An earlier version has kept the headers.
    const history = storage.getItem(key);
    if (history !== null) storage.setItem(key, history);
  }
  isOfSandbox = isSandbox;
  const state = storage.getItem(TABS);
  if (state === null) return;
  try {
    const kept = JSON.parse(isSandbox ? withNewKeys(state) : state);
    const tabs = isSandbox ? kept.tabs.map(withoutValidation) : kept.tabs;
    storage.setItem(TABS, JSON.stringify({ ...kept, tabs }));
    const { activeTabIndex } = kept;
    for (const name of OPEN_TAB) storage.setItem(`graphiql:${name}`, tabs[activeTabIndex]?.[name] ?? '');
  } catch {
    // Whoever wrote that, the story is told from its beginning.
    forgetTabs();
  }
}

/** A receipt's watch without the validation that the page has filled in; another tab as it is. */
function withoutValidation<T extends { readonly title?: string; readonly variables?: string | null }>(
  tab: T,
): T {
  if (tab.title !== WATCH_RECEIPT || !tab.variables) return tab;
  const variables = tab.variables.replace(
    /("transactionId"\s*:\s*")([^"]*)"/,
    (whole, name: string, id: string) => (isFilledIn(id) ? `${name}"` : whole),
  );
  return { ...tab, variables };
}

/** The ids of the tabs that were written down. Another page of this browser may have written others meanwhile. */
export function keptTabs(): readonly string[] {
  try {
    const { tabs } = JSON.parse(storage.getItem(TABS) ?? '{}') as { tabs: readonly { id: string }[] };
    return tabs.map(({ id }) => id);
  } catch {
    return [];
  }
}

/** The next page begins with the story. */
export function forgetTabs(): void {
  areForgotten = true;
  for (const key of OF_TABS) storage.removeItem(key);
}
