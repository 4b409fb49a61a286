import {
  type ApolloClient,
  ApolloLink,
  type DocumentNode,
  Observable,
  type OperationVariables,
  type TypedDocumentNode,
} from '@apollo/client';
import { CombinedGraphQLErrors, UnconventionalError } from '@apollo/client/errors';
import { nodeOf } from './parse.ts';
import { textOf } from './print.ts';
import { requestOf } from './request.ts';
import { FOLLOWED, following, subscribeFor } from './resume.ts';
import { type Answer, type Details, type Source, type TypedDocument, throwIfLeft } from './source.ts';

export { cacheOptions } from './apollo-cache.ts';

/**
 * Returns a link that sends everything over a source. Subscriptions resume automatically: `useSubscription` needs nothing
 * more.
 */
export function createLink(source: Source): ApolloLink {
  return new ApolloLink(({ query, variables, operationType, operationName, extensions, getContext }) => {
    const { fetchOptions, headers, [FOLLOWED]: followed } = getContext();
    const text = textOf(query);
    const details: Details = { operationName, extensions, headers };
    return new Observable<ApolloLink.Result>((observer) => {
      if (operationType === 'subscription') {
        const sink = {
          next: (answer: Answer<unknown>) => observer.next(answer as ApolloLink.Result),
          ended: (cause?: unknown) => (cause === undefined ? observer.complete() : observer.error(cause)),
        };
        return subscribeFor(source, text, variables, followed, sink, details);
      }
      const left = new AbortController();
      const given: AbortSignal | undefined = fetchOptions?.signal;
      const leave = () => left.abort(given?.reason);
      if (given?.aborted) leave();
      given?.addEventListener('abort', leave);
      source.query(text, variables, left.signal, details).then(
        (answer) => {
          followed?.sent(answer);
          observer.next(answer as ApolloLink.Result);
          observer.complete();
        },
        (cause: unknown) => observer.error(cause),
      );
      return () => {
        given?.removeEventListener('abort', leave);
        left.abort();
      };
    });
  });
}

/** Makes a source of a client whose link is {@link createLink}'s: `follow(apolloSource(client), …)`. */
export function apolloSource(client: ApolloClient): Source {
  let check = (): void => {};
  return {
    check: () => check(),
    async query<Data, Variables>(
      document: TypedDocument<Data, Variables>,
      variables: Variables,
      signal?: AbortSignal,
    ): Promise<Answer<Data>> {
      throwIfLeft(signal);
      let sent: Answer<Data> | undefined;
      const followed = {
        sent(answer: Answer<unknown>) {
          // The document determines the type of the data.
          sent = answer as Answer<Data>;
        },
      };
      const options = {
        variables: variables as OperationVariables,
        fetchPolicy: 'no-cache',
        errorPolicy: 'all',
        context: { fetchOptions: { signal }, queryDeduplication: false, [FOLLOWED]: followed },
      } as const;
      const node = nodeOf(document) as TypedDocumentNode<Data, OperationVariables>;
      const { data, error } = isMutation(node)
        ? await client.mutate({ mutation: node, ...options })
        : await client.query({ query: node, ...options });
      const own = answerOf(data, error);
      // A client with `dataMasking` takes fields out of its own.
      return sent ?? own;
    },
    subscribe(document, variables, sink) {
      const { followed, next, ended } = following(sink, (given) => {
        check = given;
      });
      // Additions to the document must be there before Apollo reads a result by it.
      const { query, variables: named } = requestOf(document, variables);
      const subscription = client
        .subscribe({
          query: nodeOf(query),
          variables: named,
          // Events are not entities that the cache could merge.
          fetchPolicy: 'no-cache',
          errorPolicy: 'all',
          // Apollo would give a second feed the first one's subscription, which has begun.
          context: { [FOLLOWED]: followed, queryDeduplication: false },
        })
        .subscribe({
          next({ data, error, extensions }) {
            try {
              next(answerOf(data as never, error), extensions);
            } catch (cause) {
              ended(cause);
            }
          },
          error: ended,
          complete: () => ended(),
        });
      return () => subscription.unsubscribe();
    },
  };
}

/** Returns the answer as Apollo gives it. Throws the error because of which none came. */
function answerOf<Data>(data: Data | null | undefined, error: Error | undefined): Answer<Data> {
  if (error === undefined) return { data };
  if (CombinedGraphQLErrors.is(error)) return { data, errors: error.errors };
  // Apollo wraps values that are no Error, such as the close event of a socket.
  throw UnconventionalError.is(error) ? error.cause : error;
}

const isMutation = ({ definitions }: DocumentNode): boolean =>
  definitions.some((definition) => 'operation' in definition && definition.operation === 'mutation');
