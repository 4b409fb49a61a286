import { isObject, type Operation, type Result } from './net/result.ts';
import { language, t } from './words.ts';

/** What a line says of an event, whatever was selected of it. */
export interface Described {
  readonly type: string;
  readonly says: string;
  readonly receipt: string | undefined;
  /** The payment that it tells of. */
  readonly transactionId: string | undefined;
}

export function described({ data, errors }: Result, operation: Operation): Described {
  const [error] = errors ?? [];
  const nothing = { receipt: undefined, transactionId: undefined };
  if (error !== undefined) {
    return { type: String(error.extensions?.['code'] ?? 'ERROR'), says: error.message, ...nothing };
  }
  const [[field, payload] = ['event', undefined]] = Object.entries(data ?? {});
  if (!isObject(payload)) return { type: field, says: '', ...nothing };
  const { cep, amount, payer, type, kind, rawStatus } = payload;
  const parts: unknown[] = [
    isObject(amount) ? `${String(amount['amount'])} ${String(amount['currency'] ?? '')}` : undefined,
    isObject(payer) && typeof payer['name'] === 'string'
      ? t('from {payer}', { payer: payer['name'] })
      : undefined,
    isObject(cep) ? cep['beneficiaryName'] : undefined,
    isObject(cep) ? undefined : rawStatus,
  ];
  const status = isObject(cep) ? cep['status'] : undefined;
  const isDone = status === 'COMPLETED';
  return {
    type: String(status ?? type ?? kind ?? field),
    says: parts.filter((part) => typeof part === 'string' && part !== '').join(' '),
    receipt: isDone && isObject(cep) && typeof cep['url'] === 'string' ? webAddress(cep['url']) : undefined,
    transactionId: transactionIn(payload) ?? textOf(operation.variables?.['transactionId']),
  };
}

/** Only what a browser may open as a page: an address is text that came over the wire. */
export const webAddress = (text: string): string | undefined =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : undefined;

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const transactionIn = (payload: Readonly<Record<string, unknown>>): string | undefined => {
  const { transactionId, transaction } = payload;
  return textOf(transactionId) ?? (isObject(transaction) ? textOf(transaction['id']) : undefined);
};

/** The payment that a mutation's result tells of. */
export function paymentOf({ data }: Result): string | undefined {
  for (const field of Object.values(data ?? {})) {
    const id = isObject(field) ? transactionIn(field) : undefined;
    if (id !== undefined) return id;
  }
  return undefined;
}

/** So much of each cursor as tells it from the others: what all of them begin with says nothing. */
export function toldApart(cursors: readonly string[]): (cursor: string) => string {
  const all = [...new Set(cursors)];
  const [first = ''] = all;
  let same = 0;
  while (all.length > 1 && same < first.length && all.every((cursor) => cursor[same] === first[same]))
    same += 1;
  const part = (cursor: string, length: number) =>
    all.length > 1 ? cursor.slice(same, same + length) : cursor.slice(-length);
  let length = SHORTEST;
  while (length < first.length && new Set(all.map((cursor) => part(cursor, length))).size < all.length)
    length += 2;
  return (cursor) => `…${part(cursor, length)}…`;
}

/** Of a cursor that is shown, in characters. */
const SHORTEST = 6;

/** Which events of a stream are shown. */
export interface Filter {
  readonly type: string;
  /** In what the event holds, in any case; ids and cursors count. */
  readonly text: string;
}

export const ALL: Filter = { type: '', text: '' };

export function matches(result: Result, { type }: Described, filter: Filter): boolean {
  if (filter.type !== '' && filter.type !== type) return false;
  const wanted = filter.text.trim().toLocaleLowerCase(language);
  return wanted === '' || JSON.stringify(result).toLocaleLowerCase(language).includes(wanted);
}
