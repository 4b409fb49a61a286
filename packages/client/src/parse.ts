import { type DocumentNode, parse } from 'graphql';
import { textOf } from './print.ts';

/** Returns a document in its parsed form. */
export const nodeOf = (document: string | object): DocumentNode =>
  (document as { kind?: string }).kind === 'Document' ? (document as DocumentNode) : parse(textOf(document));
