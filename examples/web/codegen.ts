import { createHash } from 'node:crypto';
import type { CodegenConfig } from '@graphql-codegen/cli';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Types for every document in src/, and the list of documents that a gateway with TRUSTED_DOCUMENTS is to accept. */
const config: CodegenConfig = {
  schema: '../../schema.graphql',
  documents: ['src/**/*.{ts,tsx}', '!src/gql/**'],
  generates: {
    './src/gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false, persistedDocuments: { hashAlgorithm: sha256 } },
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        strictScalars: true,
        scalars: {
          Clabe: 'string',
          CurrencyCode: 'string',
          Cursor: 'string',
          Date: 'string',
          DateTime: 'string',
          JSON: 'unknown',
          JSONObject: 'Record<string, unknown>',
          MoneyAmount: 'string',
          URL: 'string',
        },
      },
    },
  },
};

export default config;
