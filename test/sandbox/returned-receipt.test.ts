import { expect, test } from 'vitest';
import { createSandbox } from '../../packages/sandbox/src/index.ts';
import { at, openReceiver } from './harness.ts';

/** A penny validation with a concept, to a receiver outside or to one of the sandbox's own accounts. */
async function validate(
  description: string,
  to: 'clabeInstrumentIds' | 'internalInstrumentIds' = 'clabeInstrumentIds',
) {
  const sandbox = await createSandbox();
  const call = async (path: string, body?: object) => {
    const response = await fetch(sandbox.url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: JSON.parse(await response.text()) };
  };
  const { body } = await call('/v1/transactions/penny_validation', {
    client_id: sandbox.clientId,
    source_instrument_id: sandbox.centralizingInstrumentId,
    destination_instrument_id: at(sandbox[to], -1),
    description,
  });
  const id: string = body.id;
  return {
    sandbox,
    call,
    id,
    states: async () => {
      const { transactionStatus, metadata } = (
        await call(`/v1/clients/${sandbox.clientId}/transactions/${id}`)
      ).body;
      return [transactionStatus, metadata.dataCep.status];
    },
    [Symbol.asyncDispose]: () => sandbox.close(),
  };
}

test('no receipt comes of a transfer that came back, by whatever call', async () => {
  await using run = await validate('Failed transfer');
  await run.sandbox.advance({ seconds: 60 });
  const before = ['REFUNDED', 'PENDING'];
  expect(await run.states()).toEqual(before);
  for (const receipt of ['now', 'other-holder', 'late'] as const)
    await expect(run.sandbox.receipt(run.id, receipt)).rejects.toThrow('came back');
  await expect(run.sandbox.complete(run.id)).rejects.toThrow('came back');
  expect((await run.call('/sandbox/completions', { id: run.id })).status).toBe(400);
  expect(await run.states()).toEqual(before);
  await run.sandbox.complete(run.id, 'failed');
  expect(await run.states()).toEqual(['REFUNDED', 'FAILED']);
});

test('nor does one that was to come late, once the transfer has come back', async () => {
  await using run = await validate('Failed transfer');
  await run.sandbox.receipt(run.id, 'late');
  await run.sandbox.advance({ hours: 4 });
  expect(await run.states()).toEqual(['REFUNDED', 'FAILED']);
});

test('a receipt that comes now does not hasten the return of the transfer', async () => {
  await using run = await validate('Returned transfer');
  await run.sandbox.advance({ seconds: 40 });
  await run.sandbox.receipt(run.id, 'now');
  expect(await run.states()).toEqual(['LIQUIDATED', 'COMPLETED']);
  await run.sandbox.advance({ seconds: 50 });
  expect(await run.states()).toEqual(['REFUNDED', 'COMPLETED']);
});

test('a receipt fails by a call while its transfer waits for its return, which cannot fail', async () => {
  await using run = await validate('Returned transfer');
  await using receiver = await openReceiver({ status: 200 });
  await run.sandbox.advance({ seconds: 40 });
  await run.sandbox.registerWebhook({ type: 'CEP', url: receiver.url, token: 'a token' });
  await run.sandbox.complete(run.id, 'failed');
  expect(await run.states()).toEqual(['LIQUIDATED', 'FAILED']);
  expect(receiver.received.map(({ text }) => text.includes('"FAILED"'))).toEqual([true]);
  await run.sandbox.advance({ seconds: 50 });
  expect(await run.states()).toEqual(['REFUNDED', 'FAILED']);
});

test.each(['complete', 'receipt'] as const)(
  'nor where it comes back in the very call that settles it, as its credit is rejected: %s',
  async (by) => {
    await using run = await validate('Validacion', 'internalInstrumentIds');
    await using rejecting = await openReceiver({ status: 422 });
    await using told = await openReceiver({ status: 200 });
    await run.sandbox.registerWebhook({ type: 'MONEY_IN', url: rejecting.url, token: 'a token' });
    await run.sandbox.registerWebhook({ type: 'CEP', url: told.url, token: 'a token' });
    await run.sandbox.advance({ seconds: 10 });
    expect(await run.states()).toEqual(['INITIALIZED', 'PENDING']);
    const ended = by === 'complete' ? run.sandbox.complete(run.id) : run.sandbox.receipt(run.id, 'now');
    expect(await ended).toMatchObject({ transaction: { transactionStatus: 'REFUNDED' } });
    expect(rejecting.received.length).toBe(1);
    expect(await run.states()).toEqual(['REFUNDED', 'PENDING']);
    await run.sandbox.advance({ hours: 4 });
    expect(await run.states()).toEqual(['REFUNDED', 'FAILED']);
    expect(told.received.filter(({ text }) => text.includes('"COMPLETED"'))).toEqual([]);
  },
);
