import { type DocumentNode, parse } from 'graphql';
import { textOf } from './print.ts';

/** By text. Apollo Client and urql keep each document that they are given, so a text has to be the same one each time. */
const parsed: Record<string, DocumentNode> = {};

/** Returns a document in its parsed form. */
export function nodeOf(document: string | object): DocumentNode {
  if ((document as { kind?: string }).kind === 'Document') return document as DocumentNode;
  const text = textOf(document);
  parsed[text] ??= parse(text);
  return parsed[text];
}
