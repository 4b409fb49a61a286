/** A part of a list, as one answer shows it. */
export interface ListSlice<T> {
  /** Position of its first item in the list, from 0. */
  readonly start: number;
  readonly items: readonly T[];
  /** How many items the service says that the list holds. */
  readonly total: number;
  /** How many items a page of this answer's size holds. */
  readonly size: number;
}

/** True if a slice is the whole list. */
export const isWholeList = <T>({ start, items, total }: ListSlice<T>): boolean =>
  start === 0 && items.length === total;
