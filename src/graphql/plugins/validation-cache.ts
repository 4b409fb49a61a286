import type { DocumentNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/**
 * Validates each parsed document once: schema and rules are the same for as long as the server runs. Yoga's own cache
 * tells rules apart by the names of all of them, which it joins again with every request. Must stand before the plugin
 * that gives errors their public form, so that what is kept has none yet.
 */
export function useValidationCache(): Plugin {
  const known = new WeakMap<DocumentNode, readonly Error[]>();
  return {
    onValidate({ params, setResult }) {
      const document: DocumentNode = params.documentAST;
      const errors = known.get(document);
      if (errors !== undefined) {
        setResult(errors);
        return undefined;
      }
      return ({ result }) => {
        known.set(document, result);
      };
    },
  };
}
