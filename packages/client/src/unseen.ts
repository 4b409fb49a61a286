import { cursorOf, type Gap, isGap, type Saved } from './stores.ts';

/**
 * Returns the items that another tab has kept, and that this one has not handed out. Where a list replaces what this tab has
 * shown, it is the stored one, because the feed goes on behind that.
 *
 * @param gap the gap that this tab was about to hand out, if any
 * @param shown the last event shown; if none, the place of the last gap told; else empty
 */
export function unseen<Event>(
  kept: Saved<Event>['events'],
  gap: Gap<Event> | undefined,
  shown: string,
): readonly (Event | Gap<Event> | undefined)[] {
  if (kept === undefined) return [gap];
  const place = kept.map(cursorOf).lastIndexOf(shown) + 1;
  if (place || !(shown || gap?.events)) return kept.slice(place);
  const behind = kept.slice(kept.map(isGap).lastIndexOf(true) + 1);
  // Behind the last gap are events alone.
  return gap?.events ? [{ ...gap, events: behind as Event[] }] : [gap, ...behind];
}
