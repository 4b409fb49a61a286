/** A page of a list, as the gateway gives it. */
export interface Page {
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor?: string | null };
}

/** Whether more follows. The rows that were read do not tell: where the list changed between two pages, one of them may repeat. */
export const hasMore = (pages: readonly Page[]): boolean => pages.at(-1)?.pageInfo.hasNextPage === true;

/** The items of all pages, each once, without those that could not be read. */
export function itemsOf<Item extends { readonly id: string }>(
  pages: readonly { readonly nodes: readonly (Item | null)[] }[],
): Item[] {
  const items = pages.flatMap(({ nodes }) => nodes).filter((node) => node !== null);
  return [...new Map(items.map((item) => [item.id, item])).values()];
}
