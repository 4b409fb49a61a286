import { UpstreamError } from '../call/errors.ts';
import { isObject } from '../call/json.ts';

/** The names of an envelope's parts. Lists differ: `totalItem`, `totalItems`, `total_banks` for banks. */
export interface Envelope {
  readonly items: string;
  readonly total: string;
  readonly page: string;
  readonly size: string;
  /**
   * Names of the query parameters that ask for a page. They are documented for instruments; for other lists they are assumed
   * to be similar.
   */
  readonly pageParameter: string;
  readonly sizeParameter: string;
}

export interface ListPage {
  /** The items as they came. Not even that each is an object has been checked. */
  readonly items: readonly unknown[];
  readonly total: number;
  readonly page: number;
  readonly size: number;
}

/** Returns whether a page holds as many items as it must, by its size, its start and the list's total. */
export const isFull = ({ items, total, size }: ListPage, start: number): boolean =>
  items.length === Math.max(0, Math.min(size, total - start));

/** A list that is invalid as a whole: none of its items is shown. */
class InvalidListError extends UpstreamError {
  readonly route: string;

  constructor(route: string, problem: string) {
    super('UPSTREAM_INVALID', `The service's list GET ${route} ${problem}.`);
    this.route = route;
  }
}

export const invalidList = (route: string, problem: string): UpstreamError =>
  new InvalidListError(route, problem);

/** Returns an error as it is told to who may see a part of the list alone: why the list is invalid may say how many items it holds. */
export const toldOfPart = (error: unknown): unknown =>
  error instanceof InvalidListError ? new InvalidListError(error.route, 'is invalid') : error;

/** Returns the error for a list whose answers do not fit together. */
export const changesTooFast = (route: string): UpstreamError =>
  new UpstreamError(
    'UPSTREAM_UNAVAILABLE',
    `The service's list GET ${route} changes faster than it can be read.`,
  );

/**
 * An item of a list that cannot be read. It stands in its place among the others, and the graph reports the error there
 * alone. A look-up by another of its keys finds it, so that nobody is told that there is no such item. Its id is one that the
 * service cannot have.
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
 * @param read throws UpstreamError for an item that cannot be read, and `invalidList` for one that makes the list invalid.
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
    if (!(error instanceof UpstreamError) || error instanceof InvalidListError) throw error;
    const sent = isObject(item) ? item : {};
    const known = Object.fromEntries(keys.map((key) => [key, sent[key]]));
    // It has an id, which is all that lists need. The graph shows an Error in the place of an item as an error.
    return new UnreadableItem(position, error, known) as unknown as T;
  }
}

function count(envelope: Readonly<Record<string, unknown>>, field: string, route: string): number {
  const value = envelope[field];
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    throw invalidList(route, `has no usable "${field}"`);
  }
  return value;
}

/**
 * Takes one page out of a list's envelope.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` when a part that the spec promises is missing.
 */
export function pageIn(route: string, envelope: Envelope, body: unknown): ListPage {
  if (!isObject(body)) throw invalidList(route, 'is no object');
  const items = body[envelope.items];
  if (!Array.isArray(items)) throw invalidList(route, `has no list "${envelope.items}"`);
  return {
    items,
    total: count(body, envelope.total, route),
    page: count(body, envelope.page, route),
    size: count(body, envelope.size, route),
  };
}
