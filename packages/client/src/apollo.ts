import {
  type ApolloClient,
  ApolloLink,
  type DocumentNode,
  Observable,
  type OperationVariables,
  type TypedDocumentNode,
} from '@apollo/client';
import { CombinedGraphQLErrors } from '@apollo/client/errors';
import { nodeOf } from './print.ts';
import { FOLLOWED, type Followed, subscribeFor } from './resume.ts';
import type { Answer, Source, TypedDocument } from './source.ts';

export { cacheOptions } from './apollo-cache.ts';

/** Sends everything over a source. Subscriptions resume by themselves: `useSubscription` needs nothing more. */
export function createLink(source: Source): ApolloLink {
  return new ApolloLink(({ query, variables, operationType, getContext }) => {
    const context = getContext();
    return new Observable<ApolloLink.Result>((observer) => {
      if (operationType === 'subscription') {
        return subscribeFor(source, query, variables, context[FOLLOWED], {
          opened() {},
          next: (answer) => observer.next(answer as ApolloLink.Result),
          ended: (cause) => (cause === undefined ? observer.complete() : observer.error(cause)),
        });
      }
      source.query(query, variables, context['fetchOptions']?.signal).then(
        (answer) => {
          observer.next(answer as ApolloLink.Result);
          observer.complete();
        },
        (cause: unknown) => observer.error(cause),
      );
      return undefined;
    });
  });
}

/** A client whose link is {@link createLink}'s as a source: `follow(apolloSource(client), …)`. */
export function apolloSource(client: ApolloClient): Source {
  let check = (): void => {};
  return {
    check: () => check(),
    async query<Data, Variables>(
      document: TypedDocument<Data, Variables>,
      variables: Variables,
      signal?: AbortSignal,
    ): Promise<Answer<Data>> {
      const options = {
        variables: variables as OperationVariables,
        fetchPolicy: 'no-cache',
        errorPolicy: 'all',
        context: { fetchOptions: { signal }, queryDeduplication: false },
      } as const;
      const node = nodeOf(document) as TypedDocumentNode<Data, OperationVariables>;
      const { data, error } = isMutation(node)
        ? await client.mutate({ mutation: node, ...options })
        : await client.query({ query: node, ...options });
      return answerOf(data, error);
    },
    subscribe(document, variables, sink) {
      const followed: Followed = (given) => {
        check = given;
        return () => sink.opened();
      };
      const subscription = client
        .subscribe({
          query: nodeOf(document),
          variables: variables as OperationVariables,
          // Events are no entities to be merged: the cache has no use for them.
          fetchPolicy: 'no-cache',
          errorPolicy: 'all',
          context: { [FOLLOWED]: followed },
        })
        .subscribe({
          next({ data, error }) {
            try {
              sink.next(answerOf(data as never, error));
            } catch (cause) {
              sink.ended(cause);
            }
          },
          error: (cause: unknown) => sink.ended(cause),
          complete: () => sink.ended(),
        });
      return () => subscription.unsubscribe();
    },
  };
}

/** Throws what kept the answer from coming. */
function answerOf<Data>(data: Data | null | undefined, error: Error | undefined): Answer<Data> {
  if (error === undefined) return { data };
  if (CombinedGraphQLErrors.is(error)) return { data, errors: error.errors };
  // What is no Error, such as the close of a socket, Apollo wraps.
  throw error.cause ?? error;
}

const isMutation = ({ definitions }: DocumentNode): boolean =>
  definitions.some((definition) => 'operation' in definition && definition.operation === 'mutation');
