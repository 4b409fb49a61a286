import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { IdentifiedContext } from '../../operation/identity.ts';
import type { DocumentCache } from '../documents/document-cache.ts';
import { preparedDocument } from '../documents/prepared-operation.ts';

/** What is known before the operation's context is made. */
interface InitialContext {
  /** Whether the caller has been identified before. */
  readonly isIdentified?: boolean;
  /** Whether its document was kept. */
  readonly isKept?: boolean;
}

/**
 * Keeps documents with all that is derived from them, so that what is asked again is neither parsed nor validated nor
 * measured nor planned again. Anybody may send a document: one is kept once an identified caller has run it, or once it is valid and its
 * bearer was identified before, also by a token that has ended since. Only what these send counts as used, so that strangers neither fill
 * the memory nor push out what others use.
 *
 * Must stand before all plugins that ask for a prepared operation.
 */
export function useKeptDocuments(
  cache: DocumentCache,
): Plugin<IdentifiedContext & InitialContext, InitialContext> {
  return {
    onParse({ params, setParsedDocument }) {
      const known = cache.find(typeof params.source === 'string' ? params.source : params.source.body);
      if (known !== undefined) setParsedDocument(known);
    },
    onValidate({ params, setResult, context }) {
      const document = preparedDocument(params.schema, params.documentAST);
      if (document.isValid) {
        Object.assign(context, { isKept: true });
        setResult([]);
        return undefined;
      }
      return ({ valid }) => {
        document.isValid = valid;
        // A thousand phones that come back at once have it in common from the first one on.
        if (valid && context.isIdentified === true) cache.keep(document);
      };
    },
    onExecute({ args }) {
      return {
        onExecuteDone() {
          if (args.contextValue.identity.isIdentified)
            cache.keep(preparedDocument(args.schema, args.document));
        },
      };
    },
    onSubscribe({ args }) {
      return {
        onSubscribeResult({ result }) {
          if (isAsyncIterable(result)) cache.keep(preparedDocument(args.schema, args.document));
        },
      };
    },
  };
}
