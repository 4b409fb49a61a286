import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createSandbox, type TestSandbox } from '../../packages/sandbox/src/index.ts';

/** A receiver of receipts that sends the control a request at the first PENDING, and answers only once that is answered. */
async function openCaller(ask: (transactionId: string) => Promise<unknown>) {
  let isAsked = false;
  const server = createServer(async (request, response) => {
    // The form of a CEP message under the default choices.
    const { payload } = (await json(request)) as { payload: { body: { id: string; status: string } } };
    if (payload.body.status === 'PENDING' && !isAsked) {
      isAsked = true;
      await ask(payload.body.id);
    }
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const post = (sandbox: TestSandbox, path: string, body: unknown) =>
  fetch(sandbox.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const WAYS = [
  ['receipts', 'COMPLETED', (transactionId: string) => ({ transactionId, receipt: 'now' })],
  ['receipts', 'REJECTED', (transactionId: string) => ({ transactionId, receipt: { status: 'REJECTED' } })],
  ['completions', 'COMPLETED', (id: string) => ({ id })],
] as const;

for (const clock of ['stepped', { speed: 1 }] as const) {
  test.each(WAYS)(
    `a receiver that waits for /sandbox/%s, and gets %s meanwhile, is sent each message once, clock ${JSON.stringify(clock)}`,
    async (path, status, order) => {
      await using sandbox = await createSandbox({ clock, choices: { deliveryTimeoutMs: 30_000 } });
      const statuses: number[] = [];
      await using caller = await openCaller(async (id) => {
        statuses.push((await post(sandbox, `/sandbox/${path}`, order(id))).status);
      });
      await sandbox.registerWebhook({ type: 'CEP', url: caller.url, token: 'a token' });
      // A clock that stands still begins what is due by itself: the first message is to be one of a step.
      if (clock === 'stepped') await sandbox.loseMessages('CEP', 1);
      await post(sandbox, '/v1/transactions/penny_validation', {
        client_id: sandbox.clientId,
        source_instrument_id: sandbox.centralizingInstrumentId,
        destination_instrument_id: sandbox.lateReceiptInstrumentId,
      });
      if (clock === 'stepped') await sandbox.advance({ seconds: 90 });
      const sent = async () =>
        (await sandbox.deliveries()).map(({ body, attempts }) => ({
          body,
          attempts: attempts.map(({ status, error }) => status ?? error ?? 'under way'),
        }));
      await expect
        .poll(async () => (await sent()).map(({ attempts }) => attempts.includes('under way')), {
          interval: 5,
        })
        .toEqual([false, false]);
      const sentOnce = (name: string) => ({ body: { payload: { body: { status: name } } }, attempts: [200] });
      expect(await sent()).toMatchObject([sentOnce('PENDING'), sentOnce(status)]);
      expect(statuses).toEqual([201]);
    },
  );
}
