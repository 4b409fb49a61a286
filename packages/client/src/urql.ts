import {
  type Client,
  createRequest,
  type Exchange,
  type ExecutionResult,
  type OperationResult,
  subscriptionExchange,
  type TypedDocumentNode,
} from '@urql/core';
import { filter, onEnd, pipe, subscribe, take } from 'wonka';
import { nodeOf } from './parse.ts';
import { requestOf } from './request.ts';
import { FOLLOWED, following, subscribeFor } from './resume.ts';
import { type Answer, type Details, type Source, type TypedDocument, within } from './source.ts';

/** Makes the last exchange of a client, which sends everything over a source. Subscriptions resume automatically. */
export const sourceExchange = (source: Source): Exchange =>
  subscriptionExchange({
    enableAllOperations: true,
    forwardSubscription: ({ query = '', variables = {}, extensions }, { kind, context }) => ({
      subscribe(sink) {
        let isFirst = true;
        const next = ({ data, errors, extensions }: Answer<unknown> & { readonly extensions?: object }) => {
          // Without `errors`, urql repeats those of the result before. Both types describe a result of the GraphQL
          // specification.
          sink.next({
            data,
            extensions,
            ...((!isFirst || errors) && { errors: errors ?? [] }),
          } as ExecutionResult);
          isFirst = false;
        };
        const { fetchOptions } = context;
        const { headers } = (typeof fetchOptions === 'function' ? fetchOptions() : fetchOptions) ?? {};
        // An exchange that adds headers leaves them as a plain object.
        const details = { extensions, headers: headers as Details['headers'] };
        const ended = (cause?: unknown) => (cause === undefined ? sink.complete() : sink.error(cause));
        if (kind === 'subscription') {
          let unsubscribe = () => {};
          try {
            unsubscribe = subscribeFor(source, query, variables, context[FOLLOWED], { next, ended }, details);
          } catch (cause) {
            // It cannot be sent, and urql hears of nothing that is thrown here.
            ended(cause);
          }
          return { unsubscribe };
        }
        // urql goes on with a mutation that nobody waits for, so its caller gives what it is left by.
        const left: AbortController = context[FOLLOWED] ?? new AbortController();
        source.query(query, variables, left.signal, details).then(
          (answer) => {
            next(answer);
            sink.complete();
          },
          (cause: unknown) => ended(left.signal.aborted ? undefined : cause),
        );
        return { unsubscribe: () => left.abort() };
      },
    }),
  });

/** The key of the last operation that subscribes for a feed. */
let lastKey = 0;

/** Makes a source of a client whose last exchange is {@link sourceExchange}: `follow(urqlSource(client), …)`. */
export function urqlSource(client: Client): Source {
  let check = (): void => {};
  return {
    check: () => check(),
    query: querying(client),
    subscribe(document, variables, sink) {
      const { followed, next, ended } = following(sink, (given) => {
        check = given;
      });
      // Additions to the document must be there before urql reads a result by it.
      const { query, variables: named } = requestOf(document, variables);
      // urql would give a second feed the first one's subscription, which has begun. Its own keys are positive.
      lastKey -= 1;
      let isLeft = false;
      const { unsubscribe } = pipe(
        client.executeSubscription(
          { ...createRequest(nodeOf(query), named), key: lastKey },
          { [FOLLOWED]: followed },
        ),
        // wonka calls this also for a subscription that is left.
        onEnd(() => isLeft || ended()),
        subscribe(({ data, error, extensions }) => {
          if (error?.networkError) return ended(error.networkError);
          next({ data, errors: error?.graphQLErrors }, extensions, data);
        }),
      );
      return () => {
        isLeft = true;
        unsubscribe();
      };
    },
  };
}

const querying =
  (client: Client): Source['query'] =>
  async <Data, Variables>(
    document: TypedDocument<Data, Variables>,
    variables: Variables,
    signal?: AbortSignal,
  ): Promise<Answer<Data>> => {
    const node = nodeOf(document) as TypedDocumentNode<Data, Variables & object>;
    const named = variables as Variables & object;
    const isMutation = node.definitions.some(
      (definition) => (definition as { operation?: string }).operation === 'mutation',
    );
    const leaving = new AbortController();
    const asked = isMutation
      ? client.mutation(node, named, { [FOLLOWED]: leaving })
      : client.query(node, named, { requestPolicy: 'network-only' });
    // Like urql's own promise, but this one can be left.
    const { data, error } = await within(
      undefined,
      (left) =>
        new Promise<OperationResult<Data, Variables & object>>((resolve) => {
          const { unsubscribe } = pipe(
            asked,
            filter(({ stale, hasNext }) => !stale && !hasNext),
            take(1),
            subscribe(resolve),
          );
          left.addEventListener('abort', () => {
            unsubscribe();
            leaving.abort();
          });
        }),
      signal,
    );
    if (error?.networkError) throw error.networkError;
    return { data, errors: error?.graphQLErrors };
  };
