import { readFile } from 'node:fs/promises';
import { beforeAll, expect, test } from 'vitest';
import { ambient, useAmbient } from '../../packages/sandbox/src/ambient.ts';
import { type Choices, createSandbox, type TestSandbox } from '../../packages/sandbox/src/index.ts';
import { at, openReceiver, READINGS } from './harness.ts';

const page = await readFile(new URL('../../docs/sandbox.md', import.meta.url), 'utf8');
const [, section = ''] = /### Magic values\n(.*?)\n### /s.exec(page) ?? [];
const cell = (text: string | undefined) => text?.replaceAll('`', '').trim() ?? '';
const ROWS = [...section.matchAll(/^\| ([a-z ]+) \|([^|]*)\|([^|]*)\|([^|]*)\|/gm)]
  .map(([, outcome = '', ...cells]) => [outcome, ...cells.map(cell)] as const)
  .filter(([outcome]) => outcome !== 'outcome');

/** For how long a late answer is late, in milliseconds. */
const LATE_MS = 2_000;
/** The ordinary answers that were asked for beside a late one. */
const beside = new Set<Promise<void>>();

// On a busy machine an ordinary answer may take longer than a late one is late, and is waited for all the same.
beforeAll(() => {
  const { sleep } = ambient;
  return useAmbient({
    ...ambient,
    async sleep(ms) {
      await sleep(ms);
      if (ms === LATE_MS) await Promise.all(beside);
    },
  });
});

/** How a transfer says what is to become of it. */
interface Way {
  readonly concept?: string;
  readonly amount?: string;
  readonly alias?: string;
}

async function open(choices: Choices) {
  const sandbox = await createSandbox({ seed: 7, choices });
  const receiver = await openReceiver({ status: 503 });
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(sandbox.url + path, {
      method,
      headers: {
        authorization: `Bearer ${sandbox.accessToken}`,
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: JSON.parse(await response.text()) };
  };
  const of = (path: string) => `/v1/clients/${sandbox.clientId}${path}`;
  const register = (webhook_type: string) =>
    call('POST', of('/webhooks'), {
      client_id: sandbox.clientId,
      url: receiver.url,
      token: 'a token',
      webhook_type,
    });
  await register('CEP');
  /** A receiver outside, with an alias. */
  const receiverOf = async (alias: string): Promise<string> => {
    const fields = choices.virtualClabeFields;
    const { body } = await call('POST', of('/instruments'), {
      source_bank_id: at(sandbox.bankIds, 0),
      client_id: sandbox.clientId,
      type: 'RECEIVER',
      rfc: 'ND',
      alias,
      virtual_clabe: {
        [fields.bank]: at(sandbox.bankIds, 0),
        [fields.clabe]: '002010077777777771',
        [fields.holder]: 'Ana Ruiz',
      },
    });
    return body.id;
  };
  const parties = async ({ alias }: Way) => ({
    client_id: sandbox.clientId,
    source_instrument_id: sandbox.centralizingInstrumentId,
    destination_instrument_id: await receiverOf(alias ?? 'Proveedor'),
  });
  return {
    sandbox,
    register,
    call,
    pay: async (way: Way = {}) =>
      call('POST', '/v1/transactions/money_out', {
        ...(await parties(way)),
        transaction_request: {
          external_reference: '1',
          description: way.concept ?? 'Pago',
          amount: way.amount ?? '10.00',
          currency: 'MXN',
        },
      }),
    validate: async (way: Way = {}) =>
      call('POST', '/v1/transactions/penny_validation', {
        ...(await parties(way)),
        ...(way.concept === undefined ? {} : { description: way.concept }),
      }),
    read: async (id: string) => (await call('GET', of(`/transactions/${id}`))).body,
    status: async (id: string) => (await call('GET', of(`/transactions/${id}`))).body.transactionStatus,
    balance: () => sandbox.accounts[0].availableBalance,
    async [Symbol.asyncDispose]() {
      await sandbox.close();
      await receiver.close();
    },
  };
}

type Box = Awaited<ReturnType<typeof open>>;
type Check = (box: Box, way: Way, choices: Choices) => Promise<void>;

/** A transfer that `way` makes, what its state is once it should have settled, and so on. */
async function settled(box: Box, way: Way, choices: Choices): Promise<{ id: string; before: string }> {
  const before = box.balance();
  const { body } = await box.pay(way);
  expect(body.transactionStatus).toBe('INITIALIZED');
  await box.sandbox.advance({ seconds: choices.moneyOutSeconds });
  return { id: body.id, before };
}

const CHECKS: Readonly<Record<string, Check>> = {
  async refused(box, way) {
    const before = box.balance();
    const { status, body } = await box.pay(way);
    expect([status, body.details[0].reason]).toEqual([400, 'FAILED_PRECONDITION']);
    expect(box.balance()).toBe(before);
  },
  async failed(box, way, choices) {
    const { id, before } = await settled(box, way, choices);
    expect([await box.status(id), box.balance()]).toEqual(['REFUNDED', before]);
  },
  async returned(box, way, choices) {
    const { id, before } = await settled(box, way, choices);
    expect(await box.status(id)).toBe('LIQUIDATED');
    await box.sandbox.advance({ seconds: 60 });
    expect([await box.status(id), box.balance()]).toEqual(['REFUNDED', before]);
  },
  async late(box, way, choices) {
    const { id } = await settled(box, way, choices);
    expect(await box.status(id)).not.toBe('LIQUIDATED');
    await box.sandbox.advance({ seconds: 9 * choices.moneyOutSeconds });
    expect(await box.status(id)).toBe('LIQUIDATED');
  },
  async stuck(box, way, choices) {
    const { id } = await settled(box, way, choices);
    await box.sandbox.advance({ days: 2 });
    expect(await box.status(id)).toBe('INITIALIZED');
    await box.sandbox.complete(id);
    expect(await box.status(id)).toBe('LIQUIDATED');
  },
  async 'late answer'(box, way) {
    const before = box.balance();
    const order: string[] = [];
    const ordinary = Promise.withResolvers<void>();
    beside.add(ordinary.promise);
    const late = box.pay(way).then(() => order.push('late'));
    try {
      await expect.poll(() => box.balance(), { interval: 5 }).not.toBe(before);
      await box.pay().then(() => order.push('ordinary'));
    } finally {
      ordinary.resolve();
    }
    await late;
    expect(order).toEqual(['ordinary', 'late']);
  },
  async 'lost answer'(box, way) {
    const before = box.balance();
    await expect(box.pay(way)).rejects.toThrow('fetch failed');
    expect(box.balance()).not.toBe(before);
  },
  async 'late receipt'(box, way) {
    const { body } = await box.validate(way);
    await box.sandbox.advance({ minutes: 17 });
    expect((await box.read(body.id)).metadata.dataCep.status).toBe('DELAYED');
    await box.sandbox.advance({ minutes: 1 });
    expect((await box.read(body.id)).metadata.dataCep.status).toBe('COMPLETED');
  },
  async 'no receipt'(box, way) {
    const { body } = await box.validate(way);
    await box.sandbox.advance({ hours: 4 });
    expect((await box.read(body.id)).metadata.dataCep.status).toBe('FAILED');
  },
  async 'other holder'(box, way) {
    const { body } = await box.validate(way);
    await box.sandbox.advance({ minutes: 5 });
    expect((await box.read(body.id)).metadata.dataCep.beneficiaryName).toBe('FERNANDO LUGO ARRIAGA');
  },
};

const held = async ({ register, sandbox }: Box): Promise<string> => {
  await register('MONEY_IN');
  const { transaction } = await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1.00' });
  expect(transaction.transactionStatus).toBe('INITIALIZED');
  return transaction.id;
};
const newcomer = ({ customers }: TestSandbox) =>
  customers.find(({ validationStatus }) => validationStatus === 'PENDING')?.id ?? '';

/** What one call completes, tried twice: the second finds nothing pending. */
const COMPLETIONS: Readonly<Record<string, (box: Box, outcome: 'done' | 'failed') => Promise<string>>> = {
  async failed(box, outcome) {
    const before = box.balance();
    const { body } = await box.pay();
    await box.sandbox.complete(body.id, outcome);
    expect([await box.status(body.id), box.balance()]).toEqual(['REFUNDED', before]);
    return body.id;
  },
  async returned(box, outcome) {
    const before = box.balance();
    const { body } = await box.pay({ concept: 'Returned transfer' });
    await box.sandbox.complete(body.id, outcome);
    expect(await box.status(body.id)).toBe('LIQUIDATED');
    await box.sandbox.complete(body.id, outcome);
    expect([await box.status(body.id), box.balance()]).toEqual(['REFUNDED', before]);
    return body.id;
  },
  async stuck(box, outcome) {
    const { body } = await box.pay({ concept: 'Stuck transfer' });
    await box.sandbox.complete(body.id, outcome);
    expect(await box.status(body.id)).toBe('LIQUIDATED');
    return body.id;
  },
  async 'settled now'(box, outcome) {
    const { body } = await box.pay();
    const completed = await box.call('POST', '/sandbox/completions', { id: body.id, outcome });
    expect([completed.status, completed.body.transaction.id]).toEqual([201, body.id]);
    await box.sandbox.advance({ minutes: 5 });
    expect(await box.status(body.id)).toBe('LIQUIDATED');
    return body.id;
  },
  async 'receipt now'(box, outcome) {
    const { body } = await box.validate({ alias: 'No receipt' });
    await box.sandbox.complete(body.id, outcome);
    await box.sandbox.advance({ hours: 4 });
    const { transactionStatus, metadata } = await box.read(body.id);
    expect([transactionStatus, metadata.dataCep.status]).toEqual(['LIQUIDATED', 'COMPLETED']);
    return body.id;
  },
  async 'receipt failed now'(box, outcome) {
    const { body } = await box.validate();
    await box.sandbox.complete(body.id, outcome);
    await box.sandbox.advance({ hours: 4 });
    const { transactionStatus, metadata } = await box.read(body.id);
    expect([transactionStatus, metadata.dataCep.status]).toEqual(['REFUNDED', 'FAILED']);
    const { body: later } = await box.validate();
    await box.sandbox.advance({ seconds: 50 });
    await box.sandbox.complete(later.id, outcome);
    const settled = await box.read(later.id);
    expect([settled.transactionStatus, settled.metadata.dataCep.status]).toEqual(['LIQUIDATED', 'FAILED']);
    return body.id;
  },
  async 'credit accepted now'(box, outcome) {
    const id = await held(box);
    await box.sandbox.complete(id, outcome);
    expect(await box.status(id)).toBe('LIQUIDATED');
    return id;
  },
  async 'credit rejected now'(box, outcome) {
    const id = await held(box);
    await box.sandbox.complete(id, outcome);
    await box.sandbox.advance({ days: 1 });
    expect(await box.status(id)).toBe('REFUNDED');
    return id;
  },
  async 'customer validated now'(box, outcome) {
    const id = newcomer(box.sandbox);
    await expect(box.sandbox.complete(id, 'failed')).rejects.toThrow('It cannot fail.');
    expect(await box.sandbox.complete(id, outcome)).toMatchObject({
      customer: { id, customerValidationStatus: 'VALIDATED' },
    });
    return id;
  },
};

test('the table of magic values and the tests name the same outcomes', () => {
  const rows = (index: number) => ROWS.filter((row) => row[index] !== '').map(([outcome]) => outcome);
  expect(rows(1)).toEqual(Object.keys(CHECKS));
  expect(rows(3)).toEqual(Object.keys(COMPLETIONS));
});

for (const [name, choices] of READINGS) {
  for (const [outcome, words = '', amount = '', completion = ''] of ROWS) {
    const ways: Way[] = [
      ...(words === '' || words.includes('eceipt') || words === 'Other holder' ? [] : [{ concept: words }]),
      ...(words === '' ? [] : [{ alias: words.toUpperCase() }]),
      ...(amount === '' ? [] : [{ amount }]),
    ];
    test.concurrent.each(ways)(`${outcome}, %j, ${name} choices`, async (way) => {
      await using box = await open(choices);
      await CHECKS[outcome]?.(box, way, choices);
      expect((await box.sandbox.ledger()).balanced).toBe(true);
    });
    if (completion !== '')
      test(`${outcome}, by one call, ${name} choices`, async () => {
        await using box = await open(choices);
        const id = await COMPLETIONS[outcome]?.(box, completion === 'failed' ? 'failed' : 'done');
        await expect(box.sandbox.complete(id ?? '')).rejects.toThrow('nothing_pending');
        expect((await box.sandbox.ledger()).balanced).toBe(true);
      });
  }
}

test('a lost answer is there for the same Idempotency-Key', async () => {
  await using sandbox = await createSandbox();
  const send = () =>
    fetch(`${sandbox.url}/v1/transactions/money_out`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${sandbox.accessToken}`,
        'content-type': 'application/json',
        'idempotency-key': '2ed6657d-e927-568b-95e1-2665a8aea6a2',
      },
      body: JSON.stringify({
        client_id: sandbox.clientId,
        source_instrument_id: sandbox.centralizingInstrumentId,
        destination_instrument_id: sandbox.clabeInstrumentIds[0],
        transaction_request: {
          external_reference: '1',
          description: 'Lost answer',
          amount: '1.00',
          currency: 'MXN',
        },
      }),
    });
  await expect(send()).rejects.toThrow('fetch failed');
  expect((await send()).status).toBe(200);
  expect((await sandbox.ledger()).movements.at(-1)).toMatchObject({ description: 'Lost answer' });
});
