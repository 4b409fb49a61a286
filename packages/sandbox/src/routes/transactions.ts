import { z } from 'zod';
import { parseCents } from '../amounts.ts';
import type { RestAnswers } from '../endpoints.ts';
import { dataError, notFound, preconditionFailed } from '../errors.ts';
import { type App, answer, operation, pathId, readBody, uuid } from '../http.ts';
import { refundCredit } from '../operations/credits.ts';
import { transferInternally } from '../operations/internal-transaction.ts';
import { startMoneyOut } from '../operations/money-out.ts';
import { startPennyValidation } from '../operations/penny-validation.ts';
import type { RestPennyValidation, RestRefund, RestTransfer } from '../rest.ts';
import type { Transaction } from '../state.ts';
import { viewNewTransaction, viewTransaction } from '../views.ts';
import type { World } from '../world.ts';

const parties = {
  client_id: uuid,
  source_instrument_id: uuid,
  destination_instrument_id: uuid,
};

const transfer = z.object({
  ...parties,
  transaction_request: z.object({
    external_reference: z.string(),
    description: z.string(),
    amount: z.string(),
    currency: z.string(),
  }),
}) satisfies z.ZodType<RestTransfer>;

const pennyValidation = z.object({
  ...parties,
  description: z.string().optional(),
  external_reference: z.string().optional(),
}) satisfies z.ZodType<RestPennyValidation>;

const refund = z.union([
  z.object({ amount: z.string(), description: z.string() }),
  z.object({ refundReason: z.string(), amount: z.undefined().optional() }),
]) satisfies z.ZodType<RestRefund>;

/** Endpoints 11 to 15. */
export function transactionRoutes(app: App, world: World): void {
  paymentRoutes(app, world);
  oneTransactionRoutes(app, world);
}

/** Endpoints 11 to 13: what makes a transaction. */
function paymentRoutes(app: App, world: World): void {
  app.post('/v1/transactions/money_out', operation('Transactions', 'MoneyOut'), async (c) => {
    const transaction = startMoneyOut(world, c.get('clientId'), await readBody(c, transfer));
    c.set('performed', transaction);
    return answer<RestAnswers['POST /v1/transactions/money_out']>(
      c,
      world,
      viewNewTransaction(world, transaction),
    );
  });

  app.post(
    '/v1/transactions/internal_transaction',
    operation('Transactions', 'InternalTransaction'),
    async (c) => {
      const transaction = transferInternally(world, c.get('clientId'), await readBody(c, transfer));
      c.set('performed', transaction);
      return answer<RestAnswers['POST /v1/transactions/internal_transaction']>(
        c,
        world,
        viewNewTransaction(world, transaction),
      );
    },
  );

  app.post('/v1/transactions/penny_validation', operation('Transactions', 'PennyValidation'), async (c) => {
    const body = await readBody(c, pennyValidation);
    const transaction = startPennyValidation(world, c.get('clientId'), body);
    c.set('performed', transaction);
    return answer<RestAnswers['POST /v1/transactions/penny_validation']>(
      c,
      world,
      viewNewTransaction(world, transaction),
    );
  });
}

/** Endpoints 14 and 15: of a transaction that there is. */
function oneTransactionRoutes(app: App, world: World): void {
  app.post(
    '/v1/clients/:clientId/transactions/:transactionId/refund',
    operation('Transactions', 'RefundTransaction'),
    async (c) => {
      const body = await readBody(c, refund);
      const credit = find(world, c.get('clientId'), pathId(c, 'transactionId'));
      if (body.amount !== undefined) checkFullAmount(credit, body.amount);
      const description = body.amount === undefined ? body.refundReason : body.description;
      const made = refundCredit(world, credit, description);
      return answer<RestAnswers['POST /v1/clients/{clientId}/transactions/{transactionId}/refund']>(
        c,
        world,
        viewNewTransaction(world, made),
        world.choices.refundCreated,
      );
    },
  );

  app.get(
    '/v1/clients/:clientId/transactions/:transactionId',
    operation('Transactions', 'GetTransaction'),
    (c) => {
      const transaction = find(world, c.get('clientId'), pathId(c, 'transactionId'));
      const asked: [string | undefined, string][] = [
        [c.req.query('transaction_status'), transaction.status],
        [c.req.query('tracking_id'), transaction.trackingId],
        [c.req.query('transaction_category'), transaction.category],
        [c.req.query('bank_id'), transaction.bankId],
      ];
      if (asked.some(([wanted, actual]) => wanted !== undefined && wanted !== actual)) {
        throw notFound('transaction_not_found');
      }
      return answer<RestAnswers['GET /v1/clients/{clientId}/transactions/{transactionId}']>(
        c,
        world,
        viewTransaction(world, transaction),
      );
    },
  );
}

function find(world: World, clientId: string, id: string): Transaction {
  const transaction = world.state.transactions.get(id);
  if (transaction?.clientId !== clientId) throw notFound('transaction_not_found');
  return transaction;
}

function checkFullAmount(credit: Transaction, text: string): void {
  const amount = parseCents(text);
  if (amount === undefined) throw dataError('Transaction Amount must be a numeric string with two decimals.');
  if (amount !== credit.amount) throw preconditionFailed('The amount must equal the amount received.');
}
