import type { FieldPolicy, InMemoryCacheConfig } from '@apollo/client';
import { possibleTypes } from './possible-types.ts';

interface PageInfo {
  readonly hasNextPage?: boolean;
  readonly hasPreviousPage?: boolean;
  readonly startCursor?: string | null;
  readonly endCursor?: string | null;
}

interface Page {
  readonly nodes?: readonly unknown[];
  readonly edges?: readonly unknown[];
  readonly pageInfo?: PageInfo;
}

/** What the cache keeps of a connection: its pages, joined. */
interface Pages {
  readonly pages: readonly Page[];
}

const PAGING: readonly string[] = ['first', 'after', 'last', 'before'];

const cursorsOf = (pages: readonly Page[], name: 'startCursor' | 'endCursor'): string[] =>
  pages.flatMap(({ pageInfo }) => pageInfo?.[name] ?? []);

/** Joins the pages of one list, so that `fetchMore({ variables: { after: endCursor } })` makes the list longer. */
const connection: FieldPolicy<Pages | null, Page | null> = {
  // A list with another filter is another list.
  keyArgs: (args) => Object.keys(args ?? {}).filter((name) => !PAGING.includes(name)),
  merge(existing, incoming, { args }) {
    // The list could not be read.
    if (incoming === null) return null;
    const pages = existing?.pages ?? [];
    // A page behind or before one that is no longer there belongs to the list as it was: it began anew meanwhile.
    const { after, before } = (args ?? {}) as { after?: string | null; before?: string | null };
    if (after != null) {
      const place = pages.findIndex(({ pageInfo }) => pageInfo?.endCursor === after);
      return place < 0 && existing ? existing : { pages: [...pages.slice(0, place + 1), incoming] };
    }
    if (before != null) {
      const place = pages.findIndex(({ pageInfo }) => pageInfo?.startCursor === before);
      return place < 0 && existing ? existing : { pages: [incoming, ...pages.slice(Math.max(0, place))] };
    }
    return { pages: [incoming] };
  },
  read(existing) {
    if (existing === undefined || existing === null) return existing;
    const { pages } = existing;
    const [first] = pages;
    const last = pages.at(-1);
    return {
      ...first,
      ...(first?.nodes && { nodes: pages.flatMap(({ nodes = [] }) => nodes) }),
      ...(first?.edges && { edges: pages.flatMap(({ edges = [] }) => edges) }),
      ...(first?.pageInfo && {
        pageInfo: {
          ...first.pageInfo,
          ...last?.pageInfo,
          // An empty page has no cursors.
          ...('startCursor' in first.pageInfo && { startCursor: cursorsOf(pages, 'startCursor')[0] ?? null }),
          ...('endCursor' in first.pageInfo && { endCursor: cursorsOf(pages, 'endCursor').at(-1) ?? null }),
          ...('hasPreviousPage' in first.pageInfo && { hasPreviousPage: first.pageInfo.hasPreviousPage }),
        },
      }),
    };
  },
};

/** For `new InMemoryCache(cacheOptions)`: members of interfaces and unions, lists that grow by "load more", and events, whose ids may repeat. */
export const cacheOptions = {
  possibleTypes,
  typePolicies: {
    // Two may have one id, as the states of one receipt may. Each is kept where it has come, and replaces what stood there.
    Event: { keyFields: false, merge: false },
    Query: { fields: { events: connection, payments: connection } },
    Account: { fields: { moneyIn: connection } },
    Transaction: { fields: { events: connection } },
    Client: {
      fields: { accounts: connection, customers: connection, instruments: connection, webhooks: connection },
    },
    Customer: { fields: { accounts: connection, instruments: connection } },
  },
} satisfies InMemoryCacheConfig;
