import { afterAll, beforeAll, expect, it } from 'vitest';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({
    webhooks: false,
    config: { listsMaxAgeMs: 0, upstreamTimeoutMs: 4_000, operationTimeoutMs: 60_000 },
  });
  // From here on the gateway knows who is calling.
  await gateway.query('{ client { id } }');
});
afterAll(() => gateway.stop());

it('a catalog of banks serves for a while, also where lists are believed for no time', async () => {
  const { data } = await gateway.query('{ banks { id } }');
  expect(data.banks.length).toBeGreaterThan(0);
  await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
  expect((await gateway.query('{ banks { id __typename } }')).data.banks).toHaveLength(data.banks.length);
  const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
  expect(counts).toEqual({});
});

it('a REST call has a time of its own, however much the operation has', async () => {
  await control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { path: '/v1/clients/*/webhooks' },
    fault: 'hang',
  });
  const { errors } = await gateway.query('{ client { webhooks { totalCount } } }');
  await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
  expect(errors).toMatchObject([{ message: 'The service did not answer within 4000 ms.' }]);
});

it('an answer holds as many items as an operation may cost, whatever else is limited', async () => {
  const { sandbox } = gateway;
  const limits = { tokens: 2_000, depth: 2_000, aliases: 2_000, directives: 2_000, cost: 5 };
  await using strict = await startGateway({ sandbox, webhooks: false, config: { limits } });
  const { errors } = await strict.query('{ client { instruments(first: 100) { totalCount } } }');
  expect(errors).toMatchObject([{ message: expect.stringContaining('more than 5 items') }]);
});

it('a credit that names a customer whom the list lacks has that list read again', async () => {
  // A list of several pages, whose items' places are known once all have been read.
  await using believing = await startGateway({
    webhooks: false,
    sandboxOptions: { customers: 250 },
    config: { listsMaxAgeMs: 3_600_000 },
  });
  const { sandbox } = believing;
  const unknown = '00000000-0000-4000-8000-000000000000';
  const find = async () => {
    await control(sandbox, 'DELETE', '/sandbox/requests');
    const { data } = await believing.query('query ($id: ID!) { customer(id: $id) { id } }', { id: unknown });
    expect(data.customer).toBeNull();
    return (await control(sandbox, 'GET', '/sandbox/requests')).counts[
      'GET /v1/clients/{clientId}/customers'
    ];
  };
  await find();
  expect(await find()).toBeUndefined();
  const deliver = async (owner: string) => {
    const body = { id: unknown, amount: '1.00', owner_id: owner, beneficiary_account: 'none of the list' };
    const delivered = await fetch(believing.ingress.url(sandbox.clientId, 'MONEY_IN') ?? '', {
      method: 'POST',
      body: JSON.stringify({ id_msg: `a credit of ${owner}`, body }),
    });
    expect(delivered.ok).toBe(true);
  };
  // The client is none of its customers.
  await deliver(sandbox.clientId.toUpperCase());
  expect(await find()).toBeUndefined();
  await deliver(unknown);
  expect(await find()).toBeGreaterThan(0);
});
