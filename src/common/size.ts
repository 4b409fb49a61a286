/** Bytes that a value, a property or an item takes besides its characters, as an upper estimate. */
const FIXED_BYTES = 32;

/** Returns the memory that a JSON value takes, in bytes, as an upper estimate. Stops once `most` is exceeded. */
export function sizeOf(value: unknown, most = Number.POSITIVE_INFINITY): number {
  let bytes = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0 && bytes <= most) {
    const next = waiting.pop();
    bytes += FIXED_BYTES;
    if (typeof next === 'string') bytes += 2 * next.length;
    if (typeof next !== 'object' || next === null) continue;
    if (Array.isArray(next)) {
      for (const item of next) waiting.push(item);
      continue;
    }
    for (const [name, part] of Object.entries(next)) {
      bytes += FIXED_BYTES + 2 * name.length;
      waiting.push(part);
    }
  }
  return bytes;
}
