import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { PathParameter } from '../../packages/sandbox/src/endpoints.ts';
import { createSandbox } from '../../packages/sandbox/src/index.ts';
import { at, expectRefusal, openSandbox, READINGS, transfer } from './harness.ts';

const BANKS = '/v1/banks';
const INTERNAL = '/v1/transactions/internal_transaction';

describe.each(READINGS)('faults, %s choices', (_name, choices) => {
  async function withFault(fault: unknown, match: unknown = {}, times?: number) {
    const box = await openSandbox(choices);
    expect((await box.post('/sandbox/faults', { match, fault, times })).status).toBe(201);
    const movements = async () => (await box.ledger()).movements.length;
    const before = await movements();
    return {
      ...box,
      pay: () => box.post(INTERNAL, transfer(box, at(box.seeded.internalInstrumentIds, 2))),
      moved: async () => (await movements()) - before,
    };
  }

  test('reset-before resets the connection and performs nothing', async () => {
    await using box = await withFault('reset-before');
    await expect(box.pay()).rejects.toThrow('fetch failed');
    expect(await box.moved()).toBe(0);
  });

  test.each(['reset-after-commit', 'truncate'])(
    '%s performs the request, and loses the answer',
    async (fault) => {
      await using box = await withFault(fault);
      await expect(box.pay()).rejects.toThrow(/fetch failed|terminated/);
      expect(await box.moved()).toBe(1);
    },
  );

  test('garbage performs the request, and answers 200 with what is no JSON', async () => {
    await using box = await withFault('garbage');
    const reply = await box.pay();
    expect(reply).toMatchObject({ status: 200, contentType: 'application/json' });
    expect(() => JSON.parse(reply.text)).toThrow();
    expect(await box.moved()).toBe(1);
  });

  test('hang performs the request, never answers, and does not hold the sandbox up', async () => {
    await using box = await withFault('hang', { path: INTERNAL });
    const hanging = box.pay().catch((error: unknown) => error);
    await expect.poll(box.moved, { interval: 5 }).toBe(1);
    expect((await box.get(BANKS)).status).toBe(200);
    await box.sandbox.stop();
    expect(await hanging).toBeInstanceOf(TypeError);
  });

  test('a status with a body replaces the answer, and performs the request only if told to commit', async () => {
    await using box = await withFault({ status: 503, body: { busy: true } }, {}, 1);
    expect(await box.pay()).toMatchObject({ status: 503, text: '{"busy":true}' });
    expect(await box.moved()).toBe(0);
    await box.post('/sandbox/faults', {
      fault: { status: 502, body: 'bad gateway', commit: true },
      times: 1,
    });
    expect(await box.pay()).toMatchObject({ status: 502, text: 'bad gateway' });
    expect(await box.moved()).toBe(1);
    expect((await box.pay()).status).toBe(200);
  });

  test('a delay holds the request up and then serves it', async () => {
    await using box = await withFault({ delayMs: 50 });
    expect((await box.pay()).status).toBe(200);
    expect(await box.moved()).toBe(1);
  });

  test('a fault applies so many times, to a method and a path', async () => {
    await using box = await withFault({ status: 500 }, { method: 'get', path: BANKS }, 2);
    expect((await box.get(box.of('/accounts'))).status).toBe(200);
    const statuses = [];
    for (const _turn of [1, 2, 3]) statuses.push((await box.get(BANKS)).status);
    expect(statuses).toEqual([500, 500, 200]);
  });

  test.each<[string, boolean]>([
    ['/v1/clients', true],
    ['/v1/clients/*/accounts', true],
    ['/v1/clients/*', true],
    ['/v1/*/accounts', false],
    ['/v1/clients/*/account', false],
    ['/v1/clients/*.accounts', false],
    ['/v1/banks', false],
  ])('the path %s matches that of the accounts: %s', async (path, matches) => {
    await using box = await withFault({ status: 500 }, { path });
    expect((await box.get(box.of('/accounts'))).status).toBe(matches ? 500 : 200);
  });

  test('a fault of one account meets what pays from it, and what names a transaction of it', async () => {
    await using box = await openSandbox(choices);
    const [payer, other] = [at(box.seeded.accounts, 1), at(box.seeded.accounts, 2)];
    const match = { path: '/v1/', account: payer.id.toUpperCase() };
    expect((await box.post('/sandbox/faults', { match, fault: { status: 500 } })).status).toBe(201);
    const pay = async (from: string, to: string) =>
      (await box.post(INTERNAL, transfer(box, to, {}, from))).status;
    expect(await pay(payer.instrumentId, other.instrumentId)).toBe(500);
    expect(await pay(other.instrumentId, payer.instrumentId)).toBe(200);
    const credited = async ({ clabe }: typeof payer) =>
      (await box.post('/sandbox/spei-credits', { clabe, amount: '1.00' })).as(
        z.object({ transaction: z.object({ id: z.string() }) }),
      ).transaction.id;
    const [mine, theirs] = [await credited(payer), await credited(other)];
    expect((await box.get(box.of(`/transactions/${mine}`))).status).toBe(500);
    expect((await box.get(box.of(`/transactions/${theirs}`))).status).toBe(200);
    expect((await box.get(box.of('/accounts'))).status).toBe(200);
  });

  test('a fault of one account meets each endpoint whose path names the account, or what is of it', async () => {
    await using box = await openSandbox(choices);
    await using service = await createSandbox();
    const account = at(box.seeded.accounts, 0);
    const credit = await box.post('/sandbox/spei-credits', { clabe: account.clabe, amount: '1.00' });
    /** What a path that concerns the account has for each parameter; undefined for those by which no account is found. */
    const ofAccount: Record<PathParameter, string | undefined> = {
      clientId: undefined,
      customerId: undefined,
      instrumentId: undefined,
      transactionId: credit.as(z.object({ transaction: z.object({ id: z.string() }) })).transaction.id,
      id: undefined,
    };
    const named = Object.entries(ofAccount).filter(([, value]) => value !== undefined);
    const isOfAccount = (endpoint: string) => named.some(([name]) => endpoint.includes(`{${name}}`));
    const met = service.endpoints.filter(isOfAccount);
    expect(met).toContain('POST /v1/clients/{clientId}/transactions/{transactionId}/refund');
    const fault = { status: 418 };
    for (const endpoint of met) {
      const [method = '', route = ''] = endpoint.split(' ');
      const values = new Map<string, string | undefined>(Object.entries(ofAccount));
      const path = route.replaceAll(/\{(\w+)\}/g, (_, name) => values.get(name) ?? box.sandbox.clientId);
      await box.post('/sandbox/faults', { match: { account: account.id }, fault, times: 1 });
      const { status } = await box.call(method, path, method === 'GET' ? undefined : {});
      expect(status, `${endpoint}: accountsOf of packages/sandbox/src/faults.ts`).toBe(fault.status);
    }
  });

  test.each<[string, unknown]>([
    ['no JSON', '{'],
    ['null', 'null'],
    ['an id that is no text', { source_instrument_id: 7 }],
    ['over a mebibyte', JSON.stringify('x'.repeat(1024 * 1024))],
    ['of no account of the sandbox', { source_instrument_id: 'nobody' }],
  ])('a fault of one account leaves a body that is %s to the route', async (_name, body) => {
    await using box = await openSandbox(choices);
    const account = at(box.seeded.accountIds, 0);
    await box.post('/sandbox/faults', { match: { account }, fault: { status: 500 } });
    expectRefusal(await box.post(INTERNAL, body), { status: 400 });
    expect((await box.get(BANKS)).status).toBe(200);
  });

  test('a refusal of the service meets the fault too, and nothing is performed', async () => {
    await using box = await withFault('garbage', { path: INTERNAL });
    const body = transfer(box, at(box.seeded.internalInstrumentIds, 2));
    expect((await box.call('POST', INTERNAL, body, {})).status).toBe(200);
    expect(await box.moved()).toBe(0);
  });

  test('truncate sends the status, the type, a length that is one too large and half the body', async () => {
    await using box = await withFault('truncate', { path: BANKS }, 1);
    const { hostname, port } = new URL(box.sandbox.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET ${BANKS} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${box.sandbox.accessToken}\r\n\r\n`,
    );
    const [head = '', half = ''] = (await text(socket)).split('\r\n\r\n');
    const whole = Buffer.from((await box.get(BANKS)).text);
    expect(head).toMatch(/^HTTP\/1.1 200 /);
    expect(head).toMatch(/^content-type: application\/json/m);
    expect(head).toMatch(new RegExp(`^content-length: ${whole.length + 1}\r?$`, 'm'));
    expect(half).toBe(whole.subarray(0, whole.length / 2).toString());
  });

  test('clearing makes everything healthy, and the control is never at fault', async () => {
    await using box = await withFault('reset-before');
    expect((await box.call('GET', '/sandbox')).status).toBe(200);
    await box.call('DELETE', '/sandbox/faults');
    expect((await box.get(BANKS)).status).toBe(200);
  });

  test.each<[unknown]>([
    [{ fault: 'explode' }],
    [{ fault: { delayMs: -1 } }],
    [{ fault: { status: 1000 } }],
    [{ fault: 'hang', times: 0 }],
    [{ fault: 'hang', match: { route: 'x' } }],
    [{}],
  ])('%j is no fault', async (rule) => {
    await using box = await openSandbox(choices);
    expectRefusal(await box.post('/sandbox/faults', rule), { status: 400 });
  });
});
