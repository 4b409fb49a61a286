import { existsSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';
import { scalars } from '@pasarela/client/schema';

/** The schema of a copy of this folder: `pasarela schema` writes it. */
const own = 'schema.graphql';

/** Types for every document in src/, from the gateway's own schema. */
const config: CodegenConfig = {
  schema: existsSync(own) ? own : '../../schema.graphql',
  documents: ['src/**/*.{ts,tsx}', '!src/gql/**'],
  generates: {
    './src/gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false },
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
