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

it.each([
  ['a store that keeps no events', undefined, mine, 'a', false, [mine]],
  ['what came behind the last one shown', [a, b, c], undefined, 'a', false, [b, c]],
  ['nothing, where all was shown', [a, b], undefined, 'b', false, []],
  ['everything, where nothing was shown', [a, b], undefined, '', false, [a, b]],
  ['a gap that another tab met first', [a, old, b], mine, 'a', false, [old, b]],
  ['no gap that was told already', [a, old, b], undefined, 'a', true, [b]],
  [
    'nothing, where a gap was told and the list loaded afresh ends with the last one shown',
    [a, b],
    undefined,
    'b',
    true,
    [],
  ],
  [
    'what is behind the newest gap, where the last one shown is gone',
    [b, old, c],
    mine,
    'a',
    false,
    [mine, c],
  ],
] as const)('shows of what another tab has kept: %s', (_, kept, own, shown, isTold, expected) => {
  expect(unseen(kept, own, shown, isTold)).toEqual(expected);
});
