import { z } from 'zod';
import { uuid } from './http.ts';

export const creditOrder = z.strictObject({
  clabe: z.string(),
  amount: z.string(),
  payerName: z.string().min(1).default('Ordenante Externo'),
  concept: z.string().default('Pago recibido'),
});

export const refundOrder = z.strictObject({
  transactionId: uuid.optional(),
  reason: z.string().min(1).default('Devolucion'),
});

export const completionOrder = z.strictObject({
  id: uuid,
  outcome: z.enum(['done', 'failed']).default('done'),
});

export const receiptOrder = z.strictObject({
  transactionId: uuid,
  receipt: z.union([
    z.enum(['now', 'late', 'never', 'other-holder']),
    z.strictObject({
      status: z.string().regex(/^(?!(?:COMPLETED|FAILED)$)[A-Z_]{1,40}$/, {
        error: 'a state such as "REJECTED"; for COMPLETED or FAILED complete it',
      }),
    }),
  ]),
});

/** What becomes of a receipt, or the state that it shows until it ends. */
export type ReceiptWish = z.infer<typeof receiptOrder>['receipt'];
