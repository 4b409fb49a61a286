import { v4, v5 } from 'uuid';
import { describe, expect, test } from 'vitest';
import { ambient, useAmbient } from '../../packages/sandbox/src/ambient.ts';
import { createSandbox } from '../../packages/sandbox/src/index.ts';
import { at, expectRefusal, type Opened, openReceiver, openSandbox, READINGS, transfer } from './harness.ts';
import { errorBody, tables } from './spec.ts';

const PATH = '/v1/transactions/money_out';
const method = 'MoneyOut';
const keyOf = (text: string) => v5(text, v5.URL);

const card = ({ seeded }: Opened) => at(seeded.cardInstrumentIds, 0);

function pay(box: Opened, key: string, body: unknown) {
  return box.call('POST', PATH, body, {
    authorization: `Bearer ${box.sandbox.accessToken}`,
    'idempotency-key': key,
  });
}

/** Real time as the sandbox takes it: it stands still, and is stepped. */
function realClock() {
  let now = ambient.monotonic();
  const restore = useAmbient({ ...ambient, monotonic: () => now });
  const step = (seconds: number) => {
    now += seconds * 1000;
  };
  return { step, [Symbol.dispose]: restore };
}

/** Holds up the work that a fault delays by so many milliseconds, until it is released. */
function heldWork(delayMs: number) {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { sleep } = ambient;
  const restore = useAmbient({
    ...ambient,
    sleep(ms) {
      if (ms !== delayMs) return sleep(ms);
      begun.resolve();
      return released.promise;
    },
  });
  return { begun: begun.promise, release: released.resolve, [Symbol.dispose]: restore };
}

describe.each(READINGS)('money out, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  test('is INITIALIZED when accepted and LIQUIDATED on the clock', async () => {
    await using box = await openSandbox(choices);
    const reply = await box.post(PATH, transfer(box, card(box)));
    expect(reply.status).toBe(200);
    const made = reply.as(spec.newTransaction);
    expect(made).toMatchObject({
      transactionStatus: 'INITIALIZED',
      category: 'DEBIT_TRANS',
      subCategory: 'SPEI_DEBIT',
    });
    const read = async () =>
      (await box.get(box.of(`/transactions/${made.id}`))).as(spec.transaction).transactionStatus;
    expect(await read()).toBe('INITIALIZED');
    await box.step(choices.moneyOutSeconds / 2);
    expect(await read()).toBe(choices.valuesBeyondTheSpec ? 'IN_PROCESS' : 'INITIALIZED');
    await box.step(choices.moneyOutSeconds / 2);
    expect(await read()).toBe('LIQUIDATED');
  });

  test('leaves the account at once, and the ledger balanced', async () => {
    await using box = await openSandbox(choices);
    await box.post(PATH, transfer(box, card(box), { amount: '1000000.00' }));
    const again = await box.post(PATH, transfer(box, card(box), { amount: '1000000.00' }));
    expectRefusal(again, {
      status: 400,
      reason: 'FAILED_PRECONDITION',
      detail: 'The account does not have sufficient funds.',
      method,
    });
    expect((await box.ledger()).balanced).toBe(true);
  });

  test.each([{ external_reference: '12345678' }, { amount: '0.00' }, { currency: 'USD' }])(
    '%o is refused',
    async (change) => {
      await using box = await openSandbox(choices);
      const reply = await box.post(PATH, transfer(box, card(box), change));
      expectRefusal(reply, { status: 400, reason: 'DATA_ERROR', method });
    },
  );

  test('the length of its description is limited, or not, by choice', async () => {
    await using box = await openSandbox(choices);
    const reply = await box.post(PATH, transfer(box, card(box), { description: 'x'.repeat(40) }));
    expect(reply.status).toBe(choices.moneyOutDescription === 'unlimited' ? 200 : 400);
  });

  test('may start from a customer’s account, or not, by choice', async () => {
    await using box = await openSandbox(choices);
    const source = at(box.seeded.internalInstrumentIds, 2);
    const reply = await box.post(PATH, transfer(box, card(box), {}, source));
    expect(reply.status).toBe(choices.moneyOutSource === 'any internal' ? 200 : 400);
  });

  test('a source that holds no account cannot pay, one that is unknown is not found', async () => {
    await using box = await openSandbox(choices);
    const external = at(box.seeded.clabeInstrumentIds, 0);
    expectRefusal(await box.post(PATH, transfer(box, card(box), {}, external)), { status: 400 });
    const unknown = '3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111';
    expectRefusal(await box.post(PATH, transfer(box, card(box), {}, unknown)), { status: 404 });
    expectRefusal(await box.post(PATH, transfer(box, unknown)), { status: 404 });
  });

  test('to a CLABE of the service’s own, it comes back from SPEI as a credit', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 201 });
    await box.register('MONEY_IN', receiver.url);
    const inside = at(box.seeded.internalInstrumentIds, 2);
    const made = (await box.post(PATH, transfer(box, inside))).as(spec.newTransaction);
    await box.step(choices.moneyOutSeconds);
    const { body } = spec.moneyIn.parse(at(receiver.received, 0).json);
    expect(body).toMatchObject({
      sub_category: 'SPEI_CREDIT',
      tracking_key: made.trackingId,
      owner_id: at(box.seeded.customerIds, 0),
    });
    expect((await box.ledger()).balanced).toBe(true);
  });

  test('so does one to such a CLABE that was registered as a receiver’s', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 201 });
    await box.register('MONEY_IN', receiver.url);
    const { clabe, ownerId } = at(box.seeded.accounts, 2);
    const bank = at(box.seeded.bankIds, 0);
    const names = choices.virtualClabeFields;
    const registered = await box.post(box.of('/instruments'), {
      source_bank_id: bank,
      client_id: box.seeded.clientId,
      type: 'RECEIVER',
      rfc: 'ND',
      alias: 'Otra cuenta',
      virtual_clabe: { [names.bank]: bank, [names.clabe]: clabe, [names.holder]: 'Titular' },
    });
    const { id } = registered.as(spec.instrument);
    const made = (await box.post(PATH, transfer(box, id))).as(spec.newTransaction);
    await box.step(choices.moneyOutSeconds);
    const { body } = spec.moneyIn.parse(at(receiver.received, 0).json);
    expect(body).toMatchObject({
      beneficiary_account: clabe,
      tracking_key: made.trackingId,
      owner_id: ownerId,
    });
    expect((await box.ledger()).balanced).toBe(true);
  });

  test.each(['rejected', 'refunded'])(
    'where the credit is %s, its payer has the money again, and it is REFUNDED',
    async (ending) => {
      await using box = await openSandbox(choices);
      await using receiver = await openReceiver({ status: ending === 'rejected' ? 422 : 201 });
      await using told = await openReceiver({ status: 200 });
      await box.register('MONEY_IN', receiver.url);
      await box.register('STATUS_UPDATE', told.url);
      const balances = async () => (await box.ledger()).accounts.map(({ balance }) => balance);
      const before = await balances();
      const inside = at(box.seeded.internalInstrumentIds, 2);
      const { id } = (await box.post(PATH, transfer(box, inside))).as(spec.newTransaction);
      await box.step(choices.moneyOutSeconds);
      if (ending === 'refunded') {
        expect(await balances()).not.toEqual(before);
        const { body } = spec.moneyIn.parse(at(receiver.received, 0).json);
        const path = box.of(`/transactions/${body.id}/refund`);
        expect((await box.post(path, { refundReason: 'x' })).status).toBe(choices.refundCreated);
        await box.step(0);
      }
      expect(await balances()).toEqual(before);
      expect((await box.ledger()).balanced).toBe(true);
      const paid = (await box.get(box.of(`/transactions/${id}`))).as(spec.transaction);
      expect(paid.transactionStatus).toBe('REFUNDED');
      expect(told.received.map(({ text }) => text.includes(id))).toEqual([true, true]);
    },
  );

  test.each([
    ['at once', [422]],
    ['by the answer to a retry, later', [500, 422]],
  ])(
    'completed, it is told REFUNDED by its end, where the credit is rejected %s',
    async (_when, statuses) => {
      await using sandbox = await createSandbox({ choices });
      await using receiver = await openReceiver(...statuses.map((status) => ({ status })));
      await using told = await openReceiver({ status: 200 });
      await sandbox.registerWebhook({ type: 'MONEY_IN', url: receiver.url, token: 'a token' });
      await sandbox.registerWebhook({ type: 'STATUS_UPDATE', url: told.url, token: 'a token' });
      const made = await fetch(sandbox.url + PATH, {
        method: 'POST',
        headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
        body: JSON.stringify(transfer({ seeded: sandbox }, at(sandbox.internalInstrumentIds, 2))),
      });
      await sandbox.complete(spec.newTransaction.parse(await made.json()).id);
      if (statuses.length > 1) {
        expect(told.received).toHaveLength(1);
        await sandbox.advance({ seconds: 10 });
      }
      const updates = (await sandbox.deliveries()).flatMap(({ webhookType, state, body }) =>
        webhookType === 'STATUS_UPDATE'
          ? [[/liquidated|refunded/i.exec(JSON.stringify(body))?.[0].toUpperCase(), state]]
          : [],
      );
      expect(updates).toEqual([
        ['LIQUIDATED', 'ANSWERED'],
        ['REFUNDED', 'ANSWERED'],
      ]);
    },
  );

  test('a STATUS_UPDATE tells of its settlement', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 200 });
    await box.register('STATUS_UPDATE', receiver.url);
    const made = (await box.post(PATH, transfer(box, card(box)))).as(spec.newTransaction);
    await box.step(choices.moneyOutSeconds);
    expect(at(receiver.received, 0).text).toContain(made.id);
  });

  test('a STATUS_UPDATE that is to be lost is sent to nobody, as often as was asked', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 200 });
    await box.register('STATUS_UPDATE', receiver.url);
    const settle = async () => {
      const made = (await box.post(PATH, transfer(box, card(box)))).as(spec.newTransaction);
      await box.step(choices.moneyOutSeconds);
      return made.id;
    };
    expect((await box.post('/sandbox/lost-messages', { type: 'STATUS_UPDATE', times: 1 })).status).toBe(201);
    const [lost, told] = [await settle(), await settle()];
    expect(receiver.received).toHaveLength(1);
    expect(at(receiver.received, 0).text).toContain(told);
    expect((await box.get(box.of(`/transactions/${lost}`))).text).toContain('LIQUIDATED');
    await box.post('/sandbox/lost-messages', { type: 'STATUS_UPDATE' });
    for (let payment = 0; payment < 2; payment += 1) await settle();
    expect(receiver.received).toHaveLength(1);
    await box.call('DELETE', '/sandbox/lost-messages');
    await settle();
    expect(receiver.received).toHaveLength(2);
    expect((await box.post('/sandbox/lost-messages', { type: 'MONEY' })).status).toBe(400);
  });

  describe('with an Idempotency-Key', () => {
    test.each(['not-a-uuid', v4(), ''])('%o is refused: a UUID of version 5 is needed', async (key) => {
      await using box = await openSandbox(choices);
      const before = await box.ledger();
      expectRefusal(await pay(box, key, transfer(box, card(box))), { status: 400, reason: 'DATA_ERROR' });
      expect(await box.ledger()).toEqual(before);
    });

    test('the same key and body yield the first answer again, byte for byte, and one movement', async () => {
      await using box = await openSandbox(choices);
      const before = (await box.ledger()).movements.length;
      const first = await pay(box, keyOf('a'), transfer(box, card(box)));
      await box.step(choices.moneyOutSeconds);
      const second = await pay(box, keyOf('a'), transfer(box, card(box)));
      expect(second).toMatchObject({ status: 200, text: first.text, contentType: first.contentType });
      expect((await box.ledger()).movements).toHaveLength(before + 1);
    });

    test('the same key with another body is 409', async () => {
      await using box = await openSandbox(choices);
      await pay(box, keyOf('a'), transfer(box, card(box)));
      const reply = await pay(box, keyOf('a'), transfer(box, card(box), { amount: '11.00' }));
      expectRefusal(reply, { status: 409 });
    });

    test('what counts as the same body is a choice', async () => {
      await using box = await openSandbox(choices);
      const body = transfer(box, card(box));
      await pay(box, keyOf('a'), body);
      const reply = await pay(box, keyOf('a'), JSON.stringify(body, null, 2));
      expect(reply.status).toBe(choices.idempotencyBody === 'value' ? 200 : 409);
    });

    test('an error is cached too', async () => {
      await using box = await openSandbox(choices);
      const body = transfer(box, card(box), { amount: '9000000.00' });
      const first = await pay(box, keyOf('a'), body);
      const { clabe } = at(box.seeded.accounts, 0);
      await box.post('/sandbox/spei-credits', { clabe, amount: '9000000.00' });
      const second = await pay(box, keyOf('a'), body);
      expect(first.status).toBe(400);
      expect(second.text).toBe(first.text);
    });

    test('while the first call runs, a second is told so with 409, and later gets the answer', async () => {
      await using box = await openSandbox(choices);
      using work = heldWork(400);
      await box.post('/sandbox/faults', { match: { path: PATH }, fault: { delayMs: 400 }, times: 1 });
      const body = transfer(box, card(box));
      const first = pay(box, keyOf('a'), body);
      await work.begun;
      const during = await pay(box, keyOf('a'), body);
      expectRefusal(during, { status: 409, reason: 'in progress' });
      work.release();
      const { text } = await first;
      expect(await pay(box, keyOf('a'), body)).toMatchObject({ status: 200, text });
    });

    test.each(['the real one last', 'its own last'])(
      'after 24 hours of both clocks, %s, the key is new again, and not before',
      async (order) => {
        await using box = await openSandbox(choices);
        using real = realClock();
        const body = transfer(box, card(box));
        const paid = async () => (await pay(box, keyOf('a'), body)).as(spec.newTransaction).id;
        const first = await paid();
        const steps = [(seconds: number) => box.step(seconds), async (seconds: number) => real.step(seconds)];
        const [sooner, later] = order === 'its own last' ? steps.toReversed() : steps;
        await sooner?.(10 * 24 * 3600);
        expect(await paid()).toBe(first);
        await later?.(24 * 3600 - 1);
        expect(await paid()).toBe(first);
        await later?.(1);
        expect(await paid()).not.toBe(first);
      },
    );

    test('keys are per client, or not, by choice', async () => {
      await using box = await openSandbox(choices);
      await pay(box, keyOf('a'), transfer(box, card(box)));
      const other = at(box.seeded.otherClients, 0);
      const theirs = {
        ...transfer(box, at(other.cardInstrumentIds, 0), {}, other.centralizingInstrumentId),
        client_id: other.clientId,
      };
      const reply = await box.call('POST', PATH, theirs, {
        authorization: `Bearer ${other.accessToken}`,
        'idempotency-key': keyOf('a'),
      });
      expect(reply.status).toBe(choices.idempotencyScope === 'client' ? 200 : 409);
    });
  });
});

test('a refusal that comes before its route names the operation too', async () => {
  await using box = await openSandbox();
  const body = transfer(box, card(box));
  await pay(box, keyOf('a'), body);
  // The first call under this key runs until the sandbox ends. Its fault asks for the account, and has been met once the body is read.
  await box.post('/sandbox/faults', {
    match: { path: PATH, account: at(box.seeded.accountIds, 0) },
    fault: { delayMs: 600_000 },
    times: 1,
  });
  const first = pay(box, keyOf('b'), body).catch(() => undefined);
  await expect
    .poll(async () => (await box.get('/sandbox/faults')).text, { interval: 5 })
    .toContain('"used":1');
  const refusals = [
    [400, await pay(box, 'not-a-uuid', body)],
    [409, await pay(box, keyOf('a'), { ...body, more: 1 })],
    [409, await pay(box, keyOf('b'), body)],
    [401, await box.call('POST', PATH, body, {})],
    [403, await box.call('POST', PATH, body, { origin: 'https://elsewhere.example' })],
  ] as const;
  for (const [status, reply] of refusals) {
    expect(reply.status).toBe(status);
    expect(reply.as(errorBody).details[0].metadata).toMatchObject({
      module: 'Transactions',
      method_name: method,
    });
  }
  await box.sandbox.stop();
  await first;
});
