import { hash } from 'node:crypto';
import { ExactNumber } from './json.ts';

/**
 * Returns a digest of a JSON value from `parseExactly`. It is equal for equal values, whatever the order of their keys,
 * because a redelivery need not have the same bytes.
 */
export function contentsDigest(value: unknown): string {
  return hash('sha256', canonical(value), 'base64url');
}

function canonical(value: unknown): string {
  if (value instanceof ExactNumber) return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`);
  return `{${members.join(',')}}`;
}
