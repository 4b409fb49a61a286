import { UpstreamError } from './errors.ts';
import { isObject, type JsonObject } from './json.ts';
import type { Rest } from './rest.ts';

/** Where an envelope keeps its parts. Lists differ: `totalItem` here, `totalItems` there, `total_banks` for banks. */
export interface Envelope {
  readonly items: string;
  readonly total: string;
  readonly page: string;
  readonly size: string;
  /** Names of the query parameters that ask for a page: of the spec for instruments, by analogy elsewhere. */
  readonly pageParameter: string;
  readonly sizeParameter: string;
}

export interface ListPage {
  readonly items: readonly JsonObject[];
  readonly total: number;
  readonly page: number;
  readonly size: number;
}

/** How many further pages are asked for at once, after the second has shown that pages move. */
const PARALLEL_PAGES = 4;

/** The error for a list that is not as it must be. */
export const invalidList = (route: string, problem: string): UpstreamError =>
  new UpstreamError('UPSTREAM_INVALID', `The service's list GET ${route} ${problem}.`);

function count(envelope: JsonObject, field: string, route: string): number {
  const value = envelope[field];
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    throw invalidList(route, `has no usable "${field}"`);
  }
  return value;
}

/**
 * Reads one page out of a list's envelope.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` when a part that the spec promises is missing.
 */
export function readPage(route: string, envelope: Envelope, body: unknown): ListPage {
  if (!isObject(body)) throw invalidList(route, 'is no object');
  const items = body[envelope.items];
  if (!Array.isArray(items) || !items.every(isObject)) {
    throw invalidList(route, `has no list "${envelope.items}"`);
  }
  return {
    items,
    total: count(body, envelope.total, route),
    page: count(body, envelope.page, route),
    size: count(body, envelope.size, route),
  };
}

/**
 * Reads a list whose paging the spec does not document (docs/assumptions.md): asks first without parameters; if the total
 * exceeds what came, walks on from the page number and size that the answer itself states, and verifies that every page
 * moved and that the total is reached.
 *
 * @param identify the id of an item, by which pages are compared and items counted.
 * @returns all items, of each id the first. Never part of a list as if it were the whole.
 * @throws UpstreamError `UPSTREAM_INVALID` when a page did not move or the total was not reached.
 */
export async function readWholeList<T>(
  rest: Rest,
  route: string,
  envelope: Envelope,
  identify: (item: JsonObject) => readonly [id: string, item: T],
): Promise<readonly T[]> {
  const first = readPage(route, envelope, await rest.get(route));
  const found = new Map<string, T>();
  const take = (items: readonly JsonObject[]): number => {
    const before = found.size;
    for (const item of items) {
      const [id, noun] = identify(item);
      if (!found.has(id)) found.set(id, noun);
    }
    return found.size - before;
  };
  take(first.items);
  const size = first.size > 0 ? first.size : first.items.length;
  let { total } = first;

  const readOn = async (page: number): Promise<void> => {
    const next = readPage(
      route,
      envelope,
      await rest.get(route, { query: { [envelope.pageParameter]: page, [envelope.sizeParameter]: size } }),
    );
    if (next.page !== page || take(next.items) === 0) {
      throw invalidList(route, `holds ${total} items and did not move on when asked for page ${page}`);
    }
    total = next.total;
  };

  if (first.items.length < total) {
    if (size === 0) throw invalidList(route, `holds ${total} items and shows none`);
    const last = first.page + Math.ceil((total - found.size) / size);
    await readOn(first.page + 1);
    for (let page = first.page + 2; page <= last; page += PARALLEL_PAGES) {
      const batch = Array.from({ length: Math.min(PARALLEL_PAGES, last - page + 1) }, (_, i) => page + i);
      await Promise.all(batch.map(readOn));
    }
    if (found.size < total) {
      throw invalidList(route, `holds ${total} items, of which its pages showed ${found.size}`);
    }
  }
  return [...found.values()];
}
