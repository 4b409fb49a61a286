/** The form of every id that may stand in a path (docs/assumptions.md, "ids"). */
const ID = /^[A-Za-z0-9_-]{1,64}$/;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A text that cannot be an id. It is refused before any URL is built. */
export class MalformedIdError extends Error {
  override readonly name = 'MalformedIdError';
  readonly code = 'BAD_USER_INPUT';
}

/** Whether a text can be an id of the upstream at all. */
export const isId = (text: unknown): text is string => typeof text === 'string' && ID.test(text);

/** Whether a text is a UUID (RFC 9562) of any version. */
export const isUuid = (text: string): boolean => UUID.test(text);

/** Returns what two spellings of one id have in common: UUIDs are the same in any case of their letters (RFC 9562, 4), other ids are not. */
export function idKey(id: string): string {
  const lower = id.toLowerCase();
  // Nearly all are in small letters: hundreds are compared in a query, and the form of none of these needs to be looked at.
  return lower !== id && isUuid(id) ? lower : id;
}

/**
 * Puts ids into a path template such as `/v1/clients/{clientId}/instruments/{instrumentId}`, and appends a query. Query
 * values of `undefined` are left out.
 *
 * @throws MalformedIdError if a parameter is missing or is no id, so that `../banks`, `%2e`, `?` and `#` reach no URL.
 */
export function expandPath(
  template: string,
  params: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  let path = '';
  for (const [index, part] of partsOf(template).entries()) {
    if (index % 2 === 0) {
      path += part;
      continue;
    }
    const value = Object.hasOwn(params, part) ? params[part] : undefined;
    if (value === undefined || !isId(value)) {
      throw new MalformedIdError(`${part} must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -.`);
    }
    path += value;
  }
  let separator = '?';
  for (const name in query) {
    const value = query[name];
    if (value === undefined) continue;
    path += `${separator}${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
    separator = '&';
  }
  return path;
}

/** Not bounded, because the templates are in the code, and are few. */
const templates = new Map<string, readonly string[]>();

/** Returns the parts of a template: the text between parameters and the names of parameters, in turn. */
function partsOf(template: string): readonly string[] {
  let parts = templates.get(template);
  if (parts === undefined) {
    parts = template.split(/\{(\w+)\}/);
    templates.set(template, parts);
  }
  return parts;
}
