import { expect, it } from 'vitest';
import { startSandbox } from '#sandbox';
import { startGateway } from '../helpers/gateway.ts';
import { startFront } from '../scenarios/faults/front.ts';
import { documentOf, movementsOf, payable } from '../scenarios/faults/payments.ts';

const tokenOf = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;

it('one key pays once under two tokens that spell the client in different letters', async () => {
  await using cleanup = new AsyncDisposableStack();
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  cleanup.defer(() => sandbox.stop());
  const { clientId } = sandbox;
  expect(clientId.toUpperCase()).not.toBe(clientId);
  // A service that accepts both tokens for the one client.
  const front = cleanup.use(
    await startFront(sandbox.url, ({ headers }) => {
      headers.authorization = `Bearer ${sandbox.accessToken}`;
      return false;
    }),
  );
  const gateway = cleanup.use(
    await startGateway({ sandbox, webhooks: false, config: { upstreamUrl: front.url } }),
  );
  const { input, tag } = await payable(sandbox, 'createMoneyOut', 'spelled');
  const pay = async (claims: object) => {
    const authorization = `Bearer ${tokenOf(claims)}`;
    return (await gateway.query(documentOf('createMoneyOut'), { input }, { authorization })).data?.result;
  };
  const first = await pay({ sub: clientId });
  expect(first).toMatchObject({ __typename: 'CreateMoneyOutSuccess', replayed: false });
  for (const claims of [
    { client_id: clientId.toUpperCase() },
    { cid: clientId, sub: clientId.toUpperCase() },
  ])
    expect(await pay(claims)).toEqual({ ...first, replayed: true });
  expect(await movementsOf(sandbox, tag)).toHaveLength(1);
  expect(front.changes).toHaveLength(1);
});
