import type { IncomingMessage } from 'node:http';

/** The body of a GraphQL-over-HTTP request whose members have the types that they must have. */
export interface Operation {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly operationName?: string | null | undefined;
  readonly extensions?: object | null | undefined;
}

type MediaType = 'application/graphql-response+json' | 'application/json';

const JSON_CONTENT = /^application\/json *(; *charset=utf-8)?$/i;
const JSON_RANGES: ReadonlyMap<string, MediaType> = new Map([
  ['application/graphql-response+json', 'application/graphql-response+json'],
  ['application/json', 'application/json'],
  ['*/*', 'application/json'],
]);

const PARAMETERS = new Set(['query', 'variables', 'operationName', 'extensions']);

/** Returns the media type with which Yoga would answer an everyday request; undefined for any other request. */
export function everydayAnswer({ headers }: IncomingMessage): MediaType | undefined {
  if (
    headers['content-length'] === undefined ||
    headers['content-encoding'] !== undefined ||
    !JSON_CONTENT.test(headers['content-type'] ?? '')
  ) {
    return undefined;
  }
  const accepted = headers.accept ?? '*/*';
  const only = JSON_RANGES.get(accepted);
  if (only !== undefined) return only;
  // The gateway writes UTF-8 alone. Yoga skips media ranges that ask for another charset.
  if (accepted.includes('charset')) return undefined;
  const ranges = accepted.split(',').map((range) => range.split(';', 1)[0]?.trim().toLowerCase());
  return ranges.map((range) => JSON_RANGES.get(range ?? '')).find((type) => type !== undefined);
}

/**
 * Returns a query or a mutation with its document in the body. Otherwise undefined: Yoga then reports the error, or serves a
 * subscription or a document that is named by its id.
 */
export function parseOperation(text: string): Operation | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return isOperation(body) && !body.query.includes('subscription') ? body : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a JSON body that is an object with at least one member; undefined for any other. */
export function jsonObjectOf({ headers }: IncomingMessage, bytes: Buffer): object | undefined {
  if (!headers['content-type']?.toLowerCase().startsWith('application/json')) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isObject(value) && Object.keys(value).length > 0 ? value : undefined;
  } catch {
    return undefined;
  }
}

function isOperation(value: unknown): value is Operation {
  if (!isObject(value)) return false;
  for (const name in value) if (!PARAMETERS.has(name)) return false;
  const { query, variables, operationName, extensions } = value;
  return (
    typeof query === 'string' &&
    query !== '' &&
    (variables == null || isObject(variables)) &&
    (operationName == null || typeof operationName === 'string') &&
    (extensions == null || isObject(extensions))
  );
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
