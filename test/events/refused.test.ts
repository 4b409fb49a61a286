import { expect, it } from 'vitest';
import { encodeCursor } from '../../src/events/cursor.ts';
import { EventsGapError } from '../../src/events/errors.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { LogReader } from '../../src/events/reader.ts';
import { MemorySource } from './memory-source.ts';

const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';

/** A log of which the oldest events are no longer held, and the cursor of one of those. */
function trimmed() {
  const source = new MemorySource();
  for (let number = 0; number < 10; number += 1) source.append(CLIENT, 'STATUS_UPDATE', {}, 'lost');
  const lost = source.entries[2]?.event.cursor;
  source.trim(5);
  return { source, lost, log: new LogReader(source, silentMetrics) };
}

it.each(['a trimmed event', 'another life of the log'])(
  'one who is refused as it resumes from %s leaves nobody who listens',
  async (from) => {
    const { source, lost, log } = trimmed();
    const place = { epoch: '0mf3k2x9c0123456789ab', position: '3' };
    const after = from === 'a trimmed event' ? lost : encodeCursor(CLIENT, place);
    for (const _time of ['first', 'second']) {
      await expect(log.follow(CLIENT, { after })).rejects.toBeInstanceOf(EventsGapError);
      expect(source.isFollowed).toBe(false);
    }
    await log.stop();
  },
);

it('one who is refused while others follow lets the last of them end what all had', async () => {
  const { source, lost, log } = trimmed();
  const stream = await log.follow(CLIENT);
  await expect(log.follow(CLIENT, { after: lost })).rejects.toBeInstanceOf(EventsGapError);
  const { event } = source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  expect((await stream.next()).value).toEqual(event);
  expect(source.isFollowed).toBe(true);
  await stream.return();
  expect(source.isFollowed).toBe(false);
  await log.stop();
});
