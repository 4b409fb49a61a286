import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { at, expectRefusal, openReceiver, openSandbox } from './harness.ts';

const detail = z.object({
  transaction: z.object({ id: z.string(), transactionStatus: z.string() }),
  trail: z.array(z.object({ at: z.iso.datetime({ offset: true }), of: z.string(), status: z.string() })),
  movements: z.array(z.object({ from: z.string(), to: z.string(), amount: z.string() })),
  deliveries: z.array(
    z.object({
      state: z.string(),
      attempts: z.array(z.object({ status: z.number().nullable(), error: z.string().nullable() })),
    }),
  ),
  receipt: z.object({ status: z.string(), beneficiaryName: z.string().nullable() }).nullable(),
});
const overview = z.object({
  clock: z.object({ speed: z.number() }),
  transactions: z.array(
    z.object({ id: z.string(), webhooks: z.record(z.string(), z.number()), status: z.string() }),
  ),
  faults: z.array(z.object({ id: z.number(), used: z.number(), inForce: z.boolean() })),
  webhooks: z.object({ down: z.boolean(), registered: z.array(z.object({ type: z.string() })) }),
});
const sent = z.object({ transaction: z.object({ id: z.string() }) });
const made = z.object({ id: z.string() });

type Box = Awaited<ReturnType<typeof openSandbox>>;
const look = async (box: Box) => (await box.get('/sandbox/overview')).as(overview);
const open = async (box: Box, id: string) => (await box.get(`/sandbox/transactions/${id}`)).as(detail);

async function validate(box: Box): Promise<string> {
  const started = await box.post('/v1/transactions/penny_validation', {
    client_id: box.seeded.clientId,
    source_instrument_id: box.seeded.centralizingInstrumentId,
    destination_instrument_id: box.seeded.clabeInstrumentIds[0],
  });
  return started.as(made).id;
}

test('a credit shows its states, its movements, and each attempt of its webhook while the receivers were down', async () => {
  await using box = await openSandbox();
  await using receiver = await openReceiver({ status: 201 });
  await box.register('MONEY_IN', receiver.url);
  for (const _twice of [1, 2]) {
    expect((await box.call('PATCH', '/sandbox/webhooks', { down: true })).status).toBe(200);
    expect((await look(box)).webhooks).toMatchObject({ down: true, registered: [{ type: 'MONEY_IN' }] });
    const before = receiver.received.length;
    const clabe = at(box.seeded.accounts, 0).clabe;
    const { id } = (await box.post('/sandbox/spei-credits', { clabe, amount: '5.00' })).as(sent).transaction;
    await box.step(15);
    expect(receiver.received.length).toBe(before);
    expect((await look(box)).transactions[0]).toMatchObject({ id, webhooks: { PENDING: 1 } });
    await box.call('PATCH', '/sandbox/webhooks', { down: false });
    await box.step(60);
    const read = await open(box, id);
    expect(read.trail.map(({ status }) => status)).toEqual(['INITIALIZED', 'LIQUIDATED']);
    expect(read.movements.map(({ amount }) => amount)).toEqual(['5.00', '5.00']);
    expect(at(read.deliveries, 0).attempts.map(({ status, error }) => status ?? error)).toEqual([
      'connect ECONNREFUSED',
      'connect ECONNREFUSED',
      201,
    ]);
  }
});

test('a payment names the calls that made and read it; its message goes to a handler of one’s own and decides nothing there', async () => {
  await using box = await openSandbox();
  await using receiver = await openReceiver({ status: 503 });
  await using handler = await openReceiver({ status: 418, body: { mine: true } });
  await box.register('CEP', receiver.url);
  const id = await validate(box);
  await box.get(box.of(`/transactions/${id}`));
  for (const fault of ['reset-after-commit', 'truncate']) {
    await box.post('/sandbox/faults', { fault, times: 1 });
    await expect(box.get(box.of(`/transactions/${id}`))).rejects.toThrow();
  }
  await box.step(0);
  const read = await box.get(`/sandbox/transactions/${id}`);
  const { calls, deliveries } = read.as(
    z.object({
      calls: z.array(z.object({ method: z.string(), path: z.string(), status: z.number().nullable() })),
      deliveries: z.array(z.object({ id: z.string() })),
    }),
  );
  expect(calls.map(({ method, status }) => [method, status])).toEqual([
    ['POST', 200],
    ['GET', 200],
    ['GET', null],
    ['GET', null],
  ]);
  const path = `/sandbox/deliveries/${at(deliveries, 0).id}/send`;
  const sent = await box.post(path, { url: handler.url });
  expect(sent.as(z.object({ status: z.number(), body: z.string() }))).toEqual({
    status: 418,
    body: '{"mine":true}',
  });
  expect(handler.received[0]?.text).toBe(receiver.received[0]?.text);
  expect((await open(box, id)).deliveries).toMatchObject([{ state: 'PENDING' }]);
  for (const url of ['http://198.51.100.1/hook', 'http://127.0.0.1:1/hook', 'file:///etc/passwd']) {
    expectRefusal(await box.post(path, { url }), { status: 400 });
  }
});

describe('a receipt on the way', () => {
  test.each([
    ['now', 0, 'COMPLETED', 'EMPAQUES DEL BAJÍO SA DE CV'],
    ['other-holder', 0, 'COMPLETED', 'FERNANDO LUGO ARRIAGA'],
    ['late', 100, 'PENDING', null],
    ['late', 18 * 60, 'COMPLETED', 'EMPAQUES DEL BAJÍO SA DE CV'],
    ['never', 4 * 3600, 'FAILED', null],
  ])('%s, after %d s, is %s', async (receipt, seconds, status, beneficiaryName) => {
    await using box = await openSandbox();
    const transactionId = await validate(box);
    expect((await box.post('/sandbox/receipts', { transactionId, receipt })).status).toBe(201);
    await box.step(seconds);
    expect((await open(box, transactionId)).receipt).toMatchObject({ status, beneficiaryName });
  });

  test('shows a state of which the service tells nothing, at once and at each attempt, until it ends', async () => {
    await using box = await openSandbox();
    const transactionId = await validate(box);
    await box.post('/sandbox/receipts', { transactionId, receipt: 'late' });
    await box.post('/sandbox/receipts', { transactionId, receipt: { status: 'REJECTED' } });
    expect((await open(box, transactionId)).receipt).toMatchObject({ status: 'REJECTED' });
    await box.step(17 * 60);
    expect((await open(box, transactionId)).receipt).toMatchObject({ status: 'REJECTED' });
    await box.step(60);
    const { trail, receipt } = await open(box, transactionId);
    expect(receipt).toMatchObject({ status: 'COMPLETED', beneficiaryName: expect.any(String) });
    expect(trail.filter(({ of }) => of === 'receipt').map(({ status }) => status)).toEqual([
      'PENDING',
      'REJECTED',
      'COMPLETED',
    ]);
  });

  test('is not shown as one that has ended', async () => {
    await using box = await openSandbox();
    const transactionId = await validate(box);
    for (const status of ['COMPLETED', 'FAILED', 'rejected', ''])
      expectRefusal(await box.post('/sandbox/receipts', { transactionId, receipt: { status } }), {
        status: 400,
      });
  });

  test('keeps each state on its trail once, and is refused once it has come', async () => {
    await using box = await openSandbox();
    const transactionId = await validate(box);
    await box.post('/sandbox/receipts', { transactionId, receipt: 'late' });
    await box.step(3600);
    const { trail } = await open(box, transactionId);
    expect(trail.filter(({ of }) => of === 'receipt').map(({ status }) => status)).toEqual([
      'PENDING',
      'DELAYED',
      'COMPLETED',
    ]);
    expectRefusal(await box.post('/sandbox/receipts', { transactionId, receipt: 'never' }), { status: 404 });
  });
});

test('a fault is armed, seen, and disarmed by itself', async () => {
  await using box = await openSandbox();
  const arm = (path: string) => box.post('/sandbox/faults', { match: { path }, fault: { status: 503 } });
  await arm('/v1/banks');
  await arm('/v1/clients');
  expect((await box.get('/v1/banks')).status).toBe(503);
  const [first, second] = (await look(box)).faults;
  expect([first?.used, second?.used]).toEqual([1, 0]);
  expect((await box.call('DELETE', `/sandbox/faults/${first?.id}`)).status).toBe(200);
  expect((await box.get('/v1/banks')).status).toBe(200);
  expect((await look(box)).faults).toEqual([expect.objectContaining({ id: second?.id, inForce: true })]);
  expectRefusal(await box.call('DELETE', `/sandbox/faults/${first?.id}`), { status: 404 });
});

test('the clock runs at another speed, and stands still at none', async () => {
  await using box = await openSandbox();
  const now = z.object({ now: z.iso.datetime({ offset: true }), speed: z.number() });
  const read = async () => (await box.get('/sandbox/clock')).as(now);
  const still = await read();
  expect(await read()).toEqual(still);
  await box.call('PATCH', '/sandbox/clock', { speed: 100_000 });
  const id = await validate(box);
  await expect.poll(async () => (await open(box, id)).receipt?.status).toBe('COMPLETED');
  await box.call('PATCH', '/sandbox/clock', { speed: 0 });
  const stopped = await read();
  expect(Date.parse(stopped.now)).toBeGreaterThan(Date.parse(still.now) + 90_000);
  expect(await read()).toEqual(stopped);
  expectRefusal(await box.call('PATCH', '/sandbox/clock', { speed: -1 }), { status: 400 });
});
