import DataLoader from 'dataloader';
import type { Audit } from './audit.ts';
import { UpstreamError } from './call/errors.ts';
import type { Attempt } from './call/http.ts';
import { identified, type Optional, present } from './call/json.ts';
import type { Rest, RestChanges } from './call/rest.ts';
import type { CustomerScope } from './customer-scope.ts';
import { type Envelope, itemOf, type ListPage, readPage } from './lists/list.ts';
import { type Cover, coverWindow, coverWithSize, MAX_PAGE } from './lists/page-cover.ts';

/** Where money comes from or goes to (docs/upstream-api.md, "Instrument"). */
export interface Instrument {
  readonly id: string;
  readonly bankId?: Optional;
  readonly clientId?: Optional;
  readonly ownerId?: Optional;
  /** Present only when a customer owns the instrument. */
  readonly customerId?: Optional;
  readonly alias: string;
  readonly type: string;
  readonly rfc: string;
  readonly audit?: Audit | null;
  readonly instrumentDetail?: InstrumentDetail | null;
}

/** One of two forms: of a card (`cardNumber`), or of a CLABE account (`clabeNumber`). */
export interface InstrumentDetail {
  readonly cardNumber?: Optional;
  readonly expirationDate?: Optional;
  readonly accountNumber?: Optional;
  readonly clabeNumber?: Optional;
  readonly holderName?: Optional;
}

/** Body of a registration (docs/upstream-api.md, endpoint 10): exactly one of `debit_card` and `virtual_clabe`. */
export interface InstrumentBody {
  readonly source_bank_id: string;
  readonly client_id: string;
  readonly customer_id?: string;
  readonly type: 'RECEIVER';
  readonly rfc: string;
  readonly alias: string;
  readonly instrumentKind?: 'debit_card';
  readonly debit_card?: {
    readonly destination_bank_id: string;
    readonly card_number: string;
    readonly holder_name: string;
  };
  readonly virtual_clabe?: Readonly<Record<string, unknown>>;
}

export const INSTRUMENTS = '/v1/clients/{clientId}/instruments';
const INSTRUMENT = '/v1/clients/{clientId}/instruments/{instrumentId}';

const ENVELOPE: Envelope = {
  items: 'data',
  total: 'totalItems',
  page: 'currentPage',
  size: 'perPage',
  pageParameter: 'page',
  sizeParameter: 'per_page',
};

export interface InstrumentPage extends Omit<ListPage, 'items'> {
  readonly items: readonly Instrument[];
}

/**
 * One page of the instruments of the client and all its customers, or of one customer (docs/upstream-api.md, endpoint 8).
 *
 * @param page from 1.
 * @param perPage what is asked for; the page's own `size` says what came.
 */
export async function readInstrumentPage(
  rest: Rest,
  page: number,
  perPage: number,
  customerId?: string,
): Promise<InstrumentPage> {
  const body = await rest.get(INSTRUMENTS, { query: { customer_id: customerId, page, per_page: perPage } });
  const read = readPage(INSTRUMENTS, ENVELOPE, body);
  const start = (read.page - 1) * read.size;
  const one = (item: unknown) => identified<Instrument>(item, 'an instrument');
  return { ...read, items: read.items.map((item, at) => itemOf(one, item, start + at)) };
}

/**
 * Reads one instrument (docs/upstream-api.md, endpoint 9).
 *
 * @returns null when it belongs neither to the client nor to one of its customers.
 */
export async function readInstrument(rest: Rest, instrumentId: string): Promise<Instrument | null> {
  try {
    return identified<Instrument>(await rest.get(INSTRUMENT, { params: { instrumentId } }), 'an instrument');
  } catch (error) {
    if (error instanceof UpstreamError && error.refusal?.httpStatus === 404) return null;
    throw error;
  }
}

/** Registers a RECEIVER instrument (docs/upstream-api.md, endpoint 10). */
export const registerInstrument = (rest: RestChanges, body: InstrumentBody): Promise<Attempt> =>
  rest.send('POST', INSTRUMENTS, { body: JSON.stringify(body) });

/** The instruments of one operation: windows of the list, and single ones, read as few times as may be. */
export interface InstrumentLoader {
  /**
   * The instruments at `offset` to `offset + limit - 1` of the client's list, or of one customer's, and the list's total.
   * A caller narrowed to a customer has no other list than that customer's.
   *
   * @param limit from 1 to 100.
   */
  window(
    offset: number,
    limit: number,
    customerId?: string,
  ): Promise<{ readonly items: readonly Instrument[]; readonly total: number }>;
  /** One instrument, or null when it is not the client's. */
  get(id: string): Promise<Instrument | null>;
  /** How many windows and single instruments it was asked for so far. */
  lookUps(): number;
}

/** Up to this many single instruments are read one by one; more of them through the list. */
const FEW = 2;

/** Makes the loader of one operation. */
export function createInstrumentLoader(rest: Rest, scope: CustomerScope): InstrumentLoader {
  const pages = new Map<string, Promise<InstrumentPage>>();
  /** Items of pages that have been read, to be indexed once somebody looks for one. */
  const arrived: (readonly Instrument[])[] = [];
  const seen = new Map<string, Instrument>();
  let lookUps = 0;

  const readOnce = (page: number, perPage: number, customerId?: string): Promise<InstrumentPage> => {
    const key = `${page}/${perPage}/${customerId ?? ''}`;
    let pending = pages.get(key);
    if (pending === undefined) {
      pending = readInstrumentPage(rest, page, perPage, customerId).then((read) => {
        if (read.page !== page) {
          throw new UpstreamError(
            'UPSTREAM_INVALID',
            `The service's list GET ${INSTRUMENTS} answered with page ${read.page} when asked for page ${page}.`,
          );
        }
        const seen = { ...read, items: inScope(read, scope) };
        arrived.push(seen.items);
        // An upstream with a size of its own has given this very page of that size.
        if (seen.size !== perPage)
          pages.set(`${page}/${seen.size}/${customerId ?? ''}`, Promise.resolve(seen));
        return seen;
      });
      pages.set(key, pending);
    }
    return pending;
  };

  const ownOrNull = (item: Instrument | null) => (item !== null && scope.instrument(item) ? item : null);

  /** Few ids are asked for one by one; many through the list, as long as its pages are fewer than the ids left. */
  async function readMany(ids: readonly string[]): Promise<(Instrument | null | Error)[]> {
    const one = (id: string) => readInstrument(rest, id).then(ownOrNull, asError);
    if (ids.length <= FEW) return Promise.all(ids.map(one));
    const found = new Map<string, Instrument>();
    const left = () => ids.filter((id) => !found.has(id));
    try {
      for (let page = 1; ; page += 1) {
        const read = await readOnce(page, MAX_PAGE, scope.customerId);
        for (const item of read.items) if (!found.has(item.id)) found.set(item.id, item);
        const size = read.size > 0 ? read.size : MAX_PAGE;
        const pagesLeft = Math.ceil(read.total / size) - page;
        if (left().length === 0 || pagesLeft <= 0) break;
        if (pagesLeft > left().length || read.items.length === 0) {
          const single = new Map<string, Instrument | null | Error>();
          await Promise.all(left().map(async (id) => single.set(id, await one(id))));
          return ids.map((id) => found.get(id) ?? single.get(id) ?? null);
        }
      }
    } catch (error) {
      const failure = asError(error);
      return ids.map((id) => found.get(id) ?? failure);
    }
    return ids.map((id) => found.get(id) ?? null);
  }

  const byId = new DataLoader<string, Instrument | null>(readMany);

  return {
    async window(offset, limit, asked) {
      lookUps += 1;
      if (asked !== undefined && !scope.owner(asked)) return { items: [], total: 0 };
      const customerId = asked ?? scope.customerId;
      const read = (cover: Cover) =>
        Promise.all(cover.pages.map((page) => readOnce(page, cover.size, customerId)));
      let cover = coverWindow(offset, limit);
      let windowPages = await read(cover);
      const head = windowPages[0];
      if (head !== undefined && head.size !== cover.size && head.size > 0 && holdsPageOf(head.size, head)) {
        // The upstream keeps pages of a size of its own (docs/assumptions.md): the window is laid over those.
        cover = coverWithSize(offset, limit, head.size);
        windowPages = await read(cover);
      }
      const uneven = windowPages.find((page) => !holdsPageOf(cover.size, page));
      if (uneven !== undefined) throw unevenPage(uneven);
      const start = offset - ((cover.pages[0] ?? 1) - 1) * cover.size;
      return {
        items: windowPages.flatMap((page) => page.items).slice(start, start + limit),
        total: windowPages.at(-1)?.total ?? 0,
      };
    },
    get(id) {
      lookUps += 1;
      for (const item of arrived.splice(0).flat()) if (!seen.has(item.id)) seen.set(item.id, item);
      const known = seen.get(id);
      return known === undefined ? byId.load(id) : Promise.resolve(known);
    },
    lookUps: () => lookUps,
  };
}

/**
 * The items of a page, which are all the caller's own. One that does not say whose it is cannot be shown.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` where one says that it is another's.
 */
function inScope({ items, page, size }: InstrumentPage, scope: CustomerScope): readonly Instrument[] {
  if (scope.wholeClient || items.every(scope.instrument)) return items;
  return items.map((item, at) => {
    if (scope.instrument(item)) return item;
    if (present(item.ownerId) !== null || present(item.customerId) !== null) {
      throw new UpstreamError(
        'UPSTREAM_INVALID',
        `The service's list GET ${INSTRUMENTS} shows instruments of others when asked for one customer's.`,
      );
    }
    const read = (): Instrument => {
      throw new UpstreamError('UPSTREAM_INVALID', 'The service sent an instrument without its owner.');
    };
    return itemOf(read, item, (page - 1) * size + at);
  });
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** Whether a page holds as many items as one of this size must, given its number and the list's total. */
const holdsPageOf = (size: number, page: InstrumentPage): boolean =>
  page.items.length === Math.max(0, Math.min(size, page.total - (page.page - 1) * size));

const unevenPage = (page: InstrumentPage): UpstreamError =>
  new UpstreamError(
    'UPSTREAM_INVALID',
    `The service's list GET ${INSTRUMENTS} holds ${page.total} items, and its page ${page.page} of ${page.size} shows ${page.items.length}.`,
  );
