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
import { FOLLOWED, type Followed, subscribeFor } from './resume.ts';
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
          next(answer: Answer<unknown>) {
            const result = answer as ApolloLink.Result;
            // With the result, because another link may pass it on later, behind other answers.
            const extensions = { ...result.extensions, [FOLLOWED]: answer };
            observer.next(followed ? { ...result, extensions } : result);
            // What Apollo passes on later may be another result.
            followed?.sent();
          },
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
      const followed: Pick<Followed, 'sent'> = {
        sent(answer) {
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
      return answerOf(sent, data, error);
    },
    subscribe(document, variables, sink) {
      let sent: Answer<never> | undefined;
      const followed: Followed = {
        checks(given) {
          check = given;
        },
        opened: (catching) => sink.opened(catching),
        bookmark: (cursor) => sink.bookmark(cursor),
        sent(answer) {
          sent = answer as Answer<never> | undefined;
        },
      };
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
              // A link may have taken the extensions away.
              const answer = (extensions?.[FOLLOWED] as typeof sent) ?? sent;
              sink.next(answerOf(answer, data as never, error));
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

/**
 * Returns the answer. Throws the error because of which none came.
 *
 * @param sent the answer as the gateway has sent it. A client with `dataMasking` takes fields out of it; undefined where the client's link is another one
 */
function answerOf<Data>(
  sent: Answer<Data> | undefined,
  data: Data | null | undefined,
  error: Error | undefined,
): Answer<Data> {
  if (error === undefined) return sent ?? { data };
  if (CombinedGraphQLErrors.is(error)) return sent ?? { data, errors: error.errors };
  // Apollo wraps values that are no Error, such as the close event of a socket.
  throw UnconventionalError.is(error) ? error.cause : error;
}

const isMutation = ({ definitions }: DocumentNode): boolean =>
  definitions.some((definition) => 'operation' in definition && definition.operation === 'mutation');
