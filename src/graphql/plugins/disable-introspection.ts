import { type ASTVisitor, GraphQLError, type ValidationContext } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/** Keeps the schema to itself, over every transport: `__schema` and `__type` are refused. */
export function useDisableIntrospection(): Plugin {
  return {
    onValidate({ addValidationRule }) {
      addValidationRule(refuseIntrospection);
    },
  };
}

/** Refuses the two fields through which all of it is reached: the rule of graphql-js would add an error for each field beneath. */
const refuseIntrospection = (context: ValidationContext): ASTVisitor => ({
  Field(node) {
    if (node.name.value !== '__schema' && node.name.value !== '__type') return;
    context.reportError(
      new GraphQLError(
        `This gateway answers no introspection (${node.name.value}): take the schema.graphql of its version, which "npx pasarela schema" writes, or ask its operator for INTROSPECTION=true.`,
        { nodes: node },
      ),
    );
  },
});
