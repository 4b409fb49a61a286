/** What a link brings. It stands behind the `#`, so that no server sees it. */
export interface Linked {
  readonly query: string;
  readonly variables: string;
}

export function linkTo({ query, variables }: Linked): string {
  const address = new URL(location.href);
  address.hash = new URLSearchParams({ query, variables }).toString();
  return address.href;
}

/** Takes what a link has brought out of the address. What else was asked for there stays, as `?subscriptions=WS`. */
export function forgetLink(): void {
  const address = new URL(location.href);
  address.hash = '';
  for (const name of ['query', 'variables', 'operationName']) address.searchParams.delete(name);
  history.replaceState(null, '', address);
}

/** What the page was opened with; `?query=` is understood as well, as GraphiQL's own links have it. */
export function linkedHere(): Linked | undefined {
  for (const text of [location.hash.slice(1), location.search]) {
    const parameters = new URLSearchParams(text);
    const query = parameters.get('query');
    if (query !== null) return { query, variables: parameters.get('variables') ?? '' };
  }
  return undefined;
}
