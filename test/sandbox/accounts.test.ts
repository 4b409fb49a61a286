import { describe, expect, test } from 'vitest';
import { clabeCheckDigit } from '../../packages/sandbox/src/clabe.ts';
import { createSandbox } from '../../packages/sandbox/src/index.ts';
import { at, expectRefusal, openSandbox, READINGS } from './harness.ts';
import { tables } from './spec.ts';

describe.each(READINGS)('private accounts, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  test('an account of the client is created with 201, its instrument, and a CLABE of its own', async () => {
    await using box = await openSandbox(choices);
    const { clientId, bankIds, clientBankAdapterId } = box.seeded;
    const account_id = 'b2a7a1a6-54a5-4a52-9a67-2f3f2c6b1c11';
    const reply = await box.post(box.of('/private_accounts'), {
      bank_id: at(bankIds, 3),
      owner_id: clientId,
      client_bank_adapter_id: clientBankAdapterId,
      client_id: clientId,
      account_id,
    });
    expect(reply.status).toBe(201);
    const account = reply.as(spec.privateAccount);
    expect(account).toMatchObject({
      accountId: account_id,
      bankId: at(bankIds, 3),
      ownerId: clientId,
      ownerType: 'CLIENT',
      availableBalance: '0.00',
      accountType: 'PRIVATE_ACCOUNT',
      accountStatus: 'ACTIVE',
    });
    expect(clabeCheckDigit(account.clabeNumber.slice(0, 17))).toBe(account.clabeNumber[17]);
    expect(box.seeded.accounts.map(({ clabe }) => clabe)).not.toContain(account.clabeNumber);
    const tied = (await box.get(box.of(`/instruments/${account.instrumentId}`))).as(spec.instrument);
    expect(tied.instrumentDetail).toMatchObject({
      accountNumber: account.accountNumber,
      clabeNumber: account.clabeNumber,
    });
  });

  test.each(['bank_id', 'owner_id', 'client_bank_adapter_id', 'client_id', 'account_id'])(
    'an account of the client needs %s',
    async (field) => {
      await using box = await openSandbox(choices);
      const { clientId, bankIds, clientBankAdapterId } = box.seeded;
      const body: Record<string, string> = {
        bank_id: at(bankIds, 0),
        owner_id: clientId,
        client_bank_adapter_id: clientBankAdapterId,
        client_id: clientId,
        account_id: clientBankAdapterId,
      };
      const { [field]: _left, ...without } = body;
      expectRefusal(await box.post(box.of('/private_accounts'), without), {
        status: 400,
        reason: 'DATA_ERROR',
      });
      const wrong = { ...body, [field]: 'not-a-uuid' };
      expectRefusal(await box.post(box.of('/private_accounts'), wrong), {
        status: 400,
        reason: 'DATA_ERROR',
      });
    },
  );

  test('an account of a customer is created with 200 and ownerType CUSTOMER', async () => {
    await using box = await openSandbox(choices);
    const customerId = at(box.seeded.customerIds, 1);
    const reply = await box.post(box.of(`/customers/${customerId}/private_accounts`), {
      client_id: box.seeded.clientId,
      client_bank_adapter_id: box.seeded.clientBankAdapterId,
      bank_id: at(box.seeded.bankIds, 0),
      owner_id: customerId,
    });
    expect(reply.status).toBe(200);
    expect(reply.as(spec.privateAccount)).toMatchObject({ ownerId: customerId, ownerType: 'CUSTOMER' });
  });

  test('an account for a customer that does not exist, or is another client’s, is 404', async () => {
    await using box = await openSandbox(choices);
    const theirs = at(at(box.seeded.otherClients, 0).customerIds, 0);
    for (const customerId of [theirs, '3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111']) {
      const reply = await box.post(box.of(`/customers/${customerId}/private_accounts`), {
        client_id: box.seeded.clientId,
        client_bank_adapter_id: box.seeded.clientBankAdapterId,
        bank_id: at(box.seeded.bankIds, 0),
        owner_id: customerId,
      });
      expectRefusal(reply, { status: 404 });
    }
  });

  test('what a customer’s account must name is a choice', async () => {
    await using box = await openSandbox(choices);
    const path = box.of(`/customers/${at(box.seeded.customerIds, 0)}/private_accounts`);
    const reply = await box.post(path, {});
    expect(reply.status).toBe(choices.customerAccountRequires.length === 0 ? 200 : 400);
  });
});

test('an account that is opened is shown by the control, with its balance', async () => {
  await using sandbox = await createSandbox({ customers: 10 });
  const call = async (path: string, body?: object) => {
    const response = await fetch(sandbox.url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return JSON.parse(await response.text());
  };
  const before = sandbox.accounts.length;
  const customer = at(sandbox.customerIds, 0);
  const path = `/v1/clients/${sandbox.clientId}/customers/${customer}/private_accounts`;
  const { id, instrumentId, clabeNumber: clabe } = await call(path, {});
  await sandbox.credit({ clabe, amount: '12.50' });
  const [told, overview] = [await call('/sandbox'), await call('/sandbox/overview')];
  for (const accounts of [sandbox.accounts, told.accounts, overview.accounts]) {
    expect(accounts).toHaveLength(before + 1);
    expect(accounts.at(-1)).toMatchObject({ id, clabe, ownerId: customer, availableBalance: '12.50' });
  }
  expect(told.accountIds.at(-1)).toBe(id);
  expect(told.internalInstrumentIds.at(-1)).toBe(instrumentId);
  expect(told.instruments).toContainEqual(expect.objectContaining({ id: instrumentId, role: 'internal' }));
});

test('a run gives nobody a CLABE that another run of the same seed has given', async () => {
  const opened = async (run?: string) => {
    await using sandbox = await createSandbox(run === undefined ? {} : { run });
    const path = `/v1/clients/${sandbox.clientId}/customers/${at(sandbox.customerIds, 0)}/private_accounts`;
    const response = await fetch(sandbox.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
      body: '{}',
    });
    return tables(true).privateAccount.parse(await response.json()).clabeNumber;
  };
  const clabes = [await opened(), await opened('monday'), await opened('tuesday')];
  expect(new Set(clabes).size).toBe(3);
  expect(clabes.map((clabe) => clabeCheckDigit(clabe.slice(0, 17)))).toEqual(
    clabes.map((clabe) => clabe[17]),
  );
  expect(await opened('monday')).toBe(clabes[1]);
});
