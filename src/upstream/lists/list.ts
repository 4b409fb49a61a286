import { UpstreamError } from '../call/errors.ts';
import { isObject } from '../call/json.ts';
import type { Rest } from '../call/rest.ts';

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
  /** As they came: not even that each is an object has been checked. */
  readonly items: readonly unknown[];
  readonly total: number;
  readonly page: number;
  readonly size: number;
}

/**
 * An item of a list that nobody can be shown, in its place among the others: the graph reports it there, and only there. What
 * else it is looked up by finds it, so that nobody is told that there is none. Its id is one that the service cannot have.
 */
export class UnreadableItem extends UpstreamError {
  readonly id: string;

  /**
   * @param position of the item in the list, from 0.
   * @param keys the fields that it is looked up by.
   */
  constructor(position: number, cause: UpstreamError, keys: Readonly<Record<string, unknown>>) {
    super('UPSTREAM_INVALID', cause.message, { cause });
    Object.assign(this, keys);
    this.id = `unreadable at ${position}`;
  }
}

/**
 * Reads an item of a list.
 *
 * @param read throws UpstreamError for an item that cannot be told from others.
 * @param position of the item in the list, from 0.
 * @param keys names of the fields that items of this list are looked up by.
 */
export function itemOf<T>(
  read: (item: unknown) => T,
  item: unknown,
  position: number,
  keys: readonly string[] = [],
): T {
  try {
    return read(item);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    // It has an id, which is all that lists rest on; the graph shows an Error in the place of an item as what it is.
    const sent = isObject(item) ? item : {};
    const known = Object.fromEntries(keys.map((key) => [key, sent[key]]));
    return new UnreadableItem(position, error, known) as unknown as T;
  }
}

/** How many further pages are asked for at once, after the second has shown that pages move. */
const PARALLEL_PAGES = 4;

/** The error for a list that is not as it must be. */
export const invalidList = (route: string, problem: string): UpstreamError =>
  new UpstreamError('UPSTREAM_INVALID', `The service's list GET ${route} ${problem}.`);

function count(envelope: Readonly<Record<string, unknown>>, field: string, route: string): number {
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
  if (!Array.isArray(items)) {
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
 * @param identify reads an item; by their ids pages are compared and items counted.
 * @returns all items, of each id the first, among them each `UnreadableItem`. Never part of a list as if it were the whole.
 * @throws UpstreamError `UPSTREAM_INVALID` when a page did not move or the total was not reached.
 */
export async function readWholeList<T extends { readonly id: string }>(
  rest: Rest,
  route: string,
  envelope: Envelope,
  identify: (item: unknown) => T,
): Promise<readonly T[]> {
  const first = readPage(route, envelope, await rest.get(route));
  const found = new Map<string, T>();
  const take = (items: readonly unknown[], start: number): number => {
    const before = found.size;
    for (const [at, item] of items.entries()) {
      const noun = itemOf(identify, item, start + at);
      if (!found.has(noun.id)) found.set(noun.id, noun);
    }
    return found.size - before;
  };
  take(first.items, 0);
  const size = first.size > 0 ? first.size : first.items.length;
  let { total } = first;

  const readOn = async (page: number): Promise<void> => {
    const next = readPage(
      route,
      envelope,
      await rest.get(route, { query: { [envelope.pageParameter]: page, [envelope.sizeParameter]: size } }),
    );
    if (next.page !== page || take(next.items, (page - first.page) * size) === 0) {
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
