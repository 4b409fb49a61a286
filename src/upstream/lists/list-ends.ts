import type { PlaceIndex } from './place-index.ts';
import type { ListReader } from './reader.ts';
import { isWholeList, type ListSlice } from './slice.ts';

/**
 * What the ends of a list show of an index. `as known`: it holds. `grown`: new items have come, and are in the index now.
 * `changed`: it needs a walk.
 */
export type EndsVerdict = 'as known' | 'grown' | 'changed';

/**
 * Reads the first page of a list, and the last ones. Where the last page of the index does not come, and the first one shows that the
 * list is another, it returns the first one alone: the service may refuse a page beyond the end.
 *
 * @param size of the pages that the index was made from.
 * @throws UpstreamError
 */
export async function readEnds<T extends object>(
  reader: ListReader<T>,
  index: PlaceIndex,
  size: number,
): Promise<readonly ListSlice<T>[]> {
  const last = Math.max(0, Math.ceil(index.size / size) - 1);
  const [head, tail] = await Promise.allSettled([
    reader.page(0, size),
    last === 0 ? undefined : reader.page(last, size),
  ]);
  if (head.status === 'rejected') throw head.reason;
  const slices = [head.value];
  const { total } = head.value;
  if (tail.status === 'rejected') {
    // A list that has grown has that page. Here its items would join the index, too.
    if (total > index.size || compareEnds(reader, index, size, slices) !== 'changed') throw tail.reason;
    return slices;
  }
  if (tail.value !== undefined) slices.push(tail.value);
  // New items at the end may stand on a page of their own.
  if (Math.ceil(total / size) === last + 2) slices.push(await reader.page(last + 1, size));
  return slices;
}

/**
 * Compares the ends of a list with the index, and adds the items that have come at one of them.
 *
 * @param size of the pages that the index was made from.
 * @param slices the first page and the last ones.
 */
export function compareEnds<T extends object>(
  reader: Pick<ListReader<T>, 'idOf'>,
  index: PlaceIndex,
  size: number,
  slices: readonly ListSlice<T>[],
): EndsVerdict {
  const [head, ...tail] = slices;
  if (head === undefined) return 'changed';
  const isOdd = (slice: ListSlice<T>) =>
    slice.total !== head.total || slice.size !== size || isWholeList(slice);
  const grown = head.total - index.size;
  if (slices.some(isOdd) || grown < 0 || grown > size) return 'changed';
  /** True if each item stands where the index has it, moved by `by` places. */
  const isAsKnown = ({ start, items }: Pick<ListSlice<T>, 'start' | 'items'>, by = 0) =>
    items.every((item, at) => index.placeOf(reader.idOf(item)) === start + at - by);
  if (grown === 0) return slices.every((slice) => isAsKnown(slice)) ? 'as known' : 'changed';

  const add = (items: readonly T[], start: number): EndsVerdict => {
    for (const [at, item] of items.entries()) index.add(start + at, item as Record<string, unknown>);
    return 'grown';
  };
  const areNew = (items: readonly T[]) =>
    items.every((item) => index.placeOf(reader.idOf(item)) === undefined);
  if (isAsKnown(head)) {
    const end = index.size;
    const known = slices.map(({ start, items }) => ({
      start,
      items: items.slice(0, Math.max(0, end - start)),
    }));
    const come = slices.flatMap(({ start, items }) => items.slice(Math.max(0, end - start)));
    // If not all new items were on the pages that were read, a walk has to find them.
    return known.every((slice) => isAsKnown(slice)) && come.length === grown && areNew(come)
      ? add(come, end)
      : 'changed';
  }
  const come = head.items.slice(0, grown);
  const old = { start: head.start + grown, items: head.items.slice(grown) };
  const hasMoved = old.items.length > 0 && [old, ...tail].every((slice) => isAsKnown(slice, grown));
  if (!hasMoved || !areNew(come)) return 'changed';
  index.shift(grown);
  return add(come, 0);
}
