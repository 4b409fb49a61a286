import { mkdtemp, rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BINDINGS } from './bindings.ts';
import { prepareCompiled } from './compiled.ts';
import { judge } from './kept.ts';
import { goThroughOutages } from './outages.ts';

let prepared: Awaited<ReturnType<typeof prepareCompiled>>;
beforeAll(async () => {
  prepared = await prepareCompiled();
});
afterAll(() => rm(prepared.work, { recursive: true, force: true }));

// `npm run soak:clients` goes through a thousand.
describe.concurrent('every program, through every kind of outage,', () => {
  it.for([
    ['a gateway with its own log', false],
    ['two gateways behind a Redis', true],
  ] as const)('loses nothing and repeats nothing from %s', { timeout: 1_500_000 }, async ([, redis]) => {
    const work = await mkdtemp(`${prepared.work}/kept-`);
    const { compiled } = prepared;
    const options = { redis, disconnects: 1, cutsInARow: 1, seed: 7, work, compiled, lifetimeSeconds: 1_500 };
    const { kept, outages, events } = await goThroughOutages(options);
    expect(Object.keys(outages)).toHaveLength(13);
    expect(events).toBeGreaterThan(1_000);
    // All at once: what goes wrong for each program is no fault of the one that is first in the list.
    const wrong = Object.entries(kept).filter(
      ([, { lost, repeated, complete }]) => lost > 0 || repeated > 0 || !complete,
    );
    expect(Object.fromEntries(wrong)).toEqual({});
    // Each feed was told of the events that its gateways had dropped; one that keeps nothing may have begun after them.
    for (const name of BINDINGS) expect(kept[name]?.gaps, name).toBeGreaterThan(0);
  });
});

it('the judge sees what is lost, repeated, missing behind a gap that says so, and not there yet', () => {
  const event = (number: number) => ({ id: String(number), cursor: String(number) });
  const start = { cursor: 'start' };
  const gap = { gap: 'EVENTS_GAP', cursor: 'oldest' };
  expect(judge([start, event(1), event(2)], 2)).toEqual({ lost: 0, repeated: 0, gaps: 0, complete: true });
  expect(judge([start, event(1), event(4)], 5)).toEqual({ lost: 2, repeated: 0, gaps: 0, complete: false });
  expect(judge([start, event(1), event(1)], 1)).toMatchObject({ repeated: 1 });
  expect(judge([start, event(1), gap, event(9)], 9)).toEqual({
    lost: 0,
    repeated: 0,
    gaps: 1,
    complete: true,
  });
});
