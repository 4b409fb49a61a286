import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { hashOf, type TrustedDocuments } from '../graphql/plugins/trusted-documents.ts';
import { ConfigError } from './config.ts';

const File = z.record(z.string(), z.string());

/**
 * Reads the file that `TRUSTED_DOCUMENTS` names: a JSON object of SHA-256 (hexadecimal) → document.
 *
 * @throws ConfigError when it cannot be read, or a hash is not that of its document: a client that names the true hash would be refused.
 */
export function readTrustedDocuments(path: string): TrustedDocuments {
  const wrong = (problem: string) =>
    new ConfigError(`The configuration is wrong:\n  TRUSTED_DOCUMENTS: ${problem}`);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    throw wrong(`${JSON.stringify(path)} cannot be read.`);
  }
  const read = File.safeParse(parse(text));
  if (!read.success) throw wrong(`${JSON.stringify(path)} is no JSON object of hash → document.`);
  const documents = new Map<string, string>();
  for (const [hash, document] of Object.entries(read.data)) {
    // graphql-codegen names the algorithm before the hash.
    if (hash.toLowerCase().replace(/^sha256:/, '') !== hashOf(document)) {
      throw wrong(
        `${JSON.stringify(hash)} is not the SHA-256 of its document, which is ${hashOf(document)}.`,
      );
    }
    documents.set(hashOf(document), document);
  }
  return documents;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
