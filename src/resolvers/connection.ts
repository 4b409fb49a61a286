import type { Context } from '../operation/context.ts';
import { BadInputError, PageCursorError, TooManyItemsError } from './errors.ts';

export const DEFAULT_PAGE = 50;
export const MAX_PAGE = 100;
/** Beyond what any list holds; keeps a forged cursor from asking for absurd pages. */
const MAX_OFFSET = 1_000_000_000;

/** A window of a list, and the list's whole length. */
export interface Page<T> {
  readonly nodes: readonly T[];
  /** Absolute position of the first node, from 0. */
  readonly offset: number;
  readonly totalCount: number;
}

export interface PageArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

export interface PageInfo {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  readonly startCursor: string | null;
  readonly endCursor: string | null;
}

/** The position of one item: its absolute offset, versioned and made opaque as base64url. */
export const encodeOffset = (offset: number): string => Buffer.from(`o1:${offset}`).toString('base64url');

/** @throws PageCursorError for a text that `encodeOffset` has not made. */
export function decodeOffset(cursor: string): number {
  const offset = Number(
    /^o1:(0|[1-9]\d{0,9})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))?.[1],
  );
  if (!Number.isInteger(offset) || offset > MAX_OFFSET || encodeOffset(offset) !== cursor) {
    throw new PageCursorError(
      'Argument "after" is no cursor of this list: pass an endCursor or an edge\'s cursor as it came.',
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

/** The window that the arguments of a connection ask for. */
export function windowOf(args: PageArgs): { readonly offset: number; readonly limit: number } {
  const limit = pageSize('first', args.first);
  return { offset: args.after == null ? 0 : decodeOffset(args.after) + 1, limit };
}

/**
 * Counts the items of a page as part of the operation's answer.
 *
 * @throws TooManyItemsError when they are more than the answer may hold: what pages hold that nobody has sized is known
 * only here.
 */
export function counted<T>(page: Page<T>, context: Context): Page<T> {
  // A plan that meets an error is executed again, and its pages count twice.
  if (context.countItems(page.nodes.length) > 2 * context.maxItems)
    throw new TooManyItemsError(context.maxItems);
  return page;
}

/** One window of a list that is already whole. */
export function pageOf<T>(items: readonly T[], args: PageArgs): Page<T> {
  const { offset, limit } = windowOf(args);
  return { nodes: items.slice(offset, offset + limit), offset, totalCount: items.length };
}

export function edgesOf<T>(page: Page<T>): { readonly cursor: string; readonly node: T }[] {
  return page.nodes.map((node, index) => ({ cursor: encodeOffset(page.offset + index), node }));
}

export function pageInfoOf(page: Page<unknown>): PageInfo {
  const end = page.offset + page.nodes.length;
  const some = page.nodes.length > 0;
  return {
    hasNextPage: end < page.totalCount,
    hasPreviousPage: page.offset > 0 && page.totalCount > 0,
    startCursor: some ? encodeOffset(page.offset) : null,
    endCursor: some ? encodeOffset(end - 1) : null,
  };
}
