import type { ObjectRef } from '@pothos/core';
import {
  DEFAULT_PAGE,
  edgesOf,
  MAX_PAGE,
  type Page,
  type PageInfo,
  pageInfoOf,
} from '../resolvers/connection.ts';
import { builder, readOnce } from './builder.ts';

export const PageInfoType = builder.objectRef<PageInfo>('PageInfo').implement({
  extensions: readOnce,
  description: 'Where a page stands in its list.',
  fields: (t) => ({
    hasNextPage: t.exposeBoolean('hasNextPage', {
      nullable: false,
      description:
        'Whether items follow this page. Of a list that grows (`events`, `moneyIn`, `payments`) that is read with `last` or `before`: whether `before` was given.',
    }),
    hasPreviousPage: t.exposeBoolean('hasPreviousPage', {
      nullable: false,
      description:
        'Whether items precede this page. Of a list that grows that is read with `first` or `after`: whether `after` was given.',
    }),
    startCursor: t.expose('startCursor', {
      type: 'Cursor',
      nullable: true,
      description:
        'Cursor to pass as `before` for what precedes: that of the first item, null on an empty page. Of a list that grows that is read with `last` or `before`, where a bound ended the reading: that of the place where it ended, also on an empty page.',
    }),
    endCursor: t.expose('endCursor', {
      type: 'Cursor',
      nullable: true,
      description:
        'Cursor to pass as `after` for what follows: that of the last item, null on an empty page. Of a list that grows that is read with `first` or `after`, where a bound ended the reading: that of the place where it ended, also on an empty page.',
    }),
  }),
});

/** The arguments of every connection that pages both ways. */
export const pageArgs = () =>
  builder.args((t) => ({
    first: t.int({
      defaultValue: DEFAULT_PAGE,
      description: `How many items to return, from 1 to ${MAX_PAGE}.`,
    }),
    after: t.field({
      type: 'Cursor',
      required: false,
      description:
        "An `endCursor` or an edge's `cursor` of this same list: the page starts behind it. Null starts at the beginning.",
    }),
    last: t.int({
      description: `How many items to return, from 1 to ${MAX_PAGE}, counted back from \`before\`. Not together with \`after\`, nor with a \`first\` of one's own.`,
    }),
    before: t.field({
      type: 'Cursor',
      required: false,
      description:
        "A `startCursor` or an edge's `cursor` of this same list: the page ends before it. Null, with `last`, ends with the end of the list.",
    }),
  }));

/**
 * Defines `<noun>Connection` and `<noun>Edge`.
 *
 * @param plural names the items in descriptions, such as `accounts`.
 */
export function connectionType<T extends object>(
  noun: string,
  plural: string,
  node: ObjectRef<typeof builder.$inferSchemaTypes, T>,
) {
  const edge = builder.objectRef<{ readonly cursor: string; readonly node: T }>(`${noun}Edge`).implement({
    extensions: readOnce,
    description: `One of the ${plural}, and its place in the list.`,
    fields: (t) => ({
      cursor: t.expose('cursor', {
        type: 'Cursor',
        nullable: false,
        description: 'Place of the item in this list, to pass as `after`.',
      }),
      node: t.field({
        type: node,
        description:
          'The item itself; null, with an error, where the service has sent one that cannot be shown.',
        // Pothos' type for a resolver's value cannot be worked out for a node that is still a type parameter.
        resolve: (parent) => parent.node as never,
      }),
    }),
  });
  return builder.objectRef<Page<T>>(`${noun}Connection`).implement({
    extensions: readOnce,
    description: `A page of ${plural}.`,
    fields: (t) => ({
      edges: t.field({
        type: [edge],
        nullable: { list: false, items: true },
        description: 'The items, each with its cursor.',
        resolve: edgesOf,
      }),
      nodes: t.field({
        type: [node],
        nullable: { list: false, items: true },
        description:
          'The items without their cursors. One that cannot be shown is null, with an error in its place.',
        resolve: (page) => page.nodes,
      }),
      pageInfo: t.field({
        type: PageInfoType,
        nullable: false,
        description: 'Where this page stands in the list.',
        resolve: pageInfoOf,
      }),
      totalCount: t.exposeInt('totalCount', {
        nullable: false,
        description:
          "How many items the whole list holds: the service's own total, or, of a list that the gateway reads whole, as many as it has found.",
      }),
    }),
  });
}
