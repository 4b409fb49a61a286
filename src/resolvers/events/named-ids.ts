/** How much of a message is looked through, and how many ids are taken from it. */
const MAX_DEPTH = 32;
const MAX_IDS = 256;

const UUID = /(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])/gi;

/**
 * The UUIDs that a message names anywhere: as a value or a field's name, alone or within a longer text such as an address.
 *
 * @returns each once, in lower case, those of the outer levels first. Of a message that names very many, or nests very
 *   deeply, the first ones.
 */
export function namedIds(payload: unknown): readonly string[] {
  const ids = new Set<string>();
  const take = (text: string): void => {
    for (const [id] of text.matchAll(UUID)) ids.add(id.toLowerCase());
  };
  let level: readonly unknown[] = [payload];
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth += 1) {
    const inner: unknown[] = [];
    for (const value of level) {
      if (typeof value === 'string') take(value);
      else if (Array.isArray(value)) for (const item of value) inner.push(item);
      else if (typeof value === 'object' && value !== null) {
        for (const [name, member] of Object.entries(value)) {
          take(name);
          inner.push(member);
        }
      }
      if (ids.size >= MAX_IDS) return [...ids].slice(0, MAX_IDS);
    }
    level = inner;
  }
  return [...ids];
}
