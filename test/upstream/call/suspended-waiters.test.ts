import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { Party, type Waiter } from '../../../src/common/party.ts';
import { createBreaker } from '../../../src/upstream/call/breaker.ts';
import { createHttp } from '../../../src/upstream/call/http.ts';
import { HTTP, json, startUpstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';

/** Enough failures in a row to suspend a caller's calls. */
const TO_OPEN = 20;

const waiterOf = (caller: string): Waiter => ({
  requester: { caller, group: caller },
  urgency: 'operations',
  deadline: Date.now() + 3_600_000,
});

/**
 * Calls to a service that holds some answers. Each caller may have one call under way, and the calls of the one called `suspended` are
 * suspended for as long as the test lasts.
 */
async function start() {
  const held = new Map<string, ServerResponse>();
  const upstream = await startUpstream(({ url = '' }, response) => {
    if (url.startsWith('/held')) held.set(url, response);
    else json(response, {});
  });
  const breaker = createBreaker(() => 0);
  const http = createHttp(upstream.url, breaker, { ...HTTP, callsPerCaller: 1 });
  const send = (party: Party, path: string) =>
    http.send({ party, method: 'GET', path, headers: {}, timeoutMs: 3_600_000 });
  return {
    send,
    suspend() {
      for (let call = 0; call < TO_OPEN; call += 1) breaker.admit('reads', 'suspended')?.end('failed');
    },
    /** Takes a caller's seat. @returns what lets go of it */
    async takeSeatOf(caller: string) {
      const path = `/held/${caller}`;
      const made = send(new Party(waiterOf(caller)), path);
      const response = await until(() => held.get(path));
      return async () => {
        json(response, {});
        await made;
      };
    },
    async [Symbol.asyncDispose]() {
      await http.close();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

it.each([
  ['has come first', ['suspended', 'caller']],
  ['has come later', ['caller', 'suspended']],
] as const)(
  'a read that a caller waits for with one whose calls are suspended, and who %s, waits for the seat of that caller',
  async (_which, [first, second]) => {
    await using service = await start();
    await service.takeSeatOf('suspended');
    const letGo = await service.takeSeatOf('caller');
    service.suspend();
    const party = new Party(waiterOf(first));
    party.join(waiterOf(second));
    const made = service.send(party, '/both');
    await letGo();
    expect(await made).toMatchObject({ kind: 'answered', status: 200 });
  },
);

it('a read that waits for a seat is made by that of one whose calls are suspended, who waits for it as well', async () => {
  await using service = await start();
  await service.takeSeatOf('caller');
  service.suspend();
  const party = new Party(waiterOf('caller'));
  const made = service.send(party, '/both');
  party.join(waiterOf('suspended'));
  expect(await made).toMatchObject({ kind: 'answered', status: 200 });
});

it('a read is not made that only those wait for whose calls are suspended', async () => {
  await using service = await start();
  service.suspend();
  const party = new Party(waiterOf('suspended'));
  const gone = party.join(waiterOf('caller'));
  party.leave(gone);
  expect(await service.send(party, '/one')).toMatchObject({ kind: 'failed', error: { dispatched: false } });
});
