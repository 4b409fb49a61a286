import { randomUUID } from 'node:crypto';
import { control, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, payable } from '../../scenarios/faults/payments.ts';
import { deliverTo, goOn, world } from './world.ts';

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
    const wholeClient = { authorization: `Bearer ${await callerToken()}` };
    const validate = async () => {
      const { input } = await payable(sandbox, 'createPennyValidation', randomUUID());
      await gateway.query(documentOf('createPennyValidation'), { input }, wholeClient);
    };
    return { url: gateway.url, gateway, read, validate, deliver: () => deliverTo(gateway) };
  },
  [
    {
      alerts: ['PasarelaNoReceipts'],
      fault: 'Penny validations are made, and no message about a receipt comes.',
      async cause({ validate }, ended) {
        // The next fault is a message.
        await goOn(ended, validate);
      },
    },
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
