import { hash } from 'node:crypto';
import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Identity } from '../operation/identity.ts';
import { BadInputError, PageCursorError } from './errors.ts';

export const DEFAULT_PAGE = 50;
export const MAX_PAGE = 100;
/** Beyond what any list holds; keeps a forged cursor from asking for absurd pages. */
const MAX_OFFSET = 1_000_000_000;

/** A window of a list, and the list's whole length. */
export interface Page<T> {
  /** The list that it is of ({@link listOf}). */
  readonly list: string;
  readonly nodes: readonly T[];
  /** Absolute position of the first node, from 0. */
  readonly offset: number;
  readonly totalCount: number;
}

export interface PageArgs {
  /** 50 where the caller gives none: then it stands for nothing beside `last` or `before`. */
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

export interface PageInfo {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly startCursor: string | null;
  readonly endCursor: string | null;
}

/**
 * Names a list, so that its cursors can be told from those of others: whose it is, whether the caller sees a part of it, and
 * what it is filtered by.
 *
 * @param path the field that shows it with the ids that it depends on, such as `Customer <id> accounts`.
 */
export const listOf = ({ caller }: Pick<Identity, 'caller'>, path: string): string =>
  `${caller.clientId} ${caller.customerId ?? ''} ${path}`;

/** Characters of the digest that stands for a list in a cursor: 66 bits, which no two lists of a client share. */
const LIST_DIGITS = 11;

/** The position of one item: its list and its absolute offset, versioned and made opaque as base64url. */
export const encodeOffset = (list: string, offset: number): string => encoded(digestOf(list), offset);

/** Ids mean the same in either case. */
const digestOf = (list: string): string =>
  hash('sha256', list.toLowerCase(), 'base64url').slice(0, LIST_DIGITS);
const encoded = (digest: string, offset: number): string =>
  Buffer.from(`o2:${digest}:${offset}`).toString('base64url');

/** @throws PageCursorError for a text that `encodeOffset` has not made for this list. */
export function decodeOffset(list: string, name: 'after' | 'before', cursor: string): number {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [, digest, digits] = /^o2:([\w-]{11}):(0|[1-9]\d{0,9})$/.exec(text) ?? [];
  const offset = Number(digits);
  if (digest !== digestOf(list) || offset > MAX_OFFSET || encoded(digest, offset) !== cursor) {
    throw new PageCursorError(
      `Argument "${name}" is no cursor of this list: pass a cursor of a page or an edge of the same list as it came.`,
    );
  }
  return offset;
}

/**
 * How many items are asked for.
 *
 * @throws BadInputError outside 1 to 100.
 */
export function pageSize(name: 'first' | 'last', value: number | null | undefined): number {
  const size = value ?? DEFAULT_PAGE;
  if (size < 1 || size > MAX_PAGE) {
    throw new BadInputError(`Argument "${name}" must be from 1 to ${MAX_PAGE}; it is ${size}.`);
  }
  return size;
}

interface Window {
  readonly offset: number;
  readonly limit: number;
}

/**
 * The window that the arguments of a connection ask for: onwards from `after`, or back from `before`.
 *
 * @returns undefined for the end of the list, which is where its total says: `last` without `before`.
 */
export function windowOf(list: string, args: PageArgs): Window | undefined {
  if (args.last == null && args.before == null) {
    const limit = pageSize('first', args.first);
    return { offset: args.after == null ? 0 : decodeOffset(list, 'after', args.after) + 1, limit };
  }
  if (args.after != null || (args.first != null && args.first !== DEFAULT_PAGE)) {
    throw new BadInputError('Use "first" with "after", or "last" with "before": not both.');
  }
  const size = pageSize('last', args.last);
  if (args.before == null) return undefined;
  const end = decodeOffset(list, 'before', args.before);
  return { offset: Math.max(0, end - size), limit: Math.min(size, end) };
}

interface Part<T> {
  readonly items: readonly T[];
  readonly total: number;
}

/**
 * One page of a list that is read window by window. The end of a list costs a read more, which tells where it is; the
 * list may have grown meanwhile, and then the page ends where the list ended.
 */
export async function readWindow<T>(
  list: string,
  args: PageArgs,
  read: (offset: number, limit: number) => MaybePromise<Part<T>>,
): Promise<Page<T>> {
  const window = windowOf(list, args);
  const size = window?.limit ?? pageSize('last', args.last);
  const offset = window?.offset ?? 0;
  // Nothing precedes the first item: the read tells the total alone.
  const { items, total } = await read(offset, Math.max(1, size));
  const isBackward = args.last != null || args.before != null;
  if (!isBackward || (window !== undefined && total >= offset + size)) {
    return { list, nodes: items.slice(0, size), offset, totalCount: total };
  }
  // It ends before the cursor, or where this read has told.
  const limit = pageSize('last', args.last);
  const start = Math.max(0, total - limit);
  if (start === offset) return { list, nodes: items.slice(0, limit), offset, totalCount: total };
  const end = await read(start, limit);
  return { list, nodes: end.items, offset: start, totalCount: end.total };
}

/** One window of a list that is already whole. */
export function pageOf<T>(list: string, items: readonly T[], args: PageArgs): Page<T> {
  const window = windowOf(list, args);
  if (window !== undefined && (args.before == null || window.offset + window.limit <= items.length)) {
    const { offset, limit } = window;
    return { list, nodes: items.slice(offset, offset + limit), offset, totalCount: items.length };
  }
  // The end of the list, also where the list ends before the cursor.
  const offset = Math.max(0, items.length - pageSize('last', args.last));
  return { list, nodes: items.slice(offset), offset, totalCount: items.length };
}

export function edgesOf<T>(page: Page<T>): { readonly cursor: string; readonly node: T }[] {
  const digest = digestOf(page.list);
  return page.nodes.map((node, index) => ({ cursor: encoded(digest, page.offset + index), node }));
}

export function pageInfoOf(page: Page<unknown>): PageInfo {
  const end = page.offset + page.nodes.length;
  const some = page.nodes.length > 0;
  return {
    hasNextPage: end < page.totalCount,
    hasPreviousPage: page.offset > 0 && page.totalCount > 0,
    startCursor: some ? encodeOffset(page.list, page.offset) : null,
    endCursor: some ? encodeOffset(page.list, end - 1) : null,
  };
}
