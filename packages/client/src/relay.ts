import {
  type Environment,
  type GraphQLResponse,
  type GraphQLTaggedNode,
  Network,
  Observable,
  type OperationType,
  type RequestParameters,
  requestSubscription,
  type Variables,
} from 'relay-runtime';
import { textOf } from './print.ts';
import { requestOf, resumable } from './request.ts';
import { FOLLOWED, type Followed, following, subscribeFor } from './resume.ts';
import {
  type Answer,
  type Problem,
  refused,
  type Source,
  type TypedDocument,
  typed,
  within,
} from './source.ts';

/** Makes a network layer over a source. Subscriptions resume automatically. */
export function createNetwork(source: Source): ReturnType<typeof Network.create> {
  return Network.create(
    (params, variables) =>
      Observable.create((sink) => {
        const left = new AbortController();
        source.query(textOf({ params }), variables, left.signal, { operationName: params.name }).then(
          (answer) => {
            // Both types describe a result of the GraphQL specification.
            sink.next(answer as GraphQLResponse);
            sink.complete();
          },
          // After the caller has left, no error is passed on, because Relay would report it to the console.
          (cause: Error) => left.signal.aborted || sink.error(cause),
        );
        return () => left.abort();
      }),
    (params, variables, { metadata }) =>
      Observable.create((sink) =>
        subscribeFor(
          source,
          textOf({ params }),
          variables,
          metadata?.[FOLLOWED],
          {
            next: (answer) => sink.next(answer as GraphQLResponse),
            ended: (cause) => (cause === undefined ? sink.complete() : sink.error(cause as Error)),
          },
          { operationName: params.name },
        ),
      ),
  );
}

/** Gives a `graphql` tag the types that relay-compiler has generated for it. */
export const relayDocument = <Operation extends OperationType>(
  node: GraphQLTaggedNode,
): TypedDocument<Operation['response'], Operation['variables']> => typed(node);

/** Makes a source of an environment whose network is {@link createNetwork}'s: `follow(relaySource(environment), …)`. */
export function relaySource(environment: Environment): Source {
  let check = (): void => {};
  return {
    check: () => check(),
    query: querying(environment),
    subscribe: subscribing(environment, (given) => {
      check = given;
    }),
  };
}

const querying =
  (environment: Environment): Source['query'] =>
  async <Data, DocumentVariables>(
    document: TypedDocument<Data, DocumentVariables>,
    variables: DocumentVariables,
    signal?: AbortSignal,
  ) => {
    const text = textOf(document);
    const params: RequestParameters = {
      id: null,
      cacheID: '',
      name: /^\s*(?:query|mutation)\s+(\w+)/.exec(text)?.[1] ?? '',
      operationKind: 'query',
      text,
      metadata: {},
    };
    return within(
      undefined,
      (left) =>
        new Promise<Answer<Data>>((resolve, reject) => {
          const asked = environment.getNetwork().execute(params, variables as Variables, { force: true });
          const subscription = asked.subscribe({
            // As above.
            next: (answer) => resolve(answer as Answer<Data>),
            error: reject,
          });
          left.addEventListener('abort', subscription.unsubscribe);
        }),
      signal,
    );
  };

/** @param checks called with the function that checks the connection of the subscription */
const subscribing =
  (environment: Environment, checks: Followed['checks']): Source['subscribe'] =>
  (document, variables, sink) => {
    const { followed, next } = following(sink, checks);
    const log = resumable(textOf(document));
    if (log?.isChanged) {
      throw refused(
        'Relay reads what relay-compiler has compiled: select `cursor`, and give `after` a variable.',
      );
    }
    const { variables: named } = requestOf(document, variables);
    const { dispose } = requestSubscription(environment, {
      // The compiled document that Relay's tag returns.
      subscription: document as GraphQLTaggedNode,
      variables: named,
      cacheConfig: { metadata: { [FOLLOWED]: followed } },
      onNext: (data) => next({ data: data as never }, undefined, data as never),
      onError(error) {
        // Relay throws if a result has no data; `source` holds the errors of the result.
        const { source } = error as { source?: { errors?: readonly Problem[] } };
        if (source?.errors === undefined) return sink.ended(error);
        sink.next({ errors: source.errors });
        sink.ended();
      },
      onCompleted: () => sink.ended(),
    });
    return dispose;
  };
