import { describe, expect, test } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { VARIANTS } from '../helpers/variants.ts';

const COUNT = 1_000_000;

describe('a sandbox with a large merchant', () => {
  test('holds as many customers more as asked for, each with an account and its instrument', async () => {
    const heap = process.memoryUsage().heapUsed;
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, customers: COUNT });
    // A customer that is kept takes two kilobytes and more.
    expect(process.memoryUsage().heapUsed - heap).toBeLessThan(500 * COUNT);
    const get = (path: string) => control(sandbox, 'GET', `/v1/clients/${sandbox.clientId}${path}`);
    const { totalItems } = await get('/customers');
    expect(totalItems).toBeGreaterThan(COUNT);

    const page = Math.floor(totalItems / 200);
    const [customers, accounts] = [
      await get(`/customers?page=${page}&per_page=100`),
      await get(`/accounts?page=${page}&per_page=100`),
    ];
    expect(customers.data).toHaveLength(100);
    const ids = new Set(customers.data.map(({ id }: { id: string }) => id));
    expect(ids.size).toBe(100);
    const shared = accounts.data.filter(({ ownerId }: { ownerId: string }) => ids.has(ownerId));
    expect(shared.length).toBeGreaterThan(80);
    const [account] = shared;
    const { data: instruments } = await get(`/instruments?customer_id=${account.ownerId}`);
    expect(instruments).toEqual([
      expect.objectContaining({ id: account.instrumentId, customerId: account.ownerId }),
    ]);

    const credit = { clabe: account.clabeNumber, amount: '12.50' };
    await control(sandbox, 'POST', '/sandbox/spei-credits', credit);
    const again = await get(`/accounts?page=${page}&per_page=100`);
    expect(again.data.find(({ id }: { id: string }) => id === account.id).availableBalance).toBe('12.50');
    expect(again.data.map(({ id }: { id: string }) => id)).toEqual(
      accounts.data.map(({ id }: { id: string }) => id),
    );
    expect(again.totalItem).toBe(accounts.totalItem);
    expect((await control(sandbox, 'GET', '/sandbox/ledger')).balanced).toBe(true);
  });

  test('shows another client no instrument of its customers', async () => {
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, customers: 10 });
    const { otherClients } = await control(sandbox, 'GET', '/sandbox');
    const other = { ...sandbox, accessToken: otherClients[0].accessToken };
    const customers = await control(
      sandbox,
      'GET',
      `/v1/clients/${sandbox.clientId}/customers?page=1&per_page=100`,
    );
    expect(customers.data).toHaveLength(customers.totalItems);
    let own = 0;
    for (const { id } of customers.data) {
      const path = (clientId: string) => `/v1/clients/${clientId}/instruments?customer_id=${id}`;
      own += (await control(sandbox, 'GET', path(sandbox.clientId))).totalItems;
      const theirs = await control(other, 'GET', path(otherClients[0].clientId));
      expect(theirs).toMatchObject({ data: [], totalItems: 0 });
    }
    expect(own).toBeGreaterThanOrEqual(10);
  });

  test.each(VARIANTS)('is read right through the gateway, on %s', async (_, options) => {
    await using gateway = await startGateway({
      webhooks: false,
      sandboxOptions: { ...options, customers: 700 },
      config: { upstreamTimeoutMs: 60_000, operationTimeoutMs: 120_000 },
    });
    const seen: { id: string; accounts: { nodes: { owner: { id: string } | null }[] } }[] = [];
    for (let after: string | null = null; ; ) {
      const { data, errors } = await gateway.query(
        'query ($after: Cursor) { client { customers(first: 100, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes { id accounts(first: 2) { nodes { owner { ... on Customer { id } } } } } } } }',
        { after },
      );
      expect(errors).toBeUndefined();
      const { customers } = data.client;
      seen.push(...customers.nodes);
      if (!customers.pageInfo.hasNextPage) {
        expect(seen).toHaveLength(customers.totalCount);
        break;
      }
      after = customers.pageInfo.endCursor;
    }
    expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length);
    for (const { id, accounts } of seen) {
      for (const { owner } of accounts.nodes) expect(owner).toEqual({ id });
    }
    const { data } = await gateway.query('query ($id: ID!) { customer(id: $id) { id name } }', {
      id: seen.at(-1)?.id,
    });
    expect(data.customer.id).toBe(seen.at(-1)?.id);
  });
});
