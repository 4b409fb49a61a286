import { createHmac, randomUUID } from 'node:crypto';
import { WEBHOOK_SECRET } from './contenders.ts';

/** Path of the gateway's ingress for a type of message of a client, which ends with an HMAC of both. */
function ingressPath(clientId: string, type: 'MONEY_IN' | 'CEP' | 'STATUS_UPDATE'): string {
  const signature = createHmac('sha256', WEBHOOK_SECRET).update(`${clientId}:${type}`).digest('base64url');
  return `/webhooks/${clientId}/${type}/${signature}`;
}

export const moneyInPath = (clientId: string): string => ingressPath(clientId, 'MONEY_IN');
export const cepPath = (clientId: string): string => ingressPath(clientId, 'CEP');

export const statusUpdatePath = (clientId: string): string => ingressPath(clientId, 'STATUS_UPDATE');

/** A STATUS_UPDATE that names a transaction. What else it holds, nobody documents. */
export const statusUpdate = (transactionId: string): string =>
  JSON.stringify({ id_msg: randomUUID(), msg_name: 'STATUS_UPDATE', body: { id: transactionId } });

/** A CEP envelope (docs/upstream-api.md, "Events"): the receipt of a transaction is late. */
export function cep(clientId: string, transactionId: string): string {
  const body = {
    id: transactionId,
    beneficiary_account: '012180001234567899',
    beneficiary_name: null,
    beneficiary_rfc: null,
    status: 'DELAYED',
    tracking_key: `50118609${transactionId.slice(0, 8)}`,
    external_reference: null,
    payment_concept: 'Validación',
    processed_at: null,
  };
  const payload = { id_msg: randomUUID(), msg_name: 'CEP', msg_date: '2026-03-02', body };
  return JSON.stringify({ client_id: clientId, webhook_type: 'CEP', payload });
}

/** What a phone asks for that waits for a receipt. */
export const CEP_STATUS = `subscription Receipt($id: ID!) {
  cepStatus(transactionId: $id) {
    kind
    transactionId
    cep {
      status
      final
      beneficiaryName
    }
  }
}`;

/** What a phone asks for that waits for the end of a payment. */
export const TRANSACTION_STATUS = `subscription Status($id: ID!) {
  transactionStatus(transactionId: $id) {
    kind
    transaction {
      id
      status
    }
  }
}`;

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
