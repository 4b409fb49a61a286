import { createGateway } from 'pasarela/testing';
import { expect, it } from 'vitest';
import { createSandbox } from '#sandbox';

it('a gateway on a sandbox, started in three lines, shows a credit and forgets it when it is closed', async () => {
  await using sandbox = await createSandbox({ seed: 7 });
  const gateway = await createGateway({ sandbox });
  await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1250.00', concept: 'Three lines' });
  const query = '{ events(last: 1) { nodes { __typename ... on MoneyInEvent { paymentConcept } } } }';
  const response = await fetch(gateway.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.token}` },
    body: JSON.stringify({ query }),
  });
  expect(await response.json()).toMatchObject({
    data: { events: { nodes: [{ __typename: 'MoneyInEvent', paymentConcept: 'Three lines' }] } },
  });
  await gateway.close();
  await expect(fetch(gateway.url)).rejects.toThrow('fetch failed');
  expect((await fetch(`${sandbox.url}/sandbox`)).status).toBe(200);
});
