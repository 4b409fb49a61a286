import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import type { Context } from '../operation/context.ts';
import { countPage } from '../resolvers/answer-size.ts';

declare global {
  namespace PothosSchemaTypes {
    interface Plugins<Types extends SchemaTypes> {
      countedPages: CountedPagesPlugin<Types>;
    }
  }
}

type Resolve = GraphQLFieldResolver<unknown, object, object>;

/** Has each field that leads to a connection count its page as part of the operation's answer. */
class CountedPagesPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override wrapResolve(resolve: Resolve, { type }: PothosOutputFieldConfig<Types>): Resolve {
    if (type.kind !== 'Object') return resolve;
    const { name } = this.buildCache.getTypeConfig(type.ref);
    if (!name.endsWith('Connection')) return resolve;
    return (parent, args, context, info) => {
      // Pothos does not tell a plugin of which type the contexts of a schema are; what such a field resolves to is a page, or null.
      const { budget } = context as Context;
      const counted = (page: object | null) => page && countPage(page, info, budget);
      const page = resolve(parent, args, context, info) as object | null | Promise<object | null>;
      return page instanceof Promise ? page.then(counted) : counted(page);
    };
  }
}

export const COUNTED_PAGES = 'countedPages' as const;
SchemaBuilder.registerPlugin(COUNTED_PAGES, CountedPagesPlugin);
