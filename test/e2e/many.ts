import { makeClabe } from '../../packages/sandbox/src/clabe.ts';
import type { Sandbox } from '../../packages/sandbox/src/index.ts';
import { control } from '../helpers/gateway.ts';

/** Receivers beyond the first page of the list. */
export async function registerMany(sandbox: Sandbox, count: number): Promise<void> {
  const { clientId, bankIds } = await control(sandbox, 'GET', '/sandbox');
  for (let number = 1; number <= count; number += 1) {
    await control(sandbox, 'POST', `/v1/clients/${clientId}/instruments`, {
      source_bank_id: bankIds[0],
      client_id: clientId,
      type: 'RECEIVER',
      rfc: 'ND',
      alias: `Proveedor ${number}`,
      virtual_clabe: {
        destination_bank_id: bankIds[5],
        clabe_number: makeClabe('012', '180', String(number).padStart(11, '0')),
        holder_name: `Titular ${number}`,
      },
    });
  }
}
