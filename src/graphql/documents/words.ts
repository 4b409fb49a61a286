import { type DocumentNode, TokenKind } from 'graphql';

/** How the names of a document are spread. */
export interface Words {
  /** Length of the longest name. */
  readonly longest: number;
  /**
   * The sum of the squares of how often each name occurs: validation compares each two fields of one name, wherever they
   * come together.
   */
  readonly pairs: number;
}

/** Counts the names that a parsed document is written in. */
export function wordsOf({ loc }: DocumentNode): Words {
  let longest = 0;
  const counts = new Map<string, number>();
  for (let token = loc?.startToken; token != null; token = token.next ?? undefined) {
    if (token.kind !== TokenKind.NAME) continue;
    longest = Math.max(longest, token.value.length);
    counts.set(token.value, (counts.get(token.value) ?? 0) + 1);
  }
  let pairs = 0;
  for (const count of counts.values()) pairs += count * count;
  return { longest, pairs };
}
