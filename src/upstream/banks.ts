import { UpstreamError } from './errors.ts';
import type { JsonObject } from './json.ts';
import { type Envelope, readWholeList } from './list.ts';
import { isUuid } from './path.ts';
import type { Rest } from './rest.ts';

/** A SPEI participant. The spec shows no field of it but that there is an id. */
export interface Bank {
  readonly id: string;
  /** Everything that the upstream sent, the id's field included. */
  readonly attributes: JsonObject;
}

export const BANKS = '/v1/banks';

const ENVELOPE: Envelope = {
  items: 'banks',
  total: 'total_banks',
  page: 'page',
  size: 'page_size',
  pageParameter: 'page',
  sizeParameter: 'page_size',
};

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

/** The whole SPEI participant catalog (docs/upstream-api.md, endpoint 3). */
export const readBanks = (rest: Rest): Promise<readonly Bank[]> =>
  readWholeList(rest, BANKS, ENVELOPE, (entry) => {
    const id = bankId(entry);
    return [id, { id, attributes: entry }];
  });
