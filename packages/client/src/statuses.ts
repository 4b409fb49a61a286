import { type TypedDocument, typed } from './source.ts';

export interface CepUpdate {
  readonly kind: 'SNAPSHOT' | 'CHANGE';
  readonly transactionId: string;
  readonly cep: {
    readonly status: 'PENDING' | 'DELAYED' | 'COMPLETED' | 'FAILED' | 'OTHER';
    readonly rawStatus: string;
    readonly final: boolean;
    readonly url: string | null;
    readonly beneficiaryName: string | null;
    readonly beneficiaryRfc: string | null;
    readonly processedAt: string | null;
  };
}

export const CEP_STATUS: TypedDocument<
  { readonly cepStatus: CepUpdate },
  { readonly transactionId: string }
> = typed(`subscription PasarelaCepStatus($transactionId: ID!) {
  cepStatus(transactionId: $transactionId) {
    kind
    transactionId
    cep {
      status
      rawStatus
      final
      url
      beneficiaryName
      beneficiaryRfc
      processedAt
    }
  }
}`);

export interface TransactionUpdate {
  readonly kind: 'SNAPSHOT' | 'CHANGE';
  readonly transaction: {
    readonly id: string;
    readonly status: 'INITIALIZED' | 'LIQUIDATED' | 'REFUNDED' | 'OTHER';
    readonly rawStatus: string;
    readonly amount: { readonly amount: string; readonly currency: string };
  };
}

export const TRANSACTION_STATUS: TypedDocument<
  { readonly transactionStatus: TransactionUpdate },
  { readonly transactionId: string }
> = typed(`subscription PasarelaTransactionStatus($transactionId: ID!) {
  transactionStatus(transactionId: $transactionId) {
    kind
    transaction {
      id
      status
      rawStatus
      amount {
        amount
        currency
      }
    }
  }
}`);
