import { randomUUID } from 'node:crypto';
import { control, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { deliverTo, world } from './world.ts';

/** A gateway with a caller who is narrowed to a customer, and so is shown receipts of known owners alone. */
export const RECEIPTS = world(
  'receipts of customers',
  async (cleanup) => {
    const plain = cleanup.use(await startGateway({ webhooks: false }));
    const { sandbox } = plain;
    const gateway = cleanup.use(
      await startGateway({ sandbox, webhooks: false, config: { service: serviceFor(sandbox) } }),
    );
    const { customerIds } = await control(sandbox, 'GET', '/sandbox');
    const authorization = `Bearer ${await callerToken({ customer_id: customerIds[0] })}`;
    const read = () => gateway.query('{ events(first: 100) { nodes { id } } }', {}, { authorization });
    return { url: gateway.url, gateway, read, deliver: () => deliverTo(gateway) };
  },
  [
    {
      alerts: ['PasarelaReceiptsNotShown'],
      fault: 'A receipt comes that names no transaction, and a customer reads the log.',
      async cause({ gateway: { ingress, sandbox }, read }) {
        const body = { id: 'no UUID', status: 'PENDING' };
        const message = {
          client_id: sandbox.clientId,
          webhook_type: 'CEP',
          payload: { id_msg: randomUUID(), body },
        };
        const address = ingress.url(sandbox.clientId, 'CEP') ?? '';
        await until(
          async () =>
            (await fetch(address, { method: 'POST', body: JSON.stringify(message) })).status === 201,
        );
        await read();
      },
    },
  ],
);
