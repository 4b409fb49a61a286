import { queryObjects } from 'node:v8';
import { expect, it } from 'vitest';
import { PollQueues } from '../../../src/upstream/session/poll-queues.ts';

it('nothing is kept of requesters whose readings have ended', () => {
  const queues = new PollQueues(1);
  // Each queue has sets of those that wait.
  const sets = () => queryObjects(Set, { format: 'count' });
  const before = sets();
  for (let number = 0; number < 2_000; number += 1) {
    queues.begin(`requester ${number}`);
    queues.end(`requester ${number}`);
  }
  expect(sets()).toBeLessThan(before + 500);
  expect(queues.isReady).toBe(false);
});
