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

/**
 * Returns the media ranges of an `accept` in the order of their weights (RFC 9110, 12.5.1), because whoever reads the header after this goes by
 * their order. A weight of zero refuses a range; where all are refused, they stay.
 */
export function byWeight(accept: string): string {
  const ranges = accept.split(',').map((range) => ({
    range: range.trim(),
    weight: Number(/;\s*q=(\d(\.\d*)?)/i.exec(range)?.[1] ?? 1),
  }));
  const wanted = ranges.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight);
  return wanted.length === 0 ? accept : wanted.map(({ range }) => range).join(', ');
}

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

/** Returns the text of a body without the byte order mark, with which Windows begins files (RFC 8259, 8.1: a reader may pass over it). */
export function textOf(bytes: Buffer): string {
  const text = bytes.toString();
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
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

/**
 * Returns the parameters of a request whose body is a JSON object; undefined for any other body. Other members are ignored, as GraphQL over
 * HTTP asks. Yoga must not read them: it takes an object with `status` and `headers` for an answer, which it sends, and one with `then`
 * for a promise.
 */
export function parametersOf({ headers }: IncomingMessage, bytes: Buffer): object | undefined {
  if (!headers['content-type']?.toLowerCase().startsWith('application/json')) return undefined;
  try {
    const value: unknown = JSON.parse(textOf(bytes));
    if (!isObject(value)) return undefined;
    const { query, documentId, variables, operationName, extensions } = value;
    return { query, documentId, variables, operationName, extensions };
  } catch {
    return undefined;
  }
}

function isOperation(value: unknown): value is Operation {
  if (!isObject(value)) return false;
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
