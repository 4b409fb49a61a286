import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';
import { scalars } from '@pasarela/client/schema';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The schema of a copy of this folder: `pasarela schema` writes it. */
const own = 'schema.graphql';

/** Types for every document in src/, and the list of documents that a gateway with TRUSTED_DOCUMENTS is to accept. */
const config: CodegenConfig = {
  schema: existsSync(own) ? own : '../../schema.graphql',
  documents: ['src/**/*.{ts,tsx}', '!src/gql/**', 'node_modules/@pasarela/client/documents.graphql'],
  generates: {
    './src/gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false, persistedDocuments: { hashAlgorithm: sha256 } },
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        strictScalars: true,
        scalars,
      },
    },
  },
};

export default config;
