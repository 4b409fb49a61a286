import { createHash } from 'node:crypto';
import { ExactNumber } from './json.ts';

/** How deep arrays and objects of a delivery may nest (RFC 8259, section 9, leaves the limit to the reader). */
const MAX_DEPTH = 128;

/**
 * A digest of a JSON value that `parseExactly` read, the same for equal values in whichever order their keys came: a redelivery need not
 * have the same bytes.
 *
 * @throws {RangeError} for a value that nests too deeply
 */
export function contentsDigest(value: unknown): string {
  return createHash('sha256').update(canonical(value, 0)).digest('base64url');
}

function canonical(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw new RangeError(`wanted at most ${MAX_DEPTH} levels`);
  if (value instanceof ExactNumber) return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member, depth + 1)}`);
  return `{${members.join(',')}}`;
}
