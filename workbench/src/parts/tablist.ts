import type { KeyboardEvent } from 'react';

const STEPS: Readonly<Record<string, (at: number, count: number) => number>> = {
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowLeft: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_at, count) => count - 1,
};

/** Moves between the tabs of a list by the arrow keys, Home and End: the tab that is reached is opened. */
export function moveInTabs(event: KeyboardEvent<HTMLElement>): void {
  const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>('[role="tab"]')];
  const { activeElement } = document;
  const at = activeElement instanceof HTMLElement ? tabs.indexOf(activeElement) : -1;
  const next = at === -1 ? undefined : tabs[STEPS[event.key]?.(at, tabs.length) ?? -1];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
  next.click();
}

/** What makes a button one of the tabs of a list: only the open one is reached by Tab. */
export const tabProps = (isOpen: boolean) =>
  ({ type: 'button', role: 'tab', 'aria-selected': isOpen, tabIndex: isOpen ? 0 : -1 }) as const;
