import { Kind, parse, print, separateOperations } from 'graphql';

/** What is written out as code. */
export interface Snippet {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly operationName: string | undefined;
  readonly kind: string;
  readonly graphUrl: string;
}

/** One way to send an operation from a program. */
export interface Format {
  readonly name: string;
  /** What there has to be first. */
  readonly needs: string;
  write(snippet: Snippet): string;
}

export const indent = (text: string, by: string): string => text.trim().replaceAll('\n', `\n${by}`);

export const json = (value: unknown, by = ''): string => indent(JSON.stringify(value, null, 2), by);

/** A template literal that holds the text as it is. */
export const literal = (text: string, by = ''): string =>
  `\`\n${by}${indent(text.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${'), by)}\n\``;

export const nameOf = ({ operationName, kind }: Snippet): string =>
  operationName ?? `My${kind.slice(0, 1).toUpperCase()}${kind.slice(1)}`;

export const constantOf = (snippet: Snippet): string =>
  nameOf(snippet)
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase();

/** An operation of a document with the fragments that it uses, and no other one: most clients take one in a document. */
export function aloneIn(query: string, operationName: string | undefined): string {
  const document = parse(query);
  const operations = document.definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION);
  const alone = operations.length > 1 ? separateOperations(document)[operationName ?? ''] : undefined;
  return alone === undefined ? query : `${print(alone)}\n`;
}
