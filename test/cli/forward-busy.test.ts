import diagnostics from 'node:diagnostics_channel';
import { expect, it, onTestFinished } from 'vitest';
import { receiverAt } from '../../src/cli/forward/receivers.ts';
import { serveBesideBusy } from '../helpers/busy.ts';
import { startUpstream } from '../helpers/http-stub.ts';
import { stillTime } from '../helpers/still-time.ts';

const EVENT = { id: 'a', type: 'CEP', cursor: 'a', receivedAt: '2026-11-22T09:00:00.000Z' } as const;

it.each([
  ['answered', undefined],
  ['silent', { text: 'The operation was aborted due to timeout', isAway: true }],
] as const)(
  'a receiver that was %s while this process was busy until its time was over is told from one that was not',
  async (what, problem) => {
    await using server = await serveBesideBusy(200, 'taken');
    const receiver = receiverAt(server.url, 'secret');
    const taken = receiver.take(EVENT);
    await server.keepBusy(what);
    expect(await taken).toEqual(problem);
    await receiver.close();
  },
);

it('a receiver that begins its answer and never ends it is waited for no longer than half a minute, and gets what follows', async () => {
  let asked = 0;
  await using server = await startUpstream((_request, response) => {
    asked += 1;
    response.writeHead(200);
    if (asked === 1) response.write('taken');
    else response.end();
  });
  using time = stillTime();
  const begun = Promise.withResolvers<void>();
  // The status has been read then: one that sends nothing at all is given up in any case.
  const hear = () => begun.resolve();
  diagnostics.subscribe('undici:request:headers', hear);
  onTestFinished(() => void diagnostics.unsubscribe('undici:request:headers', hear));
  const receiver = receiverAt(server.url, 'secret');
  const taken = receiver.take(EVENT);
  await begun.promise;
  await time.pass(30_000);
  // What it has said by then counts.
  expect(await taken).toBeUndefined();
  expect(await receiver.take(EVENT)).toBeUndefined();
  expect(asked).toBe(2);
  await receiver.close();
});
