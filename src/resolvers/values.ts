import type { Context } from '../operation/context.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { isObject, type Optional, present } from '../upstream/call/json.ts';
import { isId } from '../upstream/call/path.ts';
import { toRfc3339 } from '../upstream/call/timestamps.ts';

type Holding<Key extends string> = { readonly [key in Key]?: Optional };

/** The service has sent something else than what its documentation promises under this name. */
export const invalid = (name: string, problem: string): UpstreamError =>
  new UpstreamError('UPSTREAM_INVALID', `The service sent a "${name}" that ${problem}.`);

/**
 * A text that may be absent: null for null, `""` and `None` (docs/graph.md, "Null"), and for a boolean, by which a service may write the
 * same. A number is its digits.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` for an object, a list, and a number that JavaScript has rounded.
 */
export function textOf(value: unknown, name: string): string | null {
  if (typeof value === 'object' && value !== null) throw invalid(name, 'is no text');
  const text = present(value);
  if (text === null && typeof value === 'number')
    throw invalid(name, 'is a number of more digits than are read');
  return text;
}

/** Resolver of a text that may be absent, as `textOf` reads it. */
export const optional =
  <Key extends string>(key: Key) =>
  (parent: Holding<Key>): string | null =>
    textOf(parent[key], key);

/**
 * The id under which the service names something else; null where it names nothing.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` for what can be no id.
 */
export function namedId(value: unknown, name: string): string | null {
  const id = textOf(value, name);
  if (id !== null && !isId(id)) throw invalid(name, 'is no id');
  return id;
}

/**
 * Part of an answer that is an object or absent.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` for anything else.
 */
export function partOf<T extends object>(value: T | null | undefined, name: string): T | null {
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw invalid(name, 'is no object');
  return value;
}

/**
 * An upstream timestamp as RFC 3339, or null when it is absent.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` for a text that is no timestamp.
 */
export function timestamp(value: Optional, name: string, utcOffset: string): string | null {
  const written = toRfc3339(value, utcOffset);
  if (written === undefined) {
    throw invalid(name, 'is no timestamp');
  }
  return written;
}

/** Resolver of a timestamp field. */
export const when =
  <Key extends string>(key: Key) =>
  (parent: Holding<Key>, _args: object, context: Context): string | null =>
    timestamp(parent[key], key, context.services.utcOffset);
