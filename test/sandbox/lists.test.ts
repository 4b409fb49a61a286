import { describe, expect, test } from 'vitest';
import { at, expectRefusal, openSandbox, READINGS } from './harness.ts';
import { tables } from './spec.ts';

describe.each(READINGS)('lists, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  test('banks come as total_banks, page, page_size and banks, each with one uuid', async () => {
    await using box = await openSandbox(choices);
    const ids: string[] = [];
    for (let page = 1; ; page += 1) {
      const reply = (await box.get(`/v1/banks?page=${page}`)).as(spec.banks);
      ids.push(...reply.banks.map((bank) => String(bank[choices.bankFields.id])));
      expect(reply.page).toBe(page);
      if (page * reply.page_size >= reply.total_banks) break;
    }
    expect(new Set(ids)).toEqual(new Set(box.seeded.bankIds));
  });

  test('accounts are counted by totalItem, and show the balance of the ledger', async () => {
    await using box = await openSandbox(choices);
    const reply = (await box.get(box.of('/accounts'))).as(spec.accounts);
    expect(reply.currentPage).toBe(1);
    expect(reply.data).toHaveLength(Math.min(reply.totalItem, reply.perPage));
    const { accounts } = await box.ledger();
    for (const account of reply.data) {
      expect(accounts.find(({ id }) => id === account.id)?.balance).toBe(account.availableBalance);
    }
    const types = new Set(reply.data.map(({ ownerType }) => ownerType));
    expect(types.has('CUSTOMER')).toBe(choices.accountsIncludeCustomers);
  });

  test('customers are counted by totalItems, validated ones and one that is pending', async () => {
    await using box = await openSandbox(choices);
    const first = (await box.get(box.of('/customers'))).as(spec.customers);
    const rest = (await box.get(box.of('/customers?page=2'))).as(spec.customers);
    const customers = [...first.data, ...rest.data];
    expect(customers).toHaveLength(first.totalItems);
    const states = customers.map(({ customerValidationStatus }) => customerValidationStatus);
    expect(states.sort()).toEqual(['PENDING', 'VALIDATED', 'VALIDATED']);
  });

  test('a pending customer is validated on the clock', async () => {
    await using box = await openSandbox(choices);
    await box.step(choices.kybSeconds);
    const page = (await box.get(box.of('/customers?page=1'))).as(spec.customers);
    for (const customer of page.data) expect(customer.customerValidationStatus).toBe('VALIDATED');
  });

  test('instruments are paged from 1, and page by page make the whole', async () => {
    await using box = await openSandbox(choices);
    const ids: string[] = [];
    for (let page = 1; ; page += 1) {
      const reply = (await box.get(box.of(`/instruments?page=${page}&per_page=6`))).as(spec.instruments);
      expect(reply).toMatchObject({ currentPage: page, perPage: 6 });
      ids.push(...reply.data.map(({ id }) => id));
      if (page * reply.perPage >= reply.totalItems) break;
    }
    expect(ids).toHaveLength(new Set(ids).size);
    expect(ids.length).toBeGreaterThanOrEqual(25);
    expect(new Set(ids)).toEqual(new Set(box.seeded.instruments.map(({ id }) => id)));
  });

  test('each client lists its own alone', async () => {
    await using box = await openSandbox(choices);
    const other = at(box.seeded.otherClients, 0);
    const list = (name: string) =>
      box.call('GET', `/v1/clients/${other.clientId}/${name}`, undefined, {
        authorization: `Bearer ${other.accessToken}`,
      });
    const instruments = {
      data: [
        ...(await list('instruments?per_page=7')).as(spec.instruments).data,
        ...(await list('instruments?per_page=7&page=2')).as(spec.instruments).data,
      ],
    };
    const ids = (things: readonly { id: string }[]) => things.map(({ id }) => id).sort();
    expect(ids(instruments.data)).toEqual(ids(other.instruments));
    expect((await list('customers')).as(spec.customers).data.map(({ id }) => id)).toEqual(other.customerIds);
    for (const { id } of (await list('accounts')).as(spec.accounts).data) {
      expect(other.accountIds).toContain(id);
    }
  });

  test('per_page is bounded, and the size that was used is answered', async () => {
    await using box = await openSandbox(choices);
    const reply = (await box.get(box.of('/instruments?per_page=100000'))).as(spec.instruments);
    expect(reply.perPage).toBe(choices.instrumentPage.max);
    const beyond = (await box.get(box.of('/instruments?page=999'))).as(spec.instruments);
    expect(beyond).toMatchObject({ currentPage: 999, data: [] });
  });

  test.each(['page=0', 'page=-1', 'page=x', 'per_page=0', 'per_page=1.5', 'customer_id=no-uuid'])(
    'the instrument list refuses %s',
    async (query) => {
      await using box = await openSandbox(choices);
      expectRefusal(await box.get(box.of(`/instruments?${query}`)), { status: 400, reason: 'DATA_ERROR' });
    },
  );

  test('customer_id narrows the instruments to that customer’s', async () => {
    await using box = await openSandbox(choices);
    const customerId = at(box.seeded.customerIds, 0);
    const reply = (await box.get(box.of(`/instruments?customer_id=${customerId}&per_page=7`))).as(
      spec.instruments,
    );
    expect(reply.totalItems).toBe(
      box.seeded.instruments.filter(({ ownerId }) => ownerId === customerId).length,
    );
    for (const { customerId: theirs, ownerId } of reply.data) {
      expect([theirs, ownerId]).toEqual([customerId, customerId]);
    }
  });

  test('customerId is there exactly when a customer owns the instrument', async () => {
    await using box = await openSandbox(choices);
    const clientLevel = await box.get(box.of(`/instruments/${box.seeded.centralizingInstrumentId}`));
    const instrument = clientLevel.as(spec.instrument);
    expect(instrument).not.toHaveProperty('customerId');
    expect(instrument.ownerId).toBe(box.seeded.clientId);
  });

  test('an instrument that does not exist is 404', async () => {
    await using box = await openSandbox(choices);
    const unknown = '3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111';
    expectRefusal(await box.get(box.of(`/instruments/${unknown}`)), { status: 404 });
    expectRefusal(await box.get(box.of('/instruments/..%2fbanks')), { status: 404 });
  });
});
