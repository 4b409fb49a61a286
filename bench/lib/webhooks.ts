import { createHmac, randomUUID } from 'node:crypto';
import { WEBHOOK_SECRET } from './contenders.ts';

/** Path of the gateway's ingress for MONEY_IN of a client (docs/events.md: the signature is an HMAC). */
export function moneyInPath(clientId: string): string {
  const signature = createHmac('sha256', WEBHOOK_SECRET).update(`${clientId}:MONEY_IN`).digest('base64url');
  return `/webhooks/${clientId}/MONEY_IN/${signature}`;
}

/** A MONEY_IN envelope (docs/upstream-api.md, "Events") with a message id of its own. */
export function moneyIn(ownerId: string): { readonly id: string; readonly body: string } {
  const id = randomUUID();
  const body = {
    id: randomUUID(),
    beneficiary_account: '646180110400000007',
    beneficiary_name: 'Comercializadora 1 S.A. de C.V.',
    beneficiary_rfc: 'ABC010203AB1',
    payer_account: '012180001234567899',
    payer_name: 'Ana Torres',
    payer_rfc: 'ND',
    payer_institution: '40012',
    amount: '1250.00',
    transaction_date: '2026-03-02 10:15:30',
    tracking_key: 'MBAN01002603020000000042',
    payment_concept: 'Factura 42',
    numeric_reference: '1234567',
    sub_category: 'SPEI_CREDIT',
    registered_at: '2026-03-02T10:15:30.123456-06:00',
    owner_id: ownerId,
  };
  return { id, body: JSON.stringify({ id_msg: id, msg_name: 'MONEY_IN', msg_date: '2026-03-02', body }) };
}

/** What every subscriber of the bench asks for. Nothing in it is read from the upstream. */
export const MONEY_IN = `subscription MoneyIn {
  moneyIn {
    id
    cursor
    receivedAt
    amount {
      amount
      currency
    }
    payer {
      account
      name
    }
    paymentConcept
    trackingKey
    decision
  }
}`;
