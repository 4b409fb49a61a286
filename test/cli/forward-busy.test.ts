import { expect, it } from 'vitest';
import { receiverAt } from '../../src/cli/forward/receivers.ts';
import { serveBesideBusy } from '../helpers/busy.ts';

it.each([
  ['answered', undefined],
  ['silent', { text: 'The operation was aborted due to timeout', isAway: true }],
] as const)(
  'a receiver that was %s while this process was busy until its time was over is told from one that was not',
  async (what, problem) => {
    await using server = await serveBesideBusy(200, 'taken');
    const receiver = receiverAt(server.url, 'secret');
    const event = { id: 'a', type: 'CEP', cursor: 'a', receivedAt: '2026-11-22T09:00:00.000Z' } as const;
    const taken = receiver.take(event);
    await server.keepBusy(what);
    expect(await taken).toEqual(problem);
    await receiver.close();
  },
);
