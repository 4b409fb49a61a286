import { cursorOf, type Gap, isGap, type Saved } from './stores.ts';

/**
 * Returns the items that another tab has kept, and that this one has not handed out.
 *
 * @param gap the gap that this tab was about to hand out, if any
 * @param shown the cursor of the last event handed out, or loaded; of the last gap before the first event; empty before both
 */
export function unseen<Event>(
  kept: Saved<Event>['events'],
  gap: Gap<Event> | undefined,
  shown: string,
): readonly (Event | Gap<Event> | undefined)[] {
  if (kept === undefined) return [gap];
  const place = kept.map(cursorOf).lastIndexOf(shown) + 1;
  return place === 0 && shown !== ''
    ? [gap, ...kept.slice(kept.map(isGap).lastIndexOf(true) + 1)]
    : kept.slice(place);
}
