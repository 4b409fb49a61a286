import SchemaBuilder, {
  BasePlugin,
  type FieldNullability,
  type InputFieldMap,
  type PothosOutputFieldConfig,
  type SchemaTypes,
  type TypeParam,
} from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import type { Caller, Scope } from '../auth/caller.ts';
import type { Context } from '../operation/context.ts';
import { ApiKeyRequiredError, ForbiddenError } from '../resolvers/errors.ts';

/** What a field asks for before it is resolved: that the caller is identified and has these rights, or that it brings its own `x-api-key`. */
type Rights = { readonly scopes: readonly Scope[] } | { readonly apiKey: true };

declare global {
  namespace PothosSchemaTypes {
    interface Plugins<Types extends SchemaTypes> {
      rights: RightsPlugin<Types>;
    }
    // Pothos merges this with its own interface, so that all its type parameters are repeated.
    interface FieldOptions<
      Types extends SchemaTypes,
      ParentShape,
      Type extends TypeParam<Types>,
      Nullable extends FieldNullability<Type>,
      Args extends InputFieldMap,
      ResolveShape,
      ResolveReturnShape,
    > {
      rights?: Rights;
    }
  }
}

type Resolve = GraphQLFieldResolver<unknown, object, object>;

/** Has each field that names `rights` ask for them before it is resolved; a subscription, before it begins. */
class RightsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override wrapResolve(resolve: Resolve, field: PothosOutputFieldConfig<Types>): Resolve {
    return field.kind === 'Subscription' ? resolve : asking(field, resolve);
  }

  override wrapSubscribe(
    subscribe: Resolve | undefined,
    field: PothosOutputFieldConfig<Types>,
  ): Resolve | undefined {
    return subscribe && asking(field, subscribe);
  }
}

export const RIGHTS = 'rights' as const;
SchemaBuilder.registerPlugin(RIGHTS, RightsPlugin);

/** Pothos does not tell a plugin of which type the contexts of a schema are. */
const identityOf = (context: object): Context['identity'] => (context as Context).identity;

function asking<Types extends SchemaTypes>(field: PothosOutputFieldConfig<Types>, resolve: Resolve): Resolve {
  const { rights } = field.pothosOptions;
  if (rights === undefined) return resolve;
  if ('apiKey' in rights) {
    return (parent, args, context, info) => {
      assertApiKey(identityOf(context));
      return resolve(parent, args, context, info);
    };
  }
  const { scopes } = rights;
  const isChange = field.kind === 'Mutation';
  return (parent, args, context, info) => {
    const identity = identityOf(context);
    const go = (known: Caller) => {
      assertMay(known, scopes);
      if (isChange) identity.noteMayChange();
      return resolve(parent, args, context, info);
    };
    const caller = identity.identify();
    return caller instanceof Promise ? caller.then(go) : go(caller);
  };
}

/** @throws ForbiddenError when a caller lacks one of these rights. */
export function assertMay(caller: Pick<Caller, 'scopes'>, scopes: readonly Scope[]): void {
  for (const scope of scopes) {
    if (!caller.scopes.has(scope))
      throw new ForbiddenError(`This field needs the scope ${scope}, which the caller does not have.`);
  }
}

function assertApiKey(identity: Context['identity']): void {
  if (!identity.servesBootstrap) {
    throw new ForbiddenError(
      "Credentials and access tokens of the service are not served here: the gateway holds the client's own.",
    );
  }
  if (identity.apiKey === undefined) throw new ApiKeyRequiredError();
}
