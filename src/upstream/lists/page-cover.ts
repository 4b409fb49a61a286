/** The largest page size that the gateway asks for. */
export const MAX_PAGE = 100;

/** Consecutive pages of one size, by their numbers from 1. */
interface Cover {
  readonly size: number;
  readonly pages: readonly number[];
}

/** The sizes that pages may have. */
export interface PageSizes {
  readonly smallest: number;
  readonly largest: number;
}

/**
 * Returns the one or two pages that hold the items from `offset` to `offset + limit - 1`. It is one page if any size from
 * `limit` to 100 lines up with the window, else the two of size `limit` that the window straddles. If the service gives
 * smaller pages, there are more of them.
 *
 * @param limit from 1 to 100.
 */
export function coverWindow(offset: number, limit: number, { smallest, largest }: PageSizes): Cover {
  const least = Math.max(limit, smallest);
  for (let size = least; size <= largest; size += 1) {
    const cover = coverWithSize(offset, limit, size);
    if (cover.pages.length === 1) return cover;
  }
  return coverWithSize(offset, limit, Math.min(least, largest));
}

/** Returns the pages of a given size that hold the window. */
function coverWithSize(offset: number, limit: number, size: number): Cover {
  const first = Math.floor(offset / size) + 1;
  const last = Math.floor((offset + limit - 1) / size) + 1;
  return { size, pages: Array.from({ length: last - first + 1 }, (_, index) => first + index) };
}
