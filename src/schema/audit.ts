import { when } from '../resolvers/values.ts';
import type { Audit } from '../upstream/audit.ts';
import { isObject } from '../upstream/call/json.ts';
import { builder, readOnce } from './builder.ts';

export const AuditType = builder.objectRef<Audit>('Audit').implement({
  extensions: readOnce,
  description:
    'When each thing happened. A timestamp that the upstream sends as null or as the text `None` is null here.',
  fields: (t) => ({
    createdAt: t.field({ type: 'DateTime', description: 'When it was created.', resolve: when('createdAt') }),
    updatedAt: t.field({
      type: 'DateTime',
      description: 'When it last changed.',
      resolve: when('updatedAt'),
    }),
    deletedAt: t.field({
      type: 'DateTime',
      description: 'When it was deleted; null while it is not.',
      resolve: when('deletedAt'),
    }),
    blockedAt: t.field({
      type: 'DateTime',
      description: 'When it was blocked; null while it is not.',
      resolve: when('blockedAt'),
    }),
    activatedAt: t.field({
      type: 'DateTime',
      description: 'When it became active. Of accounts only; null elsewhere.',
      resolve: when('activatedAt'),
    }),
    suspendedAt: t.field({
      type: 'DateTime',
      description: 'When it was suspended. Of accounts only; null while it is not.',
      resolve: when('suspendedAt'),
    }),
  }),
});

const NOTHING: Audit = {};

/**
 * An audit that the upstream left out, or that is no object, reads as one in which nothing is known: the field is non-null, and an error in it
 * would take away the transaction of a payment that was made.
 */
export const auditOf = ({ audit }: { readonly audit?: unknown }): Audit =>
  isObject(audit) ? audit : NOTHING;
