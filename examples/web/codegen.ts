import { createHash } from 'node:crypto';
import type { CodegenConfig } from '@graphql-codegen/cli';
import { scalars } from '@pasarela/client/schema';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Types for every document in src/, and the list of documents that a gateway with TRUSTED_DOCUMENTS is to accept. */
const config: CodegenConfig = {
  schema: '../../schema.graphql',
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
