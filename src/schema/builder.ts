import SchemaBuilder from '@pothos/core';
import ErrorsPlugin from '@pothos/plugin-errors';
import type { Scope } from '../auth/caller.ts';
import type { Context } from '../operation/context.ts';
import type { JsonObject } from '../upstream/call/json.ts';
import type { PrefetchList } from '../upstream/session/session.ts';
import { COUNTED_PAGES } from './counted-pages.ts';
import { assertMay, RIGHTS } from './rights.ts';

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
}

/**
 * Marks a type whose objects are always read through the session, so that resolving a field to it twice makes no second read. A
 * field that leads to it, and a scalar or an enum of it, must read nothing else. A document that leads to an object of another type, such as a page of the event
 * log or a credential, is executed once, by graphql-js (graphql/executor/query-plan.ts).
 */
export const readOnce = { readOnce: true } as const;

/** Marks a field whose resolver looks up in a list, so that the list can be read ahead (graphql/plugins/prefetch.ts). */
export const reads = (list: PrefetchList): { readonly reads: PrefetchList } => ({ reads: list });

/** Stands on root fields that read the graph. */
export const ENTERS_GRAPH = { scopes: ['graph:read'] } as const;

/**
 * Makes the resolver of a relation that leads into the graph from elsewhere: from an event, from the result of a mutation, or
 * from the client. It asks for the same scope as {@link ENTERS_GRAPH}, of a caller who has been identified. What an event or a
 * result itself holds needs no more than the scope that it came by.
 *
 * @throws ForbiddenError when the caller, whom the root field has identified, may not read the graph.
 */
export const withGraphScope = <P, A, R>(resolve: Resolve<P, A, R>) =>
  withScopes(ENTERS_GRAPH.scopes, resolve);

/** Stands on root fields that read the event log. */
export const ENTERS_LOG = { scopes: ['events:read'] } as const;

/** Makes the resolver of a relation that leads from the graph into the event log, as {@link withGraphScope} does the other way. */
export const withLogScope = <P, A, R>(resolve: Resolve<P, A, R>) => withScopes(ENTERS_LOG.scopes, resolve);

type Resolve<P, A, R> = (parent: P, args: A, context: Context) => R;

const withScopes =
  <P, A, R>(scopes: readonly Scope[], resolve: Resolve<P, A, R>): Resolve<P, A, R> =>
  (parent, args, context) => {
    assertMay(context.identity.caller, scopes);
    return resolve(parent, args, context);
  };

/**
 * Likewise for what tells of payments: it asks for `payments:read` besides.
 *
 * @throws ForbiddenError as {@link withGraphScope} does
 */
export const withPaymentsScope = <P, A, R>(resolve: Resolve<P, A, R>) =>
  withScopes([...ENTERS_GRAPH.scopes, 'payments:read'], resolve);

/**
 * Marks a field of an event whose resolver reads nothing but its parent, so that its value is the same for all who may see
 * the event (transport/sockets/event-only.ts). A field without a resolver needs no mark.
 */
export const ofParent = { ofParent: true } as const;

export const builder = new SchemaBuilder<GraphTypes>({ plugins: [ErrorsPlugin, RIGHTS, COUNTED_PAGES] });
