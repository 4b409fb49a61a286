import { create } from 'zustand';
import { isObject, type Result } from './net/result.ts';
import { isFilledIn, rememberFilledIn } from './storage.ts';

/** The penny validation that was started last on this page. */
export const useValidation = create<{ readonly id: string | undefined }>(() => ({ id: undefined }));

/** The transaction that a result of `createPennyValidation` tells of. */
export function validationOf({ data }: Result): string | undefined {
  const made = data?.['createPennyValidation'];
  const transaction = isObject(made) ? made['transaction'] : undefined;
  const id = isObject(transaction) ? transaction['id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

/** The variables of a receipt's watch with the latest id in them; undefined where they are to stay as they are. */
export function withLatest(variables: string, id: string | undefined): string | undefined {
  if (id === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(variables || '{}');
    if (!isObject(parsed) || parsed['transactionId'] === id) return undefined;
    if (!isFilledIn(String(parsed['transactionId'] ?? ''))) return undefined;
    rememberFilledIn(id);
    return JSON.stringify({ ...parsed, transactionId: id }, null, 2);
  } catch {
    return undefined;
  }
}
