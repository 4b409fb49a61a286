import { isRounded } from '../../common/long-numbers.ts';
import { UpstreamError } from './errors.ts';
import { isObject } from './object.ts';

export { isObject, type JsonObject } from './object.ts';

/**
 * A text that the upstream may also send as null, as `""` or as the text `None`, or leave out (docs/upstream-api.md,
 * "Conventions"). Nothing has checked what came: `present` reads it.
 */
export type Optional = unknown;

/**
 * Checks that a value is an object with a string `id`, which is all that the loaders need. Other fields are checked where
 * they are read: a missing one spoils its own field, not the answer.
 *
 * @param what names the value in the error.
 * @throws UpstreamError `UPSTREAM_INVALID`
 */
export function identified<T extends { readonly id: string }>(value: unknown, what: string): T {
  if (!isObject(value) || typeof value['id'] !== 'string' || value['id'] === '') {
    throw new UpstreamError('UPSTREAM_INVALID', `The service sent ${what} without an id.`);
  }
  // Every other field of a noun is optional, or is read by functions that accept any value.
  return value as unknown as T;
}

/**
 * Checks that the answer to a read by id is what was asked for, so that nothing is shown or kept under another's id.
 *
 * @param what names the value in the error.
 * @throws UpstreamError `UPSTREAM_INVALID`
 */
export function identifiedBy<T extends { readonly id: string }>(id: string, value: unknown, what: string): T {
  const found = identified<T>(value, what);
  // UUIDs are the same in any case of their letters.
  if (found.id.toLowerCase() !== id.toLowerCase()) {
    throw new UpstreamError(
      'UPSTREAM_INVALID',
      `The service was asked for ${what}, and sent one with another id.`,
    );
  }
  return found;
}

/**
 * Returns a text as it came, with U+FFFD in the place of half a character: many readers of JSON refuse the whole answer for one (RFC 8259,
 * 8.2). A number becomes its digits. Returns null for an absent value (null, undefined, `""` or `None`),
 * and for a value that is no text: an object or a list is reported by the field that shows it (resolvers/values.ts). A number that JavaScript has rounded is
 * none: a CLABE has 18 digits, and the rounded one would be another account's.
 */
export function present(value: unknown): string | null {
  if (typeof value === 'number') return isRounded(value) ? null : String(value);
  return typeof value !== 'string' || value === '' || value === 'None' ? null : value.toWellFormed();
}
