import { toAmount } from '../common/amounts.ts';
import type { Context } from '../operation/context.ts';
import { type Optional, present } from '../upstream/call/json.ts';
import type { DataCep, Transaction } from '../upstream/transactions.ts';
import { openEnum } from './open-enum.ts';
import { PENNY } from './payments/payment-input.ts';
import { invalid, partOf } from './values.ts';

const status = openEnum('CepStatus', ['PENDING', 'DELAYED', 'COMPLETED', 'FAILED']);

/** The transient INITIALIZED is PENDING, as the spec asks of clients (docs/upstream-api.md, "dataCep.status"). */
export const cepStatus = (raw: unknown, context: Context): ReturnType<typeof status> =>
  status(raw === 'INITIALIZED' ? 'PENDING' : raw, context.services.logger);

/** Whether a receipt in this state can no longer change. */
export const isFinal = (raw: string): boolean => raw === 'COMPLETED' || raw === 'FAILED';

/** The receipt that a transaction carries; null for all but penny validations. */
export function cepOf(transaction: Transaction): DataCep | null {
  const cep = transaction.metadata?.dataCep;
  return typeof cep?.status === 'string' ? cep : null;
}

/**
 * Whether a transaction may be a penny validation, whose receipt the service may show later than the transaction
 * (docs/upstream-api.md, endpoint 13). Money out of 0.01 MXN looks the same.
 */
export const mayHaveReceipt = ({ amount, subCategory }: Transaction): boolean =>
  subCategory === 'SPEI_DEBIT' && toAmount(amount) === PENNY;

/**
 * The receipt for who asks for the transaction: one that cannot be read is not shown as none.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` for one without a state.
 */
export function receiptOf({ metadata }: Transaction): DataCep | null {
  const cep = partOf(partOf(metadata, 'metadata')?.dataCep, 'metadata.dataCep');
  if (cep !== null && typeof cep.status !== 'string') throw invalid('metadata.dataCep', 'has no status');
  return cep;
}

/** What a CEP message says about a receipt. */
export interface CepNews {
  readonly status: string;
  readonly beneficiaryName?: Optional;
  readonly beneficiaryRfc?: Optional;
  readonly processedAt?: Optional;
}

/** How far along a receipt is: states only ever climb. An undocumented state ranks between them. */
function rank(raw: string): number {
  if (isFinal(raw)) return 3;
  if (raw === 'DELAYED') return 2;
  return raw === 'PENDING' || raw === 'INITIALIZED' ? 0 : 1;
}

/** Whether a state is news to somebody who has been shown another: never a step back of documented states, never the same again. */
export function isNews(raw: string, shown: string): boolean {
  if (isFinal(shown)) return false;
  const [next, last] = [rank(raw), rank(shown)];
  return next > last || (next === 1 && last === 1 && raw !== shown);
}

/** A receipt as last read, brought up to date by a message that is newer. */
export function withNews(cep: DataCep | null, news: CepNews): DataCep {
  return {
    ...cep,
    status: news.status,
    beneficiaryName: present(news.beneficiaryName) ?? cep?.beneficiaryName,
    beneficiaryRfc: present(news.beneficiaryRfc) ?? cep?.beneficiaryRfc,
    processedAt: present(news.processedAt) ?? cep?.processedAt,
  };
}
