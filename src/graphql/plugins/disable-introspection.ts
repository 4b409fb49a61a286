import { NoSchemaIntrospectionCustomRule, validate } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/**
 * Keeps the schema to itself, over every transport: `__schema` and `__type` are refused, and no error suggests a name that
 * was nearly hit, neither of a document nor of a variable.
 */
export function useDisableIntrospection(): Plugin {
  return {
    onValidate({ addValidationRule, setValidationFn }) {
      addValidationRule(NoSchemaIntrospectionCustomRule);
      setValidationFn((schema, document, rules) =>
        validate(schema, document, rules, { hideSuggestions: true }),
      );
    },
    onExecute({ args }) {
      Object.assign(args, { hideSuggestions: true });
    },
    onSubscribe({ args }) {
      Object.assign(args, { hideSuggestions: true });
    },
  };
}
