import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import type { Account } from '../upstream/accounts.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { type Optional, present } from '../upstream/call/json.ts';
import { isId } from '../upstream/call/path.ts';
import type { Instrument, InstrumentDetail } from '../upstream/instruments.ts';
import { listOf, type Page, type PageArgs, readWindow } from './connection.ts';
import { argumentId } from './ids.ts';
import { invalid, namedId, partOf } from './values.ts';

/** @throws BadInputError for an id that cannot be one. */
export const instrument = (id: string, context: Context): MaybePromise<Instrument | null> =>
  context.reads.session.instruments.find('id', argumentId('id', 'id', id));

/** The instrument of something that may name one. */
export function instrumentOf(
  holder: { readonly instrumentId?: Optional },
  context: Context,
): MaybePromise<Instrument | null> {
  const id = namedId(holder.instrumentId, 'instrumentId');
  return id === null ? null : context.reads.session.instruments.find('id', id);
}

/**
 * The instrument that a transaction names, as it is now. A transaction also names instruments of others: what the caller
 * may not read is null, as is what is not the client's.
 */
export async function currentInstrument(id: unknown, context: Context): Promise<Instrument | null> {
  if (!isId(id)) return null;
  try {
    return await context.reads.session.instruments.find('id', id);
  } catch (error) {
    if (error instanceof UpstreamError && error.code === 'FORBIDDEN') return null;
    throw error;
  }
}

/**
 * One window of the instruments of the client, or of one customer.
 *
 * @param path names the list ({@link listOf}).
 */
export async function instrumentPage(
  path: string,
  args: PageArgs,
  context: Context,
  customerId?: string,
): Promise<Page<Instrument>> {
  const page = await readWindow(listOf(context.identity, path), args, (offset, limit) =>
    context.reads.session.instruments.window(offset, limit, { customer_id: customerId }),
  );
  // Rows that come after what they look up need no promise each.
  await context.reads.prefetched;
  return page;
}

/** The account behind an instrument: the one that names it (docs/assumptions.md, "internal instruments"). */
export const accountOf = (parent: Instrument, context: Context): MaybePromise<Account | null> =>
  context.reads.session.accounts.find('instrumentId', parent.id);

/** Card or CLABE, told by the number that is there; null when it is of a form not documented. */
export function detailForm(detail: InstrumentDetail): 'CardDetail' | 'ClabeDetail' | null {
  if (present(detail.cardNumber) !== null) return 'CardDetail';
  return present(detail.clabeNumber) === null ? null : 'ClabeDetail';
}

/**
 * What an instrument stands for; null where an answer does not say.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` for a form that is not documented.
 */
export function detailOf({
  instrumentDetail,
}: Pick<Instrument, 'instrumentDetail'>): InstrumentDetail | null {
  const detail = partOf(instrumentDetail, 'instrumentDetail');
  if (detail !== null && detailForm(detail) === null) {
    throw invalid('instrumentDetail', 'has neither a card nor a CLABE number');
  }
  return detail;
}

/** The same of a registered instrument, of which it is always there (docs/upstream-api.md, "Instrument"). */
export function registeredDetail(parent: Instrument): InstrumentDetail {
  const detail = detailOf(parent);
  if (detail === null) throw invalid('instrumentDetail', 'is missing');
  return detail;
}

const SHOWN_DIGITS = 4;

/** The last four characters of a card number; nothing of one too short to be one. */
export function lastFour(detail: InstrumentDetail): string {
  const number = present(detail.cardNumber) ?? '';
  return number.length > SHOWN_DIGITS ? number.slice(-SHOWN_DIGITS) : '';
}

/** A card number with every character but the last four masked. */
export const maskedNumber = (detail: InstrumentDetail): string =>
  lastFour(detail).padStart(present(detail.cardNumber)?.length ?? 0, '*');
