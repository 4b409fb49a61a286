import { UpstreamError } from '../call/errors.ts';
import { coverWindow, type PageSizes } from './page-cover.ts';
import { isWholeList, type ListSlice } from './slice.ts';

/** Errors of an answer: the service may give one to a page beyond the end. */
const OF_ANSWERS: ReadonlySet<string> = new Set(['REFUSED', 'UPSTREAM_INVALID']);

/** True for an error that the service has answered with, or that its answer is. */
export const isOfAnswer = (error: unknown): error is UpstreamError =>
  error instanceof UpstreamError && OF_ANSWERS.has(error.code);

/** The list that pages are read of. */
interface PagedList<T> {
  readonly paging: PageSizes;
  /** Reads the page of this index, from 0. */
  page(index: number, size: number, isFresh: boolean): Promise<ListSlice<T>>;
}

/**
 * True if a page came as an error since the list has it no longer: the first page shows that the list has become shorter, or that its
 * pages are others now.
 *
 * @param index of that page, from 0.
 * @throws UpstreamError if the first page does not come.
 */
export async function isLost<T>(
  list: Pick<PagedList<T>, 'page'>,
  index: number,
  size: number,
  error: unknown,
): Promise<boolean> {
  if (!isOfAnswer(error) || index === 0) return false;
  const head = await list.page(0, size, true);
  return isWholeList(head) || head.size !== size || index * size >= head.total;
}

/**
 * Reads the pages that hold the items from `offset` to `offset + length - 1`, by the sizes that the service has given so far.
 *
 * The service may answer a page that it does not have with an error: one behind the end, or one whose number is of a size that it does not
 * give. So where a page comes as an error, the first one shows the size and the total, and those pages that there are by these are
 * asked for once more. Where none of them is there, the range is one page without items. A service that keeps a larger size of its own may
 * give the whole list as that first one.
 *
 * @param isFresh true for no answers that were kept of earlier operations.
 * @throws UpstreamError that of the page, where the first page shows nothing else of it.
 */
export async function readRange<T>(
  list: PagedList<T>,
  offset: number,
  length: number,
  isFresh: boolean,
): Promise<readonly ListSlice<T>[]> {
  const { size, pages } = coverWindow(offset, length, list.paging);
  const read = (of: number, numbers: readonly number[], areFresh: boolean) =>
    Promise.all(numbers.map((page) => list.page(page - 1, of, areFresh)));
  try {
    return await read(size, pages, isFresh);
  } catch (error) {
    if (!isOfAnswer(error) || pages.at(-1) === 1) throw error;
    const head = await list.page(0, size, true);
    if (isWholeList(head)) return [head];
    const cover = coverWindow(offset, length, list.paging);
    const there = cover.pages.filter((page) => (page - 1) * cover.size < head.total);
    if (there.length === 0) return [{ start: offset, items: [], total: head.total, size: head.size }];
    const isOther = cover.size !== size || there.length < pages.length;
    if (!isOther) throw error;
    return read(cover.size, there, true);
  }
}
