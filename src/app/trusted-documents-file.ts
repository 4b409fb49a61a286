import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { hashOf, type TrustedDocuments } from '../graphql/plugins/trusted-documents.ts';
import type { Metrics } from '../observability/metrics.ts';
import { ConfigError } from './config.ts';
import { wants } from './variables.ts';

/** The form that Relay's compiler (`persistConfig.file`) and graphql-codegen's client preset write: id → text. */
const Texts = z.record(z.string(), z.string());
/** The form that Apollo's `generate-persisted-query-manifest` writes. */
const ApolloManifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id: z.string(), body: z.string() })),
});

/** How often the files are checked for changes, in milliseconds. */
const LOOK_EVERY_MS = 5_000;
const SHA_256 = /^(sha256:)?[0-9a-f]{64}$/i;

/**
 * Reads the files that `TRUSTED_DOCUMENTS` names. Each holds a JSON object of id → text, or Apollo's manifest.
 *
 * @returns text by each document's own id, and by the SHA-256 of the text.
 * @throws ConfigError if one cannot be read, if one id stands for two texts, or if a SHA-256 is not that of its document,
 * because a client that sends the true hash would be refused.
 */
export function readTrustedDocuments(paths: readonly string[]): ReadonlyMap<string, string> {
  const documents = new Map<string, string>();
  const add = (id: string, text: string): void => {
    const known = documents.get(id);
    if (known !== undefined && known !== text) {
      throw wrong(`${JSON.stringify(id)} stands for two documents that differ.`);
    }
    documents.set(id, text);
  };
  for (const path of paths) {
    for (const [id, text] of documentsIn(path)) {
      // graphql-codegen can write the name of the algorithm before the hash.
      if (SHA_256.test(id) && id.toLowerCase().replace(/^sha256:/, '') !== hashOf(text)) {
        throw wrong(
          `${JSON.stringify(id)} of ${path} is not the SHA-256 of its document, which is ${hashOf(text)}.`,
        );
      }
      if (!SHA_256.test(id)) add(id, text);
      add(hashOf(text), text);
    }
  }
  return documents;
}

const wrong = (problem: string) =>
  new ConfigError(`The configuration is wrong:\n  TRUSTED_DOCUMENTS: ${problem}`);

/**
 * Returns the documents of one file, each under the id that the file gives it.
 *
 * @throws ConfigError
 */
export function documentsIn(path: string): readonly (readonly [id: string, text: string])[] {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch {
    throw wrong(
      `got ${JSON.stringify(path)}, which cannot be read; wants ${wants('TRUSTED_DOCUMENTS')}, which this process may read.`,
    );
  }
  const json = parse(content);
  const manifest = ApolloManifest.safeParse(json);
  if (manifest.success) return manifest.data.operations.map(({ id, body }) => [id, body]);
  const texts = Texts.safeParse(json);
  if (texts.success) return Object.entries(texts.data);
  throw wrong(
    `${JSON.stringify(path)} is neither a JSON object of id → document nor a persisted query manifest of Apollo's.`,
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the documents of files, which may change while the gateway runs. If changed files are invalid, the documents that
 * were read before stay.
 *
 * @param lookEveryMs how often the files are checked once watched.
 * @throws ConfigError as {@link readTrustedDocuments} does.
 */
export function openTrustedDocuments(
  paths: readonly string[],
  lookEveryMs: number = LOOK_EVERY_MS,
): Required<TrustedDocuments> {
  let seen = stateOf(paths);
  let documents = readTrustedDocuments(paths);
  return {
    get: (id) => documents.get(id),
    watch(onReload) {
      const timer = clock.setInterval(() => {
        const state = stateOf(paths);
        if (state === seen) return;
        seen = state;
        try {
          documents = readTrustedDocuments(paths);
          onReload(undefined);
        } catch (error) {
          onReload(error instanceof Error ? error : new Error(String(error)));
        }
      }, lookEveryMs);
      timer.unref();
      return () => clock.clearInterval(timer);
    },
  };
}

/** Reports each time that trusted documents were read again, or could not be. @returns a function that ends it. */
export function watchTrustedDocuments(
  documents: TrustedDocuments | undefined,
  metrics: Metrics,
  logger: Logger,
): () => void {
  const stop = documents?.watch?.((problem) => {
    metrics.trustedDocumentsReload(problem === undefined);
    if (problem === undefined) logger.info({}, 'The trusted documents have been read again');
    else
      logger.error(
        { error: problem.message },
        'The trusted documents have changed and cannot be read: those read before stay in force',
      );
  });
  return () => stop?.();
}

/**
 * Returns a text that changes with each file and with who may read it, also if a link leads to another one, as when Kubernetes replaces a
 * ConfigMap. Why a file cannot be looked at, reading it tells.
 */
const stateOf = (paths: readonly string[]): string =>
  paths
    .map((path) => {
      try {
        const { dev, ino, size, mtimeNs, mode, uid, gid } = statSync(path, { bigint: true });
        return `${dev}:${ino}:${size}:${mtimeNs}:${mode}:${uid}:${gid}`;
      } catch {
        return 'none';
      }
    })
    .join(' ');
