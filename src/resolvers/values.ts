import type { Context } from '../operation/context.ts';
import { UpstreamError } from '../upstream/errors.ts';
import { type Optional, present } from '../upstream/json.ts';
import { toRfc3339 } from '../upstream/timestamps.ts';

type Holding<Key extends string> = { readonly [key in Key]?: Optional };

/** Resolver of a text that may be absent: null for null, `""` and `None` (docs/graph.md, "Null"). */
export const optional =
  <Key extends string>(key: Key) =>
  (parent: Holding<Key>): string | null =>
    present(parent[key]);

/**
 * An upstream timestamp as RFC 3339, or null when it is absent.
 *
 * @throws UpstreamError `UPSTREAM_INVALID` for a text that is no timestamp.
 */
export function timestamp(value: Optional, name: string, utcOffset: string): string | null {
  const written = toRfc3339(value, utcOffset);
  if (written === undefined) {
    throw new UpstreamError('UPSTREAM_INVALID', `The service sent a "${name}" that is no timestamp.`);
  }
  return written;
}

/** Resolver of a timestamp field. */
export const when =
  <Key extends string>(key: Key) =>
  (parent: Holding<Key>, _args: object, context: Context): string | null =>
    timestamp(parent[key], key, context.utcOffset);
