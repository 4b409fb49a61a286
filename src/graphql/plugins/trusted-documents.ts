import { createHash } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/**
 * Documents that may run. Each is found by the SHA-256 of its text, in lower-case hexadecimal, and by the id that its
 * file gives it.
 */
export interface TrustedDocuments {
  get(id: string): string | undefined;
  /**
   * Begins to take over what changes, and says so each time; the problem is that of files that could not be taken over.
   * Absent where nothing changes.
   *
   * @returns ends it.
   */
  readonly watch?: (onReload: (problem: Error | undefined) => void) => () => void;
}

/** How a request names its document: by id in one of two ways, or by its text. */
export interface DocumentRequest {
  readonly query?: unknown;
  /** `sha256:<hash>`, the hash alone, or another id (GraphQL over HTTP, "Persisted Documents"). */
  readonly documentId?: unknown;
  /** `persistedQuery.sha256Hash` (automatic persisted queries, as Apollo's clients send them). */
  readonly extensions?: unknown;
}

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * The document that a request may run.
 *
 * @param documents undefined lets any text run.
 * @throws GraphQLError `FORBIDDEN` for an id or a text that is not listed; `PERSISTED_QUERY_NOT_SUPPORTED` for an id where
 * none are listed: the persisted-query links of Apollo Client and urql then send the text.
 */
export function documentOf(documents: TrustedDocuments | undefined, request: DocumentRequest): string {
  const { query } = request;
  const isText = typeof query === 'string' && query !== '';
  const id = isText ? undefined : idIn(request);
  if (documents === undefined) {
    if (id !== undefined) throw persistedQueryNotSupported();
    return isText ? query : '';
  }
  // A text that comes along is what would run elsewhere: it must be a listed one itself.
  const text = isText
    ? documents.get(hashOf(query))
    : id && (documents.get(id) ?? documents.get(withoutAlgorithm(id)));
  if (text !== undefined) return text;
  throw new GraphQLError(
    isText || id !== undefined
      ? 'Only listed documents run here, and this one is not listed.'
      : 'Only listed documents run here: name one by its id, as documentId or extensions.persistedQuery.sha256Hash.',
    { extensions: { code: 'FORBIDDEN', http: { status: 403 } } },
  );
}

/** Apollo's clients know the code, urql the message; both read a result alone, not an error of HTTP. */
const persistedQueryNotSupported = (): GraphQLError =>
  new GraphQLError('PersistedQueryNotSupported', {
    extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED', http: { status: 200 } },
  });

function idIn({ documentId, extensions }: DocumentRequest): string | undefined {
  const persisted = member(extensions, 'persistedQuery');
  const id = typeof documentId === 'string' ? documentId : member(persisted, 'sha256Hash');
  return typeof id === 'string' && id !== '' ? id : undefined;
}

const withoutAlgorithm = (id: string): string => id.replace(/^sha256:/, '').toLowerCase();

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null
    ? Object.getOwnPropertyDescriptor(value, name)?.value
    : undefined;

/** Finds the document of each request over HTTP and SSE. Sockets ask {@link documentOf} themselves. */
export function useTrustedDocuments(documents: TrustedDocuments | undefined): Plugin {
  return {
    onParams({ params, setParams }) {
      const query = documentOf(documents, { ...params, documentId: member(params, 'documentId') });
      // What names no document at all, Yoga knows how to answer.
      if (query !== '' && query !== params.query) setParams({ ...params, query });
    },
  };
}
