import { UpstreamError } from './call/errors.ts';
import { isObject, type JsonObject, present } from './call/json.ts';
import { isUuid } from './call/path.ts';
import type { Rest } from './call/rest.ts';
import type { ListDefinition } from './lists/reader.ts';
import { readWholeList } from './lists/whole-list.ts';

/** A SPEI participant. The spec shows no field of it but that there is an id. */
export interface Bank {
  readonly id: string;
  /** Its common name, such as `BBVA MEXICO`; null if the catalog does not say. */
  readonly name: string | null;
  /** Its code at Banco de México, such as `40012`; null if the catalog does not say. */
  readonly institutionCode: string | null;
  /** The first three digits of its CLABEs, such as `012`; null where the catalog does not say. */
  readonly clabeCode: string | null;
  /** Everything that the upstream sent, the id's field included. */
  readonly attributes: JsonObject;
}

export const BANKS = '/v1/banks';

/** The id of a catalog entry (docs/assumptions.md): `id`, else `bankId` or `bank_id`, else its only field that holds a UUID. */
export function bankId(entry: JsonObject): string {
  for (const field of ['id', 'bankId', 'bank_id']) {
    const value = entry[field];
    if (typeof value === 'string' && value !== '') return value;
  }
  const uuids = Object.values(entry).filter((value) => typeof value === 'string' && isUuid(value));
  const [only] = uuids;
  if (uuids.length === 1 && typeof only === 'string') return only;
  throw new UpstreamError(
    'UPSTREAM_INVALID',
    `The service's banks name no id; their fields are: ${Object.keys(entry).join(', ') || 'none'}.`,
  );
}

/** The fields that a catalog may have of a participant, besides its id. */
export type BankField = 'name' | 'institutionCode' | 'clabeCode';

/** The names that a catalog uses for each field. The first one that holds a value counts. */
export type BankFieldNames = Readonly<Record<BankField, readonly string[]>>;

/** The names that catalogs of SPEI participants are known to use (docs/assumptions.md, "bank fields"). */
export const BANK_FIELD_NAMES: BankFieldNames = {
  name: ['name', 'bankName', 'bank_name'],
  institutionCode: ['institutionCode', 'institution_code', 'legalCode', 'legal_code'],
  clabeCode: ['clabeCode', 'clabe_code', 'clabePrefix', 'clabe_prefix'],
};

/** The form of each value. A field of a known name with another form is not shown as that value. */
const FORMS: Readonly<Record<BankField, RegExp>> = {
  name: /^.{1,200}$/,
  institutionCode: /^\d{4,5}$/,
  clabeCode: /^\d{3}$/,
};

function fieldOf(entry: JsonObject, field: BankField, names: BankFieldNames): string | null {
  for (const name of names[field]) {
    const value = Object.hasOwn(entry, name) ? entry[name] : undefined;
    // A number is not taken: it has lost leading zeros, which a code of a fixed length needs.
    const text = typeof value === 'string' ? present(value) : null;
    if (text !== null && FORMS[field].test(text)) return text;
  }
  return null;
}

const bankList = (names: BankFieldNames): ListDefinition<Bank> => ({
  route: BANKS,
  envelope: {
    items: 'banks',
    total: 'total_banks',
    page: 'page',
    size: 'page_size',
    pageParameter: 'page',
    sizeParameter: 'page_size',
  },
  keys: ['id'],
  identify: (entry) => {
    if (!isObject(entry))
      throw new UpstreamError('UPSTREAM_INVALID', 'The service sent a bank that is no object.');
    return {
      id: bankId(entry),
      name: fieldOf(entry, 'name', names),
      institutionCode: fieldOf(entry, 'institutionCode', names),
      clabeCode: fieldOf(entry, 'clabeCode', names),
      attributes: entry,
    };
  },
  mayRepeatIds: true,
});

/**
 * The whole SPEI participant catalog (docs/upstream-api.md, endpoint 3).
 *
 * @param names under which the catalog says what it may say of a participant.
 */
export const readBanks = (rest: Rest, names: BankFieldNames): Promise<readonly Bank[]> =>
  readWholeList(rest, bankList(names));
