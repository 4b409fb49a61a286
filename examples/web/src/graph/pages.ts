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

/** Adds the page that was read behind `last`. A list that was read anew meanwhile ends elsewhere: those in between would be missing. */
export const withPage = <Of>(pages: readonly Of[], last: Of, page: Of): readonly Of[] =>
  pages.at(-1) === last ? [...pages, page] : pages;

/** What of an account tells whether it can pay. */
interface Account {
  readonly ownerId: string;
  readonly instrumentId?: string | null;
}

/**
 * The client's own accounts, which can pay. It goes by the account's own id of its instrument: `instrument` is null also where it
 * could not be read for a moment, and another account would pay then, a second time where it was for a payment that is unclear.
 */
export const payersOf = <Of extends Account>(accounts: readonly Of[], clientId: string | undefined): Of[] =>
  accounts.filter(({ ownerId, instrumentId }) => ownerId === clientId && typeof instrumentId === 'string');

/**
 * Whether the `account` of an instrument could not be read. It is null then, as that of an instrument at another bank is: an account of
 * one's own would be offered as a receiver.
 */
export const lacksAccounts = (
  errors: readonly { readonly path?: readonly (string | number)[] | undefined }[] = [],
): boolean => errors.some(({ path }) => path?.[1] === 'instruments' && path[4] === 'account');
