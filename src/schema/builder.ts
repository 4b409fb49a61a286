import SchemaBuilder from '@pothos/core';
import ErrorsPlugin from '@pothos/plugin-errors';
import ScopeAuthPlugin, { type AuthFailure, RequestCache } from '@pothos/plugin-scope-auth';
import type { Scope } from '../auth/caller.ts';
import type { Context } from '../operation/context.ts';
import { ApiKeyRequiredError, ForbiddenError } from '../resolvers/errors.ts';
import type { JsonObject } from '../upstream/call/json.ts';
import type { PrefetchList } from '../upstream/session/session.ts';

interface Text {
  Input: string;
  Output: string;
}

/** The types that all definition files share. */
export interface GraphTypes {
  Context: Context;
  Scalars: {
    ID: Text;
    DateTime: Text;
    Date: Text;
    MoneyAmount: Text;
    CurrencyCode: Text;
    Clabe: Text;
    URL: Text;
    Cursor: Text;
    JSON: { Input: unknown; Output: NonNullable<unknown> };
    JSONObject: { Input: JsonObject; Output: JsonObject };
  };
  AuthScopes: {
    /** The caller is identified and has this right. */
    scope: Scope;
    /** The request carries the caller's own `x-api-key`. */
    apiKey: boolean;
  };
}

/**
 * Marks a type whose objects are always read through the session, so that resolving a field to it twice makes no second read. A
 * field that leads to it must read nothing else. A document that leads to an object of another type, such as a page of the event
 * log or a credential, is executed once, by graphql-js (graphql/executor/query-plan.ts).
 */
export const readOnce = { readOnce: true } as const;

/** Marks a field whose resolver looks up in a whole list, so that the list can be read ahead (graphql/plugins/prefetch.ts). */
export const reads = (list: PrefetchList): { readonly reads: PrefetchList } => ({ reads: list });

/** Stands on root fields that read the graph. */
export const ENTERS_GRAPH = { scope: 'graph:read' } as const;

/**
 * Makes the resolver of a relation that leads into the graph from elsewhere: from an event, from the result of a mutation, or
 * from the client. It asks for the same scope as {@link ENTERS_GRAPH}. The scope-auth plugin could; but a join of a hundred
 * rows has three hundred relations, for which its steps take a twentieth of the whole. What an event or a result itself
 * holds needs no more than the scope that it came by.
 *
 * @throws ForbiddenError when the caller, whom the root field has identified, may not read the graph.
 */
export const withGraphScope = <P, A, R>(resolve: Resolve<P, A, R>) => withScope(ENTERS_GRAPH.scope, resolve);

/** Stands on root fields that read the event log. */
export const ENTERS_LOG = { scope: 'events:read' } as const;

/** Makes the resolver of a relation that leads from the graph into the event log, as {@link withGraphScope} does the other way. */
export const withLogScope = <P, A, R>(resolve: Resolve<P, A, R>) => withScope(ENTERS_LOG.scope, resolve);

type Resolve<P, A, R> = (parent: P, args: A, context: Context) => R;

const withScope =
  <P, A, R>(scope: Scope, resolve: Resolve<P, A, R>): Resolve<P, A, R> =>
  (parent, args, context) => {
    if (!context.identity.caller.scopes.has(scope)) throw lacksScope(scope);
    return resolve(parent, args, context);
  };

/**
 * Likewise for what tells of payments: it asks for `payments:read` besides.
 *
 * @throws ForbiddenError as {@link withGraphScope} does
 */
export const withPaymentsScope = <P, A, R>(resolve: (parent: P, args: A, context: Context) => R) =>
  withGraphScope((parent: P, args: A, context) => {
    if (!context.identity.caller.scopes.has(PAYMENTS)) throw lacksScope(PAYMENTS);
    return resolve(parent, args, context);
  });

const PAYMENTS = 'payments:read';

const lacksScope = (scope: string): ForbiddenError =>
  new ForbiddenError(`This field needs the scope ${scope}, which the caller does not have.`);

/**
 * Marks a field of an event whose resolver reads nothing but its parent, so that its value is the same for all who may see
 * the event (transport/sockets/event-only.ts). A field without a resolver needs no mark.
 */
export const ofParent = { ofParent: true } as const;

export const builder = new SchemaBuilder<GraphTypes>({
  plugins: [ErrorsPlugin, ScopeAuthPlugin],
  scopeAuth: {
    authorizeOnSubscribe: true,
    authScopes: (context) => ({
      scope: (name) => {
        const caller = context.identity.identify();
        return caller instanceof Promise
          ? caller.then(({ scopes }) => scopes.has(name))
          : caller.scopes.has(name);
      },
      apiKey: () => context.identity.servesBootstrap && context.identity.apiKey !== undefined,
    }),
    unauthorizedError: (_parent, context, _info, { failure }) => refusalOf(failure, context),
  },
});

/**
 * Drops what the scope-auth plugin remembers of an operation's caller, once the operation is over. It would be dropped
 * with the context; but what a WeakMap holds outlives every minor collection of garbage, and an operation should not.
 */
export const forgetRights = (context: Context): void => RequestCache.clearForContext(context);

function refusalOf(failure: AuthFailure, { identity: { servesBootstrap } }: Context): Error {
  let missing: AuthFailure | undefined = failure;
  while (missing !== undefined && 'failures' in missing) missing = missing.failures[0];
  if (missing === undefined || !('parameter' in missing) || missing.scope === 'apiKey') {
    return servesBootstrap
      ? new ApiKeyRequiredError()
      : new ForbiddenError(
          "Credentials and access tokens of the service are not served here: the gateway holds the client's own.",
        );
  }
  return lacksScope(String(missing.parameter));
}
