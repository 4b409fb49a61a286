import type { Credit } from './documents.ts';

/** How many credits are kept on this device. */
const KEPT = 200;

/** The list and the cursor it reaches to. Kept as one value: the two are never out of step, whenever the page ends. */
export interface Saved {
  /** Newest first. */
  readonly credits: readonly Credit[];
  /** Of the last event seen. */
  readonly cursor: string;
}

const keyOf = (clientId: string): string => `pasarela.money-in.${clientId}`;

export function load(clientId: string): Saved | undefined {
  const text = localStorage.getItem(keyOf(clientId));
  // Nobody else writes under this key.
  return text === null ? undefined : (JSON.parse(text) as Saved);
}

/** Adds a credit in front. */
export function withCredit(saved: Saved, credit: Credit): Saved {
  return { credits: [credit, ...saved.credits].slice(0, KEPT), cursor: credit.cursor };
}

export function save(clientId: string, saved: Saved): void {
  localStorage.setItem(keyOf(clientId), JSON.stringify(saved));
}
