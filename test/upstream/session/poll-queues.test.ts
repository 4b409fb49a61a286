import { queryObjects } from 'node:v8';
import { expect, it } from 'vitest';
import { PollQueues } from '../../../src/upstream/session/poll-queues.ts';
import { Pace, SharedPoll } from '../../../src/upstream/session/shared-poll.ts';

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

it.each(['hinted', 'due'] as const)(
  'a poll that is %s is taken once, and not at all once it was taken out',
  (way) => {
    const queues = new PollQueues(2);
    const poll = new SharedPoll('one', [], new Pace(0), () => undefined);
    const polled = {
      ...{ pollKey: 'one', pollRequester: 'requester', schedule: [] },
      ...{ read: async () => null, takePoll: () => false, pollFailed: () => false },
    };
    poll.add(polled);
    queues.add(poll, way);
    expect(queues.take()).toEqual({ poll, requester: 'requester' });
    expect([queues.isReady, queues.take()]).toEqual([false, undefined]);
    queues.add(poll, way);
    poll.remove(polled);
    queues.leave(poll, 'requester');
    expect([queues.isReady, queues.take()]).toEqual([false, undefined]);
  },
);
