import { z } from 'zod';
import { notFound } from './errors.ts';
import { type Ctx, readBody, uuid } from './http.ts';
import { refundCredit } from './operations/credits.ts';
import type { Seeded } from './seed.ts';
import { type Json, viewNewTransaction } from './views.ts';
import type { World } from './world.ts';

const refund = z.strictObject({
  transactionId: uuid.optional(),
  reason: z.string().min(1).default('Devolucion'),
});

/**
 * Sends a received SPEI credit back, as the provider's dashboard can: the one named, or the demo client's latest that can
 * be refunded.
 *
 * @throws ApiError 404 where there is none; 400 as endpoint 14.
 */
export async function refundReceived(c: Ctx, world: World, seeded: readonly Seeded[]): Promise<Json> {
  const { transactionId, reason } = await readBody(c, refund);
  const transactions = world.state.transactions;
  const demo = seeded[0]?.client.id;
  const credit =
    transactionId === undefined
      ? [...transactions.values()].findLast(
          ({ clientId, subCategory, status }) =>
            clientId === demo && subCategory === 'SPEI_CREDIT' && status === 'LIQUIDATED',
        )
      : transactions.get(transactionId.toLowerCase());
  if (credit === undefined) throw notFound('transaction_not_found');
  return { refund: viewNewTransaction(world, refundCredit(world, credit, reason)) };
}
