import { createHash } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/** Documents that may run, by the SHA-256 of their text, in lower-case hexadecimal. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** How a request names its document: by hash in one of two ways, or by its text. */
export interface DocumentRequest {
  readonly query?: unknown;
  /** `sha256:<hash>` or the hash alone (GraphQL over HTTP, "Persisted Documents"). */
  readonly documentId?: unknown;
  /** `persistedQuery.sha256Hash` (automatic persisted queries, as Apollo's clients send them). */
  readonly extensions?: unknown;
}

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * The document that a request may run.
 *
 * @throws GraphQLError `FORBIDDEN` for a hash or a text that is not listed.
 */
export function trustedDocument(documents: TrustedDocuments, request: DocumentRequest): string {
  const hash = hashIn(request);
  const text = hash === undefined ? undefined : documents.get(hash);
  if (text !== undefined) return text;
  throw new GraphQLError(
    hash === undefined
      ? 'Only listed documents run here: name one by its SHA-256, as documentId or extensions.persistedQuery.sha256Hash.'
      : 'Only listed documents run here, and this one is not listed.',
    { extensions: { code: 'FORBIDDEN', http: { status: 403 } } },
  );
}

function hashIn({ query, documentId, extensions }: DocumentRequest): string | undefined {
  // A text that comes along is what would run elsewhere: it must be a listed one itself.
  if (typeof query === 'string' && query !== '') return hashOf(query);
  const persisted = member(extensions, 'persistedQuery');
  const named = typeof documentId === 'string' ? documentId : member(persisted, 'sha256Hash');
  return typeof named === 'string' ? named.replace(/^sha256:/, '').toLowerCase() : undefined;
}

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null
    ? Object.getOwnPropertyDescriptor(value, name)?.value
    : undefined;

/** Runs listed documents alone, over HTTP and SSE. Sockets ask {@link trustedDocument} themselves. */
export function useTrustedDocuments(documents: TrustedDocuments): Plugin {
  return {
    onParams({ params, setParams }) {
      const query = trustedDocument(documents, { ...params, documentId: member(params, 'documentId') });
      setParams({ ...params, query });
    },
  };
}
