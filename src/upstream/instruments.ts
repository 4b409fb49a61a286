import type { Audit } from './audit.ts';
import { UpstreamError } from './call/errors.ts';
import type { Attempt } from './call/http.ts';
import { identified, identifiedBy, type Optional, present } from './call/json.ts';
import { idKey } from './call/path.ts';
import type { Rest, RestChanges } from './call/rest.ts';
import { type CustomerScope, customerScope } from './customer-scope.ts';
import type { ClientLists } from './lists/client-lists.ts';
import { invalidList, itemOf, pageIn } from './lists/envelope.ts';
import { ListLoader, type Loader } from './lists/loader.ts';
import { type ListDefinition, ListReader } from './lists/reader.ts';
import { ShownItems, SingleReads } from './lists/single-reads.ts';
import { emptyList } from './lists/whole-list.ts';

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

/** The filter that the service documents for its list of instruments (docs/upstream-api.md, endpoint 8). */
type InstrumentFilter = { readonly customer_id?: string | undefined };

/** The instruments of the client and all its customers, or of one customer; look-ups are by id. */
export type InstrumentLoader = Loader<Instrument, InstrumentFilter>;

/**
 * Returns the definition of the list of instruments: those of the client and all its customers, or of one customer
 * (docs/upstream-api.md, endpoint 8).
 *
 * @param scope an instrument that names another owner than the scope's makes the list invalid; one that names no owner is not
 * shown.
 */
const instrumentList = (scope: CustomerScope): ListDefinition<Instrument> => ({
  route: INSTRUMENTS,
  envelope: {
    items: 'data',
    total: 'totalItems',
    page: 'currentPage',
    size: 'perPage',
    pageParameter: 'page',
    sizeParameter: 'per_page',
  },
  keys: ['id'],
  identify: (item) => {
    const instrument = identified<Instrument>(item, 'an instrument');
    if (scope.instrument(instrument)) return instrument;
    if (present(instrument.ownerId) === null && present(instrument.customerId) === null) {
      throw new UpstreamError('UPSTREAM_INVALID', 'The service sent an instrument without its owner.');
    }
    throw invalidList(INSTRUMENTS, "shows instruments of others when asked for one customer's");
  },
  isPagingDocumented: true,
  mayRepeatIds: true,
});

/** Makes the loader of one operation. For a caller narrowed to a customer it reads that customer's list alone. */
export function createInstrumentLoader(
  rest: Rest,
  scope: CustomerScope,
  lists: ClientLists,
): InstrumentLoader {
  const list = instrumentList(scope);
  const shown = new ShownItems<Instrument>();
  const readOne = async (id: string): Promise<Instrument | null> => {
    const instrument = await readInstrument(rest, id);
    return instrument !== null && scope.instrument(instrument) ? instrument : null;
  };
  return new ListLoader<Instrument, InstrumentFilter>((filter) => {
    const customerId = filter?.customer_id ?? scope.customerId;
    if (!scope.owner(customerId)) return emptyList();
    const reader = new ListReader(rest, list, lists.paging(list), { ...filter, customer_id: customerId });
    return new SingleReads(reader, readOne, shown);
  });
}

/**
 * Tells whose the instruments are that the service lists under this credential: the client's, or somebody else's. Reads one.
 *
 * @returns `spelled-otherwise` where they are the client's, and the service writes its id in other letters, as in capitals.
 * @throws UpstreamError when it does not list them.
 */
export async function ownerOfInstruments(rest: Rest): Promise<'client' | 'spelled-otherwise' | 'other'> {
  const { route, envelope, identify } = instrumentList(customerScope(undefined));
  const body = await rest.get(route, { query: { page: 1, per_page: 1 } });
  const items = pageIn(route, envelope, body).items.map((item, at) => itemOf(identify, item, at));
  if (items.every(({ clientId }) => clientId === rest.clientId)) return 'client';
  const own = idKey(rest.clientId);
  const isOwn = items.every(({ clientId }) => typeof clientId === 'string' && idKey(clientId) === own);
  return isOwn ? 'spelled-otherwise' : 'other';
}

/**
 * Reads one instrument (docs/upstream-api.md, endpoint 9).
 *
 * @returns null when it belongs neither to the client nor to one of its customers.
 */
export async function readInstrument(rest: Rest, instrumentId: string): Promise<Instrument | null> {
  try {
    const body = await rest.get(INSTRUMENT, { params: { instrumentId } });
    return identifiedBy<Instrument>(instrumentId, body, 'an instrument');
  } catch (error) {
    if (error instanceof UpstreamError && error.refusal?.httpStatus === 404) return null;
    throw error;
  }
}

/** Registers a RECEIVER instrument (docs/upstream-api.md, endpoint 10). */
export const registerInstrument = (rest: RestChanges, body: InstrumentBody): Promise<Attempt> =>
  rest.send('POST', INSTRUMENTS, { body: JSON.stringify(body) });
