import { expect, it } from 'vitest';
import type { Gap } from '../../packages/client/src/index.ts';
import { unseen } from '../../packages/client/src/unseen.ts';

const event = (cursor: string) => ({ cursor });
const gap = (cursor: string): Gap<{ readonly cursor: string }> => ({
  gap: true,
  reason: 'EVENTS_GAP',
  cursor,
});
const [a, b, c] = [event('a'), event('b'), event('c')];
const [old, mine] = [gap('old'), gap('mine')];
const own = { ...mine, events: [a] };

it.each([
  ['a store that keeps no events', undefined, mine, 'a', [mine]],
  ['what came behind the last one shown', [a, b, c], undefined, 'a', [b, c]],
  ['nothing, where all was shown', [a, b], undefined, 'b', []],
  ['everything, where nothing was shown', [a, b], undefined, '', [a, b]],
  ['what came behind a gap, where nothing else was shown', [a, old, b], mine, 'old', [b]],
  ['a gap that another tab met first', [a, old, b], mine, 'a', [old, b]],
  ['what is behind the newest gap, where the last one shown is gone', [b, old, c], mine, 'a', [mine, c]],
  ['the same, where that is a gap', [b, old, c], mine, 'gone', [mine, c]],
  ['the list in place of its own', [b, c], own, 'a', [{ ...own, events: [b, c] }]],
  ['the same at its first start', [b, c], own, '', [{ ...own, events: [b, c] }]],
  ['the same from the newest gap on', [a, old, b], own, 'gone', [{ ...own, events: [b] }]],
  ['what came behind the last one shown, without its own list', [a, b], own, 'a', [b]],
] as const)('shows of what another tab has kept: %s', (_, kept, met, shown, expected) => {
  expect(unseen(kept, met, shown)).toEqual(expected);
});
