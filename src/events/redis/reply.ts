/** A reply that is a list. */
export function list(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new TypeError(`Redis replied ${typeof reply} where a list was wanted`);
  return reply;
}

/** An item of a reply that is text. */
export function word(item: unknown): string {
  if (typeof item !== 'string') throw new TypeError(`Redis replied ${typeof item} where text was wanted`);
  return item;
}
