import { type DocumentNode, parse, print } from 'graphql';
import { Refused } from './source.ts';

/** A document as the text that is sent. Throws where relay-compiler has left it out. */
export function textOf(document: string | object): string {
  const { kind, params } = document as { kind?: string; params?: { text?: string | null } };
  // graphql's own name for a parsed document.
  if (kind === 'Document') return print(document as DocumentNode);
  // relay-compiler keeps the text with what it made of it; graphql-codegen's strings are String objects.
  if (params?.text === null)
    throw new Refused({
      message: 'relay-compiler left out the text: set include_query_text in persistConfig.',
      extensions: { code: 'BAD_USER_INPUT' },
    });
  return params?.text ?? String(document);
}

/** A document in its parsed form. */
export const nodeOf = (document: string | object): DocumentNode =>
  (document as { kind?: string }).kind === 'Document' ? (document as DocumentNode) : parse(textOf(document));
